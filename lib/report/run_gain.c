/* The whole run's time, and what a gain of one process is of it. */
#include <math.h>

#include "report/text_parts.h"

double tfh_run_s(const struct tfh_result *r)
{
	double wall = (double)tfh_run_wall_ns(r->run) * 1e-9;

	return wall > 0 && r->end != TFH_END_NONE ? wall : NAN;
}

double tfh_run_saves(const struct tfh_result *r, double saved_s)
{
	return saved_s * (1 + r->found.alike);
}
