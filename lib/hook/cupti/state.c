/*
 * Shared state for the use of CUPTI: the process it belongs to, whose callbacks are registered,
 * which kinds are wanted.
 */
#include "hook/cupti/cupti.h"

#include <unistd.h>

#include "record/gpu/gpu.h"

static pid_t owner;	    /* the process that turned CUPTI on; 0: none */
static uint32_t registered; /* atomic */
static uint32_t gone;	    /* atomic: CUPTI was finalized by another user */
static uint64_t wanted;	    /* atomic: one bit per kind */
static bool injected;

bool tfh_cupti_here(void)
{
	return !owner || owner == getpid();
}

void tfh_cupti_claim(void)
{
	owner = getpid();
}

bool tfh_cupti_registered(void)
{
	return __atomic_load_n(&registered, __ATOMIC_ACQUIRE);
}

void tfh_cupti_has_ours(void)
{
	__atomic_store_n(&registered, 1, __ATOMIC_RELEASE);
}

void tfh_cupti_want(uint64_t kinds)
{
	__atomic_store_n(&wanted, kinds, __ATOMIC_RELEASE);
}

bool tfh_cupti_wants(int kind)
{
	return kind >= 0 && kind < TFH_ACT_KINDS &&
	       __atomic_load_n(&wanted, __ATOMIC_ACQUIRE) >> kind & 1;
}

void tfh_cupti_gone(void)
{
	tfh_gpu_cut();
	__atomic_store_n(&gone, 1, __ATOMIC_RELEASE);
}

bool tfh_cupti_is_gone(void)
{
	return __atomic_load_n(&gone, __ATOMIC_ACQUIRE);
}

bool tfh_cupti_was_gone(void)
{
	return __atomic_exchange_n(&gone, 0, __ATOMIC_ACQ_REL);
}

void tfh_cupti_injected(void)
{
	injected = true;
}

bool tfh_cupti_is_injected(void)
{
	return injected;
}

void tfh_cupti_first_buffer(void)
{
	static uint32_t seen;

	if (injected && !__atomic_exchange_n(&seen, 1, __ATOMIC_ACQ_REL))
		tfh_start_aside();
}
