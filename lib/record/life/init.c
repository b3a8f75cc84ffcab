/*
 * Load, and fork.
 *
 * At load, the library only reads the environment and registers the fork handler. Hooked calls may
 * come before our constructor (from other libraries' constructors). The first caller initialises;
 * others pass through meanwhile.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/environ.h"
#include "record/flush/flusher.h"
#include "record/life/life.h"
#include "record/process/filters.h"
#include "record/process/forks.h"
#include "record/process/lock.h"
#include "record/ring/journal.h"
#include "record/ring/rings.h"
#include "record/run/rundir.h"
#include "record/watch/nvml_thread.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* A forked child finds this empty. */
struct generation {
	struct tfh_epoch epoch;
	struct tfh_clock_pair first; /* read when the first hooked call came */
};
static struct generation *generation_page; /* atomic */

static uint32_t init_state; /* atomic: 0 not done, 1 under way, 2 done */

/*
 * The kernel wipes this page in a forked child, even when no fork handler runs. On older kernels
 * the handler has to suffice.
 *
 * Each thread makes a page of its own, and the first to finish decides. On a busy machine, a thread
 * that held a lock in here might not be scheduled for long, while all other threads' calls would
 * pass through unrecorded.
 */
static bool make_generation(void)
{
	struct generation *page = mmap(NULL, TFH_PAGE, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			  *none = NULL;

	if (page == MAP_FAILED)
		return false;
	madvise(page, TFH_PAGE, MADV_WIPEONFORK);
	tfh_clock_init(NULL);
	tfh_clock_read_pair(&page->first);
	page->epoch.handles = 1;
	page->epoch.generation = __atomic_load_n(&tfh_recorder.generation, __ATOMIC_RELAXED);
	if (!__atomic_compare_exchange_n(&generation_page, &none, page, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		munmap(page, TFH_PAGE);
	return true;
}

static void after_fork(void);

static void before_fork(void)
{
	tfh_devices_hold();
	tfh_forks_begin();
}

static void after_fork_in_parent(void)
{
	tfh_forks_end();
	tfh_devices_go_on();
}

static void forget_threads(void)
{
	tfh_recorder.paused = 0; /* even if nothing has been called yet */
	tfh_locks_forked();
	tfh_devices_forked();
	tfh_forks_forked();
	tfh_exit_forked();
}

static void atfork_child(void)
{
	forget_threads();
	/* Otherwise the first call finds out that this is a child. */
	if (!tfh_filters_allowed())
		return;
	tfh_recorder.pid = tfh_raw_getpid();
	if (generation_page)
		after_fork();
}

static void read_settings(void)
{
	tfh_env_started_with(environ);
	tfh_options_read(&tfh_recorder.options, environ);
	if (getauxval(AT_SECURE) || !tfh_opt_bool(&tfh_recorder.options, TFH_OPT_ENABLED))
		tfh_mode = TFH_MODE_DEAD;
}

static void identify(void)
{
	sched_getaffinity(0, sizeof(tfh_recorder.processors), &tfh_recorder.processors);
	tfh_recorder.pid = tfh_raw_getpid();
}

/* No lock and no pthread_once: a hook that runs inside this must pass through, not wait. */
void tfh_init(void)
{
	uint32_t none = 0;
	int saved = errno;

	if (__atomic_load_n(&init_state, __ATOMIC_ACQUIRE) == 2)
		return;
	if (!__atomic_compare_exchange_n(&init_state, &none, 1, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return;
	read_settings();
	if (tfh_filters_find())
		identify();
	if (tfh_mode != TFH_MODE_DEAD)
		pthread_atfork(before_fork, after_fork_in_parent, atfork_child);
	__atomic_store_n(&init_state, 2, __ATOMIC_RELEASE);
	errno = saved;
}

bool tfh_may_begin(void)
{
	tfh_init();
	if (!tfh_filters_allowed()) /* only rank 0 reports a failure */
		tfh_rank_detect(&tfh_recorder.rank, &tfh_recorder.options, NULL);
	if (!tfh_filters_allow()) {
		__atomic_store_n(&tfh_mode, TFH_MODE_DEAD, __ATOMIC_RELEASE);
		return false;
	}
	if (!tfh_recorder.pid)
		identify();
	return true;
}

__attribute__((constructor)) static void on_load(void)
{
	tfh_init();
}

/* Adopts a child that was created without fork handlers (by a clone system call). Its other threads
 * pass through until this is done. */
static int adopt(pid_t pid)
{
	static pid_t adopted; /* atomic */
	pid_t last = __atomic_load_n(&adopted, __ATOMIC_RELAXED);

	if (last == pid || !__atomic_compare_exchange_n(&adopted, &last, pid, false,
							__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return -ECHILD;
	forget_threads();
	after_fork();
	tfh_self.guard++; /* this is our own code, which has yet to end */
	__atomic_store_n(&tfh_recorder.pid, pid, __ATOMIC_RELEASE);
	return 0;
}

int tfh_process_check(void)
{
	struct generation *page = __atomic_load_n(&generation_page, __ATOMIC_ACQUIRE);
	pid_t pid = tfh_raw_getpid();

	if (__atomic_load_n(&init_state, __ATOMIC_ACQUIRE) != 2)
		return -EAGAIN;
	if (pid != tfh_recorder.pid) {
		/* A vfork child runs in its parent's memory, where the page is not wiped. */
		if (!page || page->epoch.generation)
			return -ECHILD;
		return adopt(pid);
	}
	if (page && __atomic_load_n(&tfh_epoch, __ATOMIC_ACQUIRE) == &page->epoch)
		return 0;
	if (!page && !make_generation())
		return -EAGAIN;
	/* Read here, because a child may have been forked after make_generation(). */
	page = __atomic_load_n(&generation_page, __ATOMIC_ACQUIRE);
	__atomic_store_n(&tfh_epoch, &page->epoch, __ATOMIC_RELEASE);
	return 0;
}

struct tft_clock_triple tfh_first_clock(void)
{
	const struct tfh_clock_pair *first = &generation_page->first;

	return (struct tft_clock_triple){first->ticks, (uint64_t)first->mono_ns,
					 (uint64_t)first->real_ns};
}

void tfh_forget_recording(void)
{
	/* From here on, requests to the old recording find that there is none. Earlier callers see
	 * from the generation that it is over. */
	__atomic_store_n(&tfh_recorder.start_state, TFH_START_FAILED, __ATOMIC_SEQ_CST);
	__atomic_store_n(&tfh_recorder.generation, tfh_recorder.generation + 2, __ATOMIC_RELEASE);
	tfh_flusher_forget();
	tfh_intern_forget();
	generation_page->epoch.generation = tfh_recorder.generation;
	tfh_recorder.next_thread = 0;
	tfh_recorder.beyond_early = 0;
	tfh_recorder.steps_off = 0;
	tfh_recorder.window_off = 0;
	if (!tfh_confined(&tfh_self)) /* otherwise the parent's reading serves */
		tfh_clock_read_pair(&generation_page->first);
	__atomic_store_n(&tfh_recorder.start_state, TFH_START_NOT, __ATOMIC_RELEASE);
}

/* Returns to COLD with everything new. The parent writes what it recorded. */
static void after_fork(void)
{
	tfh_rings_forked();
	tfh_journal_disown(&tfh_journal);
	tfh_early_forget();
	tfh_forget_recording();
	tfh_self_forked(&tfh_self);
	if (tfh_mode == TFH_MODE_HOLD) /* the parent is exiting */
		tfh_mode = TFH_MODE_DEAD;
	if (tfh_mode != TFH_MODE_DEAD)
		tfh_mode = TFH_MODE_COLD;
}
