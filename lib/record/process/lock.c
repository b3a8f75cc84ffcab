#include "record/process/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/arch.h"

/* ABANDONED: another thread has waited for the holder in vain. */
enum { FREE, HELD, AWAITED, ABANDONED };

/* About 2 us: the time that a running holder still needs. */
#define SPINS 64
/* Measured by the kernel, not by the job's clock, which may be faked or stand still. */
#define WAITS 5
#define WAIT_NS 2000000

/* The linker's names for the ends of the section. */
#pragma GCC visibility push(hidden)
extern uint32_t __start_tfh_locks[] __attribute__((weak)), __stop_tfh_locks[] __attribute__((weak));
#pragma GCC visibility pop

static bool take(uint32_t *word, uint32_t as)
{
	uint32_t was = FREE;

	return __atomic_compare_exchange_n(word, &was, as, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

bool tfh_lock_try(uint32_t *word)
{
	return take(word, HELD);
}

static bool wait_for(uint32_t *word)
{
	const struct timespec time = {0, WAIT_NS};
	uint32_t was = HELD;

	for (int i = 0; i < WAITS && was != ABANDONED; i++) {
		was = HELD;
		__atomic_compare_exchange_n(word, &was, AWAITED, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
		if (was == HELD || was == AWAITED)
			syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, AWAITED, &time, NULL, 0);
		if (take(word, AWAITED)) /* there may be other waiters */
			return true;
	}
	was = AWAITED;
	__atomic_compare_exchange_n(word, &was, ABANDONED, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	return false;
}

bool tfh_lock(uint32_t *word)
{
	int saved;
	bool done;

	for (int i = 0; i < SPINS; i++) {
		if (take(word, HELD))
			return true;
		if (__atomic_load_n(word, __ATOMIC_RELAXED) == ABANDONED)
			return false;
		tfh_arch_pause();
	}
	saved = errno;
	done = wait_for(word);
	errno = saved;
	return done;
}

void tfh_unlock(uint32_t *word)
{
	if (__atomic_exchange_n(word, FREE, __ATOMIC_RELEASE) != AWAITED)
		return;
	int saved = errno;
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = saved;
}

void tfh_locks_forked(void)
{
	if (__start_tfh_locks)
		memset(__start_tfh_locks, 0,
		       (size_t)((char *)__stop_tfh_locks - (char *)__start_tfh_locks));
}
