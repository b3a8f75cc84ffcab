/* Judges windows with device times: which windows, which of them together, and the results. */
#include <math.h>
#include <stdlib.h>

#include "judge/account/device.h"

/* End of the slice that begins with w0: adjacent, with device times, and few enough for memory. */
static size_t chunk_end(const struct tfh_device *d, size_t w0)
{
	uint64_t ops = 0;
	size_t i = w0;

	while (i < d->win.n && i - w0 < TFH_ACCOUNT_CHUNK_WINDOWS &&
	       d->accounts->use[i].tier != 'C' &&
	       (i == w0 || d->win.v[i].from == d->win.v[i - 1].to)) {
		ops += d->win.v[i].ops;
		if (i > w0 && (ops > TFH_ACCOUNT_CHUNK_OPS || !tfh_chunk_fits(d, w0, i + 1)))
			break;
		i++;
	}
	return i;
}

double tfh_timed_steps(const struct tfh_device *d)
{
	uint64_t n = 0;

	TFH_EACH (i, d->win.n) {
		uint8_t segment = d->accounts->use[i].segment;
		if ((segment == TFH_SEGMENT_TRAIN || segment == TFH_SEGMENT_STALL) &&
		    d->win.v[i].ops)
			n += d->accounts->loops->window.v[i].steps;
	}
	return n ? (double)n : NAN;
}

static size_t count_tier(const struct tfh_device *d, char tier)
{
	size_t n = 0;

	TFH_EACH (i, d->win.n)
		n += d->accounts->use[i].tier == tier && tfh_window_counts(d->accounts, i);
	return n;
}

/* The next window with device times from w on. */
static size_t next_timed(const struct tfh_device *d, size_t w)
{
	while (w < d->win.n && d->accounts->use[w].tier == 'C')
		tfh_big_pass(++w);
	return w;
}

/* Loads all slices, which workers judge meanwhile. */
static int load_all(struct tfh_device *d, struct tfh_slices *q, struct tfh_err *err)
{
	size_t a = count_tier(d, 'A'), every = a / TFH_ACCOUNT_REPLAYED + 1, turn = 0;
	struct tfh_slice *sl;
	int rc = 0;

	for (size_t w0 = next_timed(d, 0), w1, next; w0 < d->win.n && !rc; w0 = next) {
		w1 = chunk_end(d, w0);
		next = next_timed(d, w1);
		if ((w0 ^ (w1 + 1)) >> 14)
			tfh_big_trim();
		sl = tfh_slices_room(q, w0, w1);
		if (!sl) /* its error comes at the end */
			break;
		rc = tfh_chunk_load(d, sl, w0, w1, next, err);
		/* If there are few windows, all are sampled; if many, every n-th slice of them. */
		if (!rc)
			tfh_slices_give(q, turn++ % every == 0 && d->accounts->use[w0].tier == 'A');
	}
	return rc;
}

int tfh_device_judge(struct tfh_device *d, struct tfh_call_feed *calls,
		     const struct tfh_sampler *sampler, struct tfh_err *err)
{
	int rc = tfh_chunk_start(d, calls, err), judged;
	struct tfh_slices *q = rc ? NULL : tfh_slices_new(d, sampler);

	d->async = tfh_input_async(d->accounts);
	d->made = tfh_input_work(d->accounts);
	if (!rc)
		rc = q ? load_all(d, q, err) : -ENOMEM;
	judged = q ? tfh_slices_end(q) : 0;
	tfh_slices_free(q);
	rc = rc ? rc : judged;
	if (!rc)
		rc = tfh_chunk_end(d, err);
	return rc == -ENOMEM ? tfh_err_set(err, rc, "out of memory while judging device times")
			     : rc;
}

int tfh_device_find(struct tfh_accounts *accounts, struct tfh_err *err)
{
	const struct tfh_feed *f = accounts->facts->feed;
	struct tfh_device *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	accounts->device = d;
	d->accounts = accounts;
	if (f->gpu)
		f->gpu(f->arg, accounts->facts->process, &d->gpu);
	d->own = d->gpu.source == TFH_GPU_CUPTI ? TFH_HOOK_NS : 0;
	if (d->gpu.source == TFH_GPU_NONE || !f->rewind_ops || !accounts->loops->window.n)
		return 0;
	rc = tfh_device_survey(d, err);
	if (rc)
		return rc == -ENOMEM ? tfh_err_set(err, rc, "out of memory at device times") : rc;
	if (TFH_DETECT_SPECIAL)
		tfh_find_checkpoints(accounts);
	accounts->timed = count_tier(d, 'A') + count_tier(d, 'B');
	/* Warm-up and evaluation windows alone give no verdict. */
	TFH_EACH (i, accounts->timed ? 0 : d->win.n)
		accounts->use[i].tier = 'C';
	return 0;
}

/* The tier of most of the judged time. */
char tfh_tier(const struct tfh_accounts *accounts)
{
	const struct tfh_device *d = accounts->device;

	if (!d || d->windows_a + d->windows_b == 0)
		return 'C';
	return d->windows_a >= d->windows_b ? 'A' : 'B';
}

enum tfh_cause tfh_compute_cause(const struct tfh_device *d)
{
	int64_t most = 0;

	if (d->underfilled * TFH_ACCOUNT_UNDERFILLED_PART > d->compute_ns)
		return TFH_CAUSE_COMPUTE_UNDERFILLED;
	for (size_t i = 0; i < d->kernel.n; i++)
		if (d->kernel.v[i].ns > most)
			most = d->kernel.v[i].ns;
	return d->kernel.n >= TFH_ACCOUNT_DOMINATED &&
			       (double)most > TFH_ACCOUNT_DOMINANT_SHARE * (double)d->compute_ns
		       ? TFH_CAUSE_COMPUTE_DOMINANT_OP
		       : TFH_CAUSE_COMPUTE_DENSE;
}

void tfh_device_free(struct tfh_device *d)
{
	if (!d)
		return;
	tfh_big_free(d->win.v);
	free(d->lane.v);
	tfh_map_free(&d->lane_at);
	free(d->kernel.v);
	tfh_map_free(&d->kernel_at);
	free(d->op.v);
	free(d->call.v);
	free(d->later.v);
	free(d->first_later);
	free(d->function.v);
	free(d);
}
