/*
 * Loads libcupti on a thread of its own. That takes the loader's lock, which a thread of the job
 * may hold while a library's constructor waits for another thread. If that other thread loaded
 * libcupti itself at its first launch, both would wait forever.
 */
#include "hook/cupti/cupti.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/gpu.h"
#include "record/lock.h"
#include "record/record.h"
#include "record/sanitizer.h"

#define STACK_BYTES (2u << 20) /* like the flusher's */
#define WAIT_SECONDS 1

enum { NOT, LOADING, DONE };
/* Atomic, futex. Listed with the locks, because a forked child lacks that thread and starts again.
 */
static uint32_t state TFH_LOCK_WORD;
static int result;

static void load(void)
{
	result = tfh_cupti_load();
	__atomic_store_n(&state, DONE, __ATOMIC_RELEASE);
	syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void *load_main(void *arg)
{
	tfh_self.guard = 1; /* nothing that runs here belongs to the job */
	tfh_self.guard_at = UINT64_MAX;
	tfh_sanitizer_ignore_begin();
	pthread_setname_np(pthread_self(), "tfhook-load");
	load();
	tfh_sanitizer_ignore_end();
	return arg;
}

static bool make_thread(void)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, &attr, load_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return !err;
}

int tfh_cupti_loaded(void)
{
	const struct timespec time = {.tv_sec = WAIT_SECONDS};
	uint32_t was = NOT;

	if (__atomic_compare_exchange_n(&state, &was, LOADING, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		/* After injection, nothing runs later that could retry. */
		if (tfh_on_flusher() || tfh_cupti_is_injected() || !make_thread())
			load();
		else
			syscall(SYS_futex, &state, FUTEX_WAIT_PRIVATE, LOADING, &time, NULL, 0);
	}
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == DONE ? result : -EAGAIN;
}
