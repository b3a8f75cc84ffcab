/* What a profiler inside the job has requested from CUPTI, as seen by the hooks of share.c. */
#include "hook/cupti/cupti.h"

struct tfh_profiler tfh_profiler;

uint32_t tfh_profiler_round(void)
{
	return __atomic_load_n(&tfh_profiler.rounds, __ATOMIC_ACQUIRE);
}

bool tfh_profiler_has(int kind)
{
	return kind >= 0 && kind < TFH_ACT_KINDS &&
	       __atomic_load_n(&tfh_profiler.kinds[kind], __ATOMIC_ACQUIRE);
}

bool tfh_profiler_works(void)
{
	return __atomic_load_n(&tfh_profiler.count, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&tfh_profiler.completed, __ATOMIC_ACQUIRE);
}

uint32_t tfh_profiler_round_given(void)
{
	return tfh_profiler_works() ? UINT32_MAX : tfh_profiler_round();
}

void tfh_profiler_dropped(size_t n)
{
	if (tfh_profiler_works())
		__atomic_fetch_add(&tfh_profiler.dropped, n, __ATOMIC_RELAXED);
}
