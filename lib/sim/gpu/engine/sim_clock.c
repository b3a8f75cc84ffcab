/*
 * Time: the real clock, or a virtual one. The virtual clock advances only where a call costs time
 * or waits: to the end of the next operation. So a run takes only the time of the real work, and
 * its times are exact. One clock for all threads of a process.
 */
#include "sim/gpu/engine/engine.h"

uint64_t sim_now(void)
{
	return sim_cfg.virtual_time ? sim_virtual_now() : sim_real_now();
}

void sim_sleep_until(uint64_t ns)
{
	if (sim_cfg.virtual_time) {
		sim_virtual_until(ns);
		return;
	}
	struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
}

void sim_host_cost(uint64_t ns)
{
	if (!ns)
		return;
	if (sim_cfg.virtual_time) {
		sim_virtual_cost(ns);
		return;
	}
	for (uint64_t end = sim_now() + ns; sim_now() < end;)
		;
}

void sim_poll_cost(void)
{
	if (sim_cfg.virtual_time)
		sim_virtual_cost(sim_cfg.poll_ns);
}
