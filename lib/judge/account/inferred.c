#include <string.h>

#include "judge/account/inferred.h"
#include "judge/copy_causes.h"

void tfh_inferred_init(struct tfh_inferred *d, const struct tfh_facts *facts)
{
	memset(d, 0, sizeof(*d));
	d->facts = facts;
	d->copied = TFH_CAUSE_NONE;
}

/* Best bandwidth seen for a copy of that size, bytes/ns. */
static double bandwidth(const struct tfh_facts *facts, uint8_t dir, bool pageable, uint64_t bytes)
{
	const double *best = facts->best_bw[dir & 7][pageable];
	int bin = bytes ? 63 - __builtin_clzll(bytes) : 0;

	if (bin >= TFH_BINS)
		bin = TFH_BINS - 1;
	/* The nearest size seen. A much smaller size would give the latency instead of the link's
	 * bandwidth. */
	for (int d = 0; d < TFH_BINS; d++) {
		if (bin + d < TFH_BINS && best[bin + d] > 0)
			return best[bin + d];
		if (d <= TFH_ACCOUNT_SMALLER_SIZES && bin - d >= 0 && best[bin - d] > 0)
			return best[bin - d];
	}
	/* Never seen alone: uses the bandwidth of current machines (PCIe 4 x16), a high estimate,
	 * so that transfer is not overstated. */
	return pageable ? TFH_ACCOUNT_PAGEABLE_RATE : TFH_ACCOUNT_PINNED_RATE;
}

int64_t tfh_inferred_copy_ns(const struct tfh_inferred *d, const struct tfh_piece *p)
{
	return (int64_t)((double)p->bytes / bandwidth(d->facts, p->dir, p->pageable, p->bytes));
}

void tfh_inferred_queued(struct tfh_inferred *d, const struct tfh_piece *p)
{
	/* A copy on a stream of its own may overlap the kernels; then nothing is charged to it. */
	if (tfh_inferred_outstanding(d) && p->stream && !*tfh_inferred_last(d, p->stream))
		return;
	d->copy_ns += tfh_inferred_copy_ns(d, p);
	d->copy_bytes += p->bytes;
	d->copied = tfh_copy_cause(p->dir, p->pageable);
}

void tfh_inferred_recorded(struct tfh_inferred *d, uint64_t event)
{
	size_t i = event % TFH_ACCOUNT_EVENTS;

	d->event[i].handle = event;
	d->event[i].at = d->launches;
}

uint64_t tfh_inferred_covered(struct tfh_inferred *d, const struct tfh_piece *p)
{
	size_t i = p->handle % TFH_ACCOUNT_EVENTS;

	if (p->stream)
		return *tfh_inferred_last(d, p->stream);
	return p->handle && d->event[i].handle == p->handle ? d->event[i].at : d->launches;
}

/*
 * Whether waits for this number of launches usually found a busy device. One long wait after many
 * short ones means that the thread was woken late, as the device keeps pace with such launches.
 */
static bool usually_busy(struct tfh_inferred *d, uint64_t launches, bool busy)
{
	size_t k = launches % TFH_ACCOUNT_WAIT_KINDS;
	uint8_t was, seen;

	if (d->kind[k].launches != launches) {
		d->kind[k].launches = launches;
		d->kind[k].busy = d->kind[k].seen = 0;
	}
	was = d->kind[k].busy;
	seen = d->kind[k].seen;
	d->kind[k].busy = (uint8_t)(was << 1 | busy);
	d->kind[k].seen = (uint8_t)(seen << 1 | 1);
	return __builtin_popcount(was) * TFH_ACCOUNT_BUSY_PART >= __builtin_popcount(seen);
}

struct tfh_waited tfh_inferred_wait(struct tfh_inferred *d, int64_t t0, int64_t t1, uint64_t upto)
{
	int64_t wait = t1 - t0, since = d->since ? d->since : t0;
	bool most = wait * TFH_ACCOUNT_WAIT_PART > t1 - since;
	struct tfh_waited w = {
		.kernels = upto > d->done,
		.copies = d->copy_ns != 0,
		.busy = wait > TFH_ACCOUNT_WAIT_FLOOR_NS &&
			(double)wait >= TFH_ACCOUNT_BUSY_SHARE * (double)(t1 - since),
	};

	if (!w.kernels)
		return w;
	bool usual = usually_busy(d, upto - d->done, w.busy);
	/* A wait that is most of the time is accepted without earlier ones. */
	w.busy = w.busy && (usual || most);
	w.direct = !w.copies && most;
	w.copy_ns = d->copy_ns < wait ? d->copy_ns : wait;
	return w;
}

void tfh_inferred_complete(struct tfh_inferred *d, uint64_t upto)
{
	if (upto < d->launches) {
		d->done = upto > d->done ? upto : d->done;
		return;
	}
	d->done = d->launches;
	d->since = 0;
	d->copy_ns = 0;
	d->copy_bytes = 0;
	d->copied = TFH_CAUSE_NONE;
}

bool tfh_inferred_queue_full(const struct tfh_inferred *d)
{
	return d->launches - d->done >= TFH_ACCOUNT_QUEUE_DEPTH &&
	       __builtin_popcountll(d->slow_launches) >= TFH_ACCOUNT_QUEUE_SLOW;
}
