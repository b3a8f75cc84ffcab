/* Waiting for a recording that another thread is just starting. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/life/life.h"
#include "record/process/requests.h"

/* atomic: the process in which a thread of ours begins the recording; 0: none */
static uint32_t aside;

/* If a wait has timed out once, nobody waits for the same thing again. */
static void wait_while(uint32_t *word, uint32_t value, unsigned ms)
{
	const struct timespec time = {ms / 1000, ms % 1000 * 1000000l};

	if (!__atomic_load_n(&tfh_requests.start_waited, __ATOMIC_RELAXED) &&
	    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &time, NULL, 0) &&
	    errno == ETIMEDOUT && ms >= TFH_START_MS)
		__atomic_store_n(&tfh_requests.start_waited, true, __ATOMIC_RELAXED);
}

/*
 * Records made meanwhile would be in plain memory and die with the process. So the first copies and
 * launches wait until there is a journal: 1 to 3 ms once, and at most a second (a run directory on
 * a file system that hangs). Then they go on with their rings in memory.
 */
void tfh_wait_for_journal(unsigned ms)
{
	if (__atomic_load_n(&tfh_recorder.start_state, __ATOMIC_ACQUIRE) == TFH_START_BUSY)
		wait_while(&tfh_recorder.start_state, TFH_START_BUSY, ms);
}

void tfh_start_wait(unsigned ms)
{
	uint32_t begins = __atomic_load_n(&aside, __ATOMIC_ACQUIRE);
	struct tfh_steady steady;
	int saved = errno;

	/* If nothing is recorded, no system call is made. */
	if ((!begins &&
	     __atomic_load_n(&tfh_recorder.start_state, __ATOMIC_ACQUIRE) != TFH_START_BUSY) ||
	    tfh_self.guard & ~TFH_GUARD_FILLING || tfh_raw_getpid() != tfh_recorder.pid)
		return;
	tfh_steady_begin(&steady); /* a signal would end the wait */
	tfh_steady_long(&steady);
	/* Waits for its end, not only for the journal: device times and the flusher come after
	 * that. */
	if (begins == (uint32_t)tfh_recorder.pid)
		wait_while(&aside, begins, ms);
	else
		tfh_wait_for_journal(ms);
	tfh_steady_end(&steady);
	errno = saved;
}

void tfh_start_never(void)
{
	uint32_t none = TFH_START_NOT;

	if (__atomic_compare_exchange_n(&tfh_recorder.start_state, &none, TFH_START_FAILED, false,
					__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		__atomic_store_n(&tfh_mode, TFH_MODE_DEAD, __ATOMIC_RELEASE);
	else if (none == TFH_START_BUSY)
		__atomic_store_n(&tfh_requests.start_unwanted, true, __ATOMIC_RELEASE);
}

static void set_and_wake(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void tfh_start_ended(uint32_t state)
{
	set_and_wake(&tfh_recorder.start_state, state);
}

void tfh_aside(uint32_t pid)
{
	if (pid)
		__atomic_store_n(&aside, pid, __ATOMIC_RELEASE);
	else
		set_and_wake(&aside, 0);
}
