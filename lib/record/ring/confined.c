/*
 * Threads that may not read the clock. Strict seccomp forbids the time stamp counter along with
 * system calls, prctl(PR_SET_TSC) forbids the counter alone, and clock_gettime needs the counter,
 * too. Reading it would kill a job that runs well without tfhook, so the calls of such a thread are
 * only counted.
 */
#include <errno.h>
#include <sys/prctl.h>

#include "base/refused.h"
#include "record/ring/rings.h"

void tfh_confine(void)
{
	struct tfh_self *self = &tfh_self;
	struct tft_ring *ring = tfh_own_ring(self) ? self->ring : NULL;

	if (tfh_confined(self))
		return;
	self->guard |= TFH_GUARD_CONFINED;
	self->guard_at = UINT64_MAX;
	if (!ring)
		return;
	if (tfh_peek(&ring->dropped) == tfh_peek(&ring->drop_seen))
		tfh_poke(&ring->drop_first, tfh_ticks());
	tfh_poke(&ring->drop_last, 0);
}

void tfh_confine_end(void)
{
	tfh_self.guard &= ~TFH_GUARD_CONFINED;
}

void tfh_confined_call(struct tfh_self *self)
{
	/* release: a thread that sees the count sees the bracket */
	if (tfh_own_ring(self))
		__atomic_fetch_add(&self->ring->dropped, 1, __ATOMIC_RELEASE);
	else
		__atomic_fetch_add(&tfh_recorder.beyond_early, 1, __ATOMIC_RELAXED);
}

bool tfh_counter_refused(void)
{
	int how = PR_TSC_ENABLE, saved = errno;

	if (!tfh_may_call(TFH_CALL_THREAD) || prctl(PR_GET_TSC, &how, 0, 0, 0))
		how = PR_TSC_ENABLE;
	errno = saved;
	return how != PR_TSC_ENABLE;
}
