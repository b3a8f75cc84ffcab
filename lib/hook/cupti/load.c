/*
 * Loads libcupti on its own thread. Loading takes the loader's lock, which a thread of the job may
 * hold while a library's constructor waits for another thread. If that other thread loaded libcupti
 * itself at its first launch, both would wait forever.
 */
#include "hook/cupti/cupti.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/gpu/gpu.h"
#include "record/process/apart.h"
#include "record/process/lock.h"
#include "record/record.h"
#include "record/process/thread.h"

#define WAIT_SECONDS 1

enum { NOT, LOADING, DONE };
/* Atomic, futex. It is listed with the locks, because a forked child lacks that thread and starts
 * again. */
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
	tfh_thread_begin("tfhook-load");
	load();
	tfh_thread_end();
	return arg;
}

static bool make_thread(void)
{
	pthread_t thread;

	if (tfh_thread_start(&thread, load_main, NULL))
		return false;
	pthread_detach(thread);
	return true;
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
