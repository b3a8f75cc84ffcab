/* What the machine and the container say of the whole run: enough of it to be worth a sentence. */
#include <math.h>

#include "judge/verdict/verdict.h"

/* The mean of a row's first or second value, NAN: not read, or for too short a time. */
static double mean_of(const struct tfh_run *run, uint32_t process, enum tfh_meter meter,
		      uint32_t value)
{
	const struct tfh_meter_line *l;
	uint32_t n = tfh_run_meters(run, process, &l);

	for (; n--; l++)
		if (l->meter == meter && l->value == value)
			return l->time_s < TFH_FACTS_LEAST_SAMPLED_S ? NAN : l->mean;
	return NAN;
}

/* Not less than `least`, else 0: nothing is said of it. */
static double from(double least, double value)
{
	return value >= least ? value : 0;
}

void tfh_find_machine(const struct tfh_run *run, struct tfh_result *r)
{
	uint32_t p = r->process;
	struct tfh_machine_findings *m = &r->found.machine;
	double busy = mean_of(run, p, TFH_METER_CPU, 0), steal = mean_of(run, p, TFH_METER_CPU, 1);
	double count = mean_of(run, p, TFH_METER_CPU_COUNT, 0);
	double limit = mean_of(run, p, TFH_METER_CPU_COUNT, 1);

	m->processors = count;
	m->limit = limit < count ? limit : 0;
	m->busy = from(TFH_VERDICT_MACHINE_BUSY * count, busy);
	m->steal = from(TFH_VERDICT_MACHINE_STEAL * count, steal);
	m->throttled = from(TFH_VERDICT_MACHINE_THROTTLED, mean_of(run, p, TFH_METER_THROTTLED, 0));
	m->io = from(TFH_VERDICT_MACHINE_IO, fmax(mean_of(run, p, TFH_METER_IO_PRESSURE, 1),
						  mean_of(run, p, TFH_METER_OWN_IO, 1)));
	m->memory =
		from(TFH_VERDICT_MACHINE_MEMORY, fmax(mean_of(run, p, TFH_METER_MEMORY_PRESSURE, 0),
						      mean_of(run, p, TFH_METER_OWN_MEMORY, 0)));
	m->swap = from(TFH_VERDICT_MACHINE_SWAP,
		       mean_of(run, p, TFH_METER_SWAP, 0) + mean_of(run, p, TFH_METER_SWAP, 1));
}
