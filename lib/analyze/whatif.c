/*
 * What removing a class of blocking time would gain. Host times alone bear a ceiling: the step
 * without that time. How much of it comes true depends on what runs beside it, so no point value is
 * given (step_s stays NAN); the truth lies between low_s and high_s.
 */
#include <math.h>

#include "analyze/internal.h"

static double removed(const struct tfh_result *r, enum tfh_remove what)
{
	enum tfh_part part = tfh_remove_part(what);
	double s = 0;

	if (part < TFH_PART_COUNT)
		return r->breakdown[part].s_per_step;
	for (int p = 0; p < TFH_PART_COUNT; p++)
		if (p != TFH_PART_COMPUTE && p != TFH_PART_UNATTRIBUTED)
			s += r->breakdown[p].s_per_step;
	return s;
}

void tfh_whatif(struct tfh_result *r)
{
	double step = 0;

	for (int p = 0; p < TFH_PART_COUNT; p++)
		step += r->breakdown[p].s_per_step;
	if (!(step > 0))
		return;
	for (int what = 0; what < TFH_REMOVE_COUNT; what++) {
		double s = removed(r, what);
		/* Below 1 % nothing is worth promising. */
		if (!(s >= 0.01 * step))
			continue;
		struct tfh_whatif *w = &r->whatif[r->n_whatif++];
		w->remove = what;
		w->step_s = w->speedup = NAN;
		w->low_s = step - s;
		w->high_s = step;
		w->floor_s = r->breakdown[TFH_PART_COMPUTE].s_per_step;
		w->ceiling_speedup = step - s > 0 ? step / (step - s) : NAN;
	}
}
