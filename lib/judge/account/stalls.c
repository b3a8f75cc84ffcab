/*
 * Ops that start late although nothing known held them: the device's clocks rise, the profiler
 * empties its buffers, or the trace has not recorded what they wait for.
 *
 * How much of that matters shows at the ops after it. Without the stall, each could have started
 * earlier by up to the stall's length, but not before its own launch. If the host still launches
 * when the device continues, the device soon has to wait for it as if there had been no stall, so
 * the time belongs to what the host did meanwhile.
 */
#include "judge/account/blame.h"

/* When op o could have started at the earliest: a long call, such as the first launch of a kernel,
 * submits it at its end. */
static int64_t launched(const struct tfh_slice *sl, const struct tfh_device_op *o)
{
	bool late = o->issue1 - o->issue0 > tfh_max_ns(sl->device->slow, sl->device->tau) &&
		    o->t0 + sl->device->floor >= o->issue1;

	return (late ? o->issue1 : o->issue0) + sl->device->floor;
}

/* Whether the thread that launched o waited for the device before it did, beyond hi: then it would
 * have launched o earlier, too. Spans of the same thread up to `*seen` were looked at. */
static bool waited(const struct tfh_slice *sl, const struct tfh_device_op *o, int64_t hi,
		   uint32_t *seen)
{
	uint32_t first = sl->thread_span[o->thread];

	if (o->span == TFH_NO)
		return true;
	if (*seen != TFH_NO && *seen >= first && *seen <= o->span)
		first = *seen;
	for (uint32_t i = o->span; i-- > first;) {
		const struct tfh_host_span *s = &sl->span.v[i];
		if (s->t1 <= hi)
			break;
		if (s->activity == TFH_ACTIVITY_SYNC || s->activity == TFH_ACTIVITY_COPY ||
		    s->full || s->spin)
			return true;
	}
	*seen = o->span;
	return false;
}

/* By how much o could have started earlier without the stall that ended at hi. If o was ready
 * before hi, the same stall held it, so it could have started as early as its launch. */
static int64_t slack(const struct tfh_slice *sl, const struct tfh_device_op *o, int64_t hi)
{
	int64_t issue = launched(sl, o), end = sl->lane.v[o->lane].past_end;

	if (o->prev != TFH_NO)
		end = sl->op.v[o->prev].t1;
	if (o->dep != TFH_NO)
		end = tfh_max_ns(end, sl->op.v[o->dep].t1);
	if (tfh_max_ns(end, issue) < hi)
		end = o->t0;
	return end > issue ? end - issue : 0;
}

int64_t tfh_hidden_stall(const struct tfh_slice *sl, uint32_t k, int64_t lo, int64_t hi,
			 uint32_t *thread)
{
	int64_t late = hi - lo;
	uint32_t seen = TFH_NO, n = (uint32_t)sl->op.n;

	*thread = sl->op.v[k].thread;
	if (n - k > TFH_ACCOUNT_STALLED)
		n = k + TFH_ACCOUNT_STALLED;
	for (uint32_t i = k + 1; i < n && late > 0; i++) {
		const struct tfh_device_op *o = &sl->op.v[i];
		if (o->device != sl->op.v[k].device || o->inner)
			continue;
		if (o->issue0 == INT64_MIN || waited(sl, o, hi, &seen))
			break;
		int64_t left = slack(sl, o, hi);
		if (left >= late)
			continue;
		late = left;
		*thread = o->thread;
	}
	return hi - lo - late;
}
