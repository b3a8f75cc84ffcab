/* Several devices of one process that compute for unequal times. */
#include <math.h>

#include "judge/verdict/verdict.h"

static double longest_s(const struct tfh_result *r)
{
	double s = 0;

	for (uint32_t i = 0; i < r->n_devices; i++)
		s = fmax(s, r->devices[i].compute_s);
	return s;
}

double tfh_uneven_devices_s(const struct tfh_result *r)
{
	double all = 0;

	for (uint32_t i = 0; i < r->n_devices; i++)
		all += r->devices[i].compute_s;
	return r->n_devices > 1 ? longest_s(r) - all / r->n_devices : 0;
}

double tfh_even_devices_s(const struct tfh_result *r)
{
	double step = tfh_mean_step_s(r), more = tfh_uneven_devices_s(r);
	double least = TFH_BLOCKING_SHARE * step;

	/* Where something computes longer than the busiest device does, the devices compute in
	 * succession, and a step takes their sum however that is divided. */
	return more > 0 && more >= least &&
			       r->breakdown[TFH_PART_COMPUTE].s_per_step <= longest_s(r) + least
		       ? step - more
		       : NAN;
}

void tfh_find_uneven_devices(struct tfh_result *r)
{
	struct tfh_verdict *v = &r->steady;
	double step = tfh_mean_step_s(r);

	if (TFH_DETECT_UNEVEN_DEVICES && v->cls == TFH_CLASS_COMPUTE_BOUND &&
	    v->cause != TFH_CAUSE_COMPUTE_CONTENTION &&
	    step - tfh_even_devices_s(r) >= (1 - TFH_ACCOUNT_COMPUTE_SHARE) * step)
		v->cause = TFH_CAUSE_COMPUTE_IMBALANCE;
}
