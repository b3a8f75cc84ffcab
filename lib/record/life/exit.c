/*
 * The end of a process: what exit handlers do, how long they may take, and how the job's other
 * threads are kept from noticing.
 *
 * Everything is written before the driver's own exit handler, not in our destructor. The flusher
 * flushes CUPTI, so a hung CUPTI delays the end by a bounded time. Whatever is not written by then
 * is in the journal, except for the last second's device times.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/gpu/gpu.h"
#include "record/life/life.h"
#include "record/process/forks.h"
#include "record/process/requests.h"
#include "record/watch/nvml_thread.h"

#define MS 1000000ull
#define EXIT_NS (2000 * MS)
/* A signal handler that exits may have interrupted a driver call. */
#define INSIDE_NS (1000 * MS)
#define HOLD_NS (50 * MS)

enum { NOT_YET, BEGUN, DONE };
static uint32_t registered[TFH_EXIT_AFTERS]; /* atomic */

static uint64_t held_until; /* atomic: CLOCK_MONOTONIC */

static uint64_t now(void)
{
	return (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
}

/*
 * Between the driver's exit handler and the end of the process, other threads' calls fail, and a
 * job may then complain or exit with another status. Without us this window is about 20 us, and the
 * exiting thread has just begun its time slice. Our work makes the window longer and moves it to
 * the end of that slice. So from here until the end, other threads wait before their next driver
 * call, but never longer than this. Two threads may exit at once, and a signal handler of either
 * may call the driver, so an exiting thread never waits here itself.
 */
static void hold(uint64_t end)
{
	tfh_self.exits = true;
	__atomic_store_n(&held_until, end, __ATOMIC_RELEASE);
}

void tfh_exit_wait(enum tfh_fn fn)
{
	static uint32_t word;
	uint64_t until, t, waited = 0;
	int saved = errno;

	if (tfh_self.depth || tfh_self.exits || tfh_fn_table[fn].family >= TFH_FAM_CONSUMER)
		return;
	/* Another preload may make the clock stand still. */
	while ((until = __atomic_load_n(&held_until, __ATOMIC_ACQUIRE)) > (t = now()) &&
	       waited < EXIT_NS + HOLD_NS) {
		uint64_t ns = until - t < 5 * MS ? until - t : 5 * MS;
		struct timespec ts = {.tv_nsec = (long)ns};

		if (syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0) &&
		    errno == ETIMEDOUT)
			waited += ns;
	}
	errno = saved;
}

static void at_exit(void)
{
	if (tfh_confined(&tfh_self))
		return;
	tfh_self_settle(&tfh_self);
	/* If so, the flusher may be waiting for a lock that this thread holds. */
	bool inside = tfh_self.depth || tfh_self.guard;
	uint64_t end = now() + (inside ? INSIDE_NS : EXIT_NS);

	tfh_start_wait(inside ? INSIDE_NS / MS : EXIT_NS / MS);
	if (!tfh_recording()) /* the parent's handlers also run in a forked child */
		return;
	tfh_devices_hold(); /* for good: the library's destructors come next */
	if (tfh_flusher_closed()) {
		if (__atomic_load_n(&tfh_mode, __ATOMIC_RELAXED) == TFH_MODE_HOLD)
			hold(now() + HOLD_NS); /* the driver's handler comes next */
		return;
	}
	if (!inside && tfh_gpu_exit())
		tfh_flush_by(end);
	hold(end);
	tfh_finish_by(true, TFH_MODE_HOLD, end);
	hold(now() + HOLD_NS);
}

void tfh_register_exit(enum tfh_exit_after after)
{
	uint32_t none = NOT_YET;

	if (!__atomic_compare_exchange_n(&registered[after], &none, BEGUN, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;
	tfh_unforked_begin();
	atexit(at_exit);
	__atomic_store_n(&registered[after], DONE, __ATOMIC_RELAXED);
	tfh_unforked_end();
}

void tfh_exit_forked(void)
{
	tfh_self.exits = false;
	for (int i = 0; i < TFH_EXIT_AFTERS; i++)
		if (registered[i] == BEGUN)
			registered[i] = NOT_YET;
}

void tfh_finish(bool clean)
{
	uint64_t ns, end;

	if (tfh_confined(&tfh_self))
		return;
	tfh_self_settle(&tfh_self);
	ns = tfh_self.depth ? INSIDE_NS : EXIT_NS;
	end = now() + ns;
	tfh_start_wait((unsigned)(ns / MS));
	tfh_finish_by(clean, TFH_MODE_DEAD, end);
}

/* Runs after the job's own destructors and exit handlers. There is something left to do if no
 * recording had begun when they ran. */
__attribute__((destructor)) static void on_unload(void)
{
	tfh_start_never();
	tfh_finish(true);
}
