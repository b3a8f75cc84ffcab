/* Flush and finish, requested by the job's threads. Each waits for the flusher's answer for a
 * limited time. */
#include <errno.h>

#include "record/flush/flusher.h"
#include "record/gpu/gpu.h"
#include "record/life/life.h"
#include "record/process/log.h"
#include "record/process/requests.h"

#define STUCK_NS 100000000ull
#define LOOK_NS 20000000ull

/* Whether the flusher is waiting inside CUPTI. The calling thread, whose signal handler interrupted
 * a driver call, may hold what CUPTI waits for. */
static bool stuck(uint64_t now)
{
	uint64_t since = __atomic_load_n(&tfh_requests.foreign_ns, __ATOMIC_RELAXED);

	return tfh_self.depth && since && now > since + STUCK_NS;
}

/* Whether the recording that had this generation is over, and its memory belongs to another one. */
static bool is_over(uint32_t generation)
{
	return __atomic_load_n(&tfh_recorder.generation, __ATOMIC_ACQUIRE) != generation;
}

/* Waits until *word is no longer `old`, or everything is closed. Another preload may make the clock
 * stand still, so the time that the kernel let pass counts as well. */
static bool wait_for(uint32_t *word, uint32_t old, uint64_t end, uint32_t generation)
{
	uint64_t begun = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC), waited = 0;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == old && !tfh_flusher_closed() &&
	       !is_over(generation)) {
		uint64_t now = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC), most;

		if (now >= end || waited >= end - begun || stuck(now))
			return false;
		most = end - now > LOOK_NS ? LOOK_NS : end - now;
		if (tfh_futex_wait(word, old, most))
			waited += most;
	}
	return true;
}

int tfh_flush_by(uint64_t end)
{
	struct tfh_requests *r = &tfh_requests;
	int saved = errno, err = 0;
	uint32_t ticket, done,
		generation = __atomic_load_n(&tfh_recorder.generation, __ATOMIC_ACQUIRE);

	tfh_self_settle(&tfh_self);
	if (!tfh_recording() || tfh_self.guard & ~TFH_GUARD_FILLING)
		return -EAGAIN;
	if (__atomic_load_n(&r->flusher, __ATOMIC_ACQUIRE) != TFH_FLUSHER_MADE)
		return -EAGAIN;
	tfh_find_rank();
	ticket = __atomic_add_fetch(&r->flush_asked, 1, __ATOMIC_SEQ_CST);
	tfh_flusher_wake();
	while (!err) {
		done = __atomic_load_n(&r->flush_done, __ATOMIC_ACQUIRE);
		if ((int32_t)(done - ticket) >= 0 || tfh_flusher_closed() || is_over(generation))
			break;
		if (!wait_for(&r->flush_done, done, end, generation))
			err = -ETIMEDOUT;
	}
	errno = saved;
	return err;
}

int tfh_flush_now(unsigned ms)
{
	uint64_t end;

	if (tfh_confined(&tfh_self))
		return -EAGAIN;
	end = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC) + ms * 1000000ull;
	tfh_start_wait(ms);
	return tfh_flush_by(end);
}

void tfh_finish_by(bool clean, enum tfh_mode mode, uint64_t end)
{
	struct tfh_requests *r = &tfh_requests;
	struct tfh_self *self = &tfh_self;
	bool first;
	uint32_t none = 0, generation = __atomic_load_n(&tfh_recorder.generation, __ATOMIC_ACQUIRE);
	int saved = errno;

	tfh_self_settle(self);
	if (!tfh_recording() || self->guard & ~TFH_GUARD_FILLING || tfh_flusher_closed() ||
	    __atomic_load_n(&r->gave_up, __ATOMIC_RELAXED))
		return;
	tfh_guard_begin(self);
	if (tfh_own_ring(self) && !(self->guard & TFH_GUARD_FILLING))
		tfh_agg_flush(self);
	tfh_find_rank();
	tfh_gpu_close();
	/* Calls that come later (other threads, the driver's own exit handlers) pass through. */
	__atomic_store_n(&tfh_mode, mode, __ATOMIC_RELEASE);
	first = __atomic_compare_exchange_n(&r->finish_asked, &none, clean ? 2 : 1, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	/* Set once more: after a failed exec, another recording may just be starting (start.c). */
	__atomic_store_n(&tfh_mode, mode, __ATOMIC_SEQ_CST);
	if (first && __atomic_load_n(&r->flusher, __ATOMIC_ACQUIRE) == TFH_FLUSHER_FAILED) {
		struct tfh_xfsz x;

		tfh_xfsz_block(&x);
		tfh_finish_here();
		tfh_xfsz_restore(&x);
	} else {
		tfh_flusher_wake();
		if (!wait_for(&r->finish_done, 0, end, generation))
			__atomic_store_n(&r->gave_up, 1, __ATOMIC_RELAXED);
	}
	tfh_guard_end(self);
	errno = saved;
}
