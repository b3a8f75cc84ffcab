/*
 * Unusual training steps, found from calls, the device's windows and durations before there are
 * accounts: steps that loaded kernels, saved the model, or stalled. Reasons for a stall: the job
 * was suspended, a debugger stopped it, a disk or the network hung, or a function was traced that
 * the other steps did not call. One such step can take most of a run's time and says nothing about
 * other steps, so these are reported and counted separately. Steps that are slow at regular
 * intervals are a cost of training and stay.
 */

#include "judge/account/device.h"

static bool is_long(const struct tfh_accounts *accounts, size_t i)
{
	const struct tfh_window *w = &accounts->loops->window.v[i];

	return w->segment == TFH_SEGMENT_TRAIN &&
	       w->t1 - w->t0 > TFH_ACCOUNT_LONG_TIMES * accounts->loops->median * w->steps;
}

/* Marks long steps that saved the model or loaded kernels. */
void tfh_find_special(struct tfh_accounts *accounts)
{
	size_t w = 0;

	TFH_EACH (i, accounts->facts->rare.n) {
		const struct tfh_rare *x = &accounts->facts->rare.v[i];
		size_t at = tfh_window_of(accounts->loops, x->t0, w);
		if (at == SIZE_MAX || !accounts->facts->thread[x->thread].drives)
			continue;
		w = at;
		if (is_long(accounts, w) &&
		    (x->saves || accounts->use[w].segment == TFH_SEGMENT_TRAIN))
			accounts->use[w].segment =
				x->saves ? TFH_SEGMENT_CHECKPOINT : TFH_SEGMENT_COMPILE;
	}
}

/* Bytes that a usual step fetches from the device. */
static float usual_fetch(const struct tfh_device *d)
{
	double *v = tfh_big_array(d->win.n, sizeof(*v)), m = 0;
	size_t n = 0;

	TFH_EACH (i, v ? d->win.n : 0)
		if (d->accounts->use[i].segment == TFH_SEGMENT_TRAIN)
			v[n++] = (double)d->win.v[i].fetched;
	if (n)
		m = tfh_select(v, n, n / 2);
	tfh_big_free(v);
	return (float)m;
}

static bool saves(const struct tfh_device *d, size_t i, float usual)
{
	float bytes = d->win.v[i].fetched;

	return bytes > TFH_ACCOUNT_SAVED_TIMES * usual && bytes > TFH_ACCOUNT_SAVED_BYTES;
}

/*
 * A long step that fetches many times what others do saves the model. Work after a window's last op
 * makes the next window long, as windows end with their computing; so the mark moves to the next
 * window, also if only the host's calls showed it.
 */
void tfh_find_checkpoints(struct tfh_accounts *accounts)
{
	const struct tfh_device *d = accounts->device;
	float usual = usual_fetch(d);

	for (size_t i = d->win.n; i-- > 0; tfh_big_pass(i)) {
		struct tfh_use *use = &accounts->use[i];
		uint8_t segment = use->segment;
		if (segment == TFH_SEGMENT_TRAIN && saves(d, i, usual))
			segment = TFH_SEGMENT_CHECKPOINT;
		if (use->tier == 'C' ||
		    (segment != TFH_SEGMENT_CHECKPOINT && segment != TFH_SEGMENT_COMPILE))
			continue;
		size_t next =
			i + 1 < d->win.n && d->win.v[i + 1].from == d->win.v[i].to ? i + 1 : i;
		int64_t most = TFH_ACCOUNT_LONG_TIMES * accounts->loops->median *
			       accounts->loops->window.v[i].steps;
		bool here = d->win.v[i].to - d->win.v[i].from > most;
		bool there = d->win.v[next].to - d->win.v[next].from > most;
		use->segment = here ? segment : TFH_SEGMENT_TRAIN;
		if (!here && there && accounts->use[next].segment == TFH_SEGMENT_TRAIN)
			accounts->use[next].segment = segment;
	}
}

/* Length of a training step, ns: of the device's window if there is one, otherwise of the host's;
 * 0: the step does not count. */
static int64_t length(const struct tfh_accounts *accounts, size_t i)
{
	const struct tfh_window *w = &accounts->loops->window.v[i];
	const struct tfh_device_window *d = accounts->timed ? &accounts->device->win.v[i] : NULL;

	if (!tfh_window_counts(accounts, i) || (d && accounts->use[i].tier == 'C'))
		return 0;
	return (d ? d->to - d->from : w->t1 - w->t0) / (w->steps ? w->steps : 1);
}

/* Whether such long steps are periodic: two of which the second comes as long after the first as
 * that one after the start, or more than two at about equal distances. */
static bool in_turn(const size_t *at, size_t n)
{
	size_t near = 0, gap = n > 1 ? at[1] - at[0] : 0;

	if (n < 2)
		return false;
	if (n == 2) {
		size_t first = at[0] + 1;
		return (gap > first ? gap - first : first - gap) * TFH_ACCOUNT_STALL_OFF_PART <=
		       gap;
	}
	for (size_t i = 1; i < n; tfh_big_pass(++i)) {
		size_t g = at[i] - at[i - 1];
		near += (g > gap ? g - gap : gap - g) * TFH_ACCOUNT_STALL_OFF_PART <= gap;
	}
	return (double)near >= TFH_REGULAR_SHARE * (double)(n - 1);
}

/* Sets accounts->stall_ns, the length from which on a step is too long for this job. */
void tfh_find_stalls(struct tfh_accounts *accounts)
{
	double *v = tfh_big_array(accounts->loops->window.n, sizeof(*v));
	size_t *at = tfh_big_array(accounts->loops->window.n, sizeof(*at)), n = 0, slow = 0;

	TFH_EACH (i, v && at ? accounts->loops->window.n : 0) {
		int64_t ns = length(accounts, i);
		if (ns > 0)
			v[n++] = (double)ns;
	}
	int64_t usual = n ? (int64_t)tfh_select(v, n, n / 2) : 0;
	accounts->stall_ns = usual < INT64_MAX / TFH_ACCOUNT_STALL_TIMES
				     ? TFH_ACCOUNT_STALL_TIMES * usual
				     : INT64_MAX;
	TFH_EACH (i, n ? accounts->loops->window.n : 0)
		if (length(accounts, i) > accounts->stall_ns)
			at[slow++] = i;
	if (slow > TFH_ACCOUNT_STALLS && (double)slow > TFH_ACCOUNT_STALL_SHARE * (double)n)
		accounts->stall_ns = 0;
	if (in_turn(at, slow))
		accounts->stall_ns = 0;
	tfh_big_free(v);
	tfh_big_free(at);
}

bool tfh_is_stall(const struct tfh_accounts *accounts, size_t i, int64_t ns, int64_t compute)
{
	return accounts->stall_ns && tfh_window_counts(accounts, i) &&
	       ns > accounts->stall_ns * accounts->loops->window.v[i].steps &&
	       compute * TFH_ACCOUNT_STALL_COMPUTE_PART < ns;
}
