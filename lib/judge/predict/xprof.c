/*
 * The step as XProf's overview page counts it, for comparison: from the first to the last device op
 * of a step, each moment counts for the most important kind of op that runs on any device
 * (computing, copies to the host, copies on devices, collectives, copies to the device); the rest
 * is "other". Time between two steps is in none of them. (xprof/convert/xplane_to_step_events.cc,
 * op_stats_to_input_pipeline_analysis.cc.)
 */
#include <math.h>

#include "judge/predict/predict.h"

/* Rank of a kind of op, the most important first; enum tfh_xprof_part. */
static int rank_of(uint8_t work)
{
	switch (work) {
	case TFH_W_COMPUTE:
		return TFH_XPROF_COMPUTE;
	case TFH_W_D2H:
		return TFH_XPROF_OUTPUT;
	case TFH_W_D2D:
	case TFH_W_P2P:
		return TFH_XPROF_DEVICE;
	case TFH_W_COMM:
		return TFH_XPROF_COLLECTIVES;
	default:
		return TFH_XPROF_INPUT;
	}
}

/* Adds the windows in memory. */
void tfh_xprof_add(struct tfh_samples *all, const struct tfh_slice *sl)
{
	for (size_t w = sl->w0; w < sl->w1; w++) {
		int64_t end[TFH_XPROF_OTHER], sum[TFH_XPROF_OTHER] = {0}, first = INT64_MAX,
					      last = INT64_MIN;
		for (int k = 0; k < TFH_XPROF_OTHER; k++)
			end[k] = INT64_MIN;
		for (size_t i = 0; i < sl->op.n; i++) {
			const struct tfh_device_op *o = &sl->op.v[i];
			if (o->window != w)
				continue;
			first = o->t0 < first ? o->t0 : first;
			last = o->t1 > last ? o->t1 : last;
			/* Extends the union of all ops at least that important. */
			for (int k = rank_of(o->work); k < TFH_XPROF_OTHER; k++) {
				int64_t from = o->t0 > end[k] ? o->t0 : end[k];
				if (o->t1 <= from)
					continue;
				sum[k] += o->t1 - from;
				end[k] = o->t1;
			}
		}
		if (last <= first || !sl->window.v[w - sl->w0].counts)
			continue;
		for (int k = 0; k < TFH_XPROF_OTHER; k++)
			all->xprof[k] += (double)(sum[k] - (k ? sum[k - 1] : 0));
		all->xprof[TFH_XPROF_OTHER] += (double)(last - first - sum[TFH_XPROF_OTHER - 1]);
	}
}

void tfh_xprof_fill(const struct tfh_samples *all, double share[TFH_XPROF_COUNT])
{
	double sum = 0;

	for (int k = 0; k < TFH_XPROF_COUNT; k++)
		sum += all->xprof[k];
	for (int k = 0; k < TFH_XPROF_COUNT; k++)
		share[k] = sum > 0 ? all->xprof[k] / sum : NAN;
}
