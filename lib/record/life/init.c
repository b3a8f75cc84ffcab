/*
 * Life of the recorder in a process: load, first hooked call, start of recording, fork, exit.
 *
 * At load nothing happens but reading the environment and registering the fork handler. Hooked
 * calls may come before our constructor (other libraries' constructors): whoever comes first
 * initialises, others pass through meanwhile.
 */
#include "record/internal.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/watch/nvml_thread.h"
#include "record/flusher.h"
#include "record/gpu/gpu.h"
#include "record/process/lock.h"
#include "record/process/settings.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

struct tfh_record_proc tfh_p = {.dir.rank.rank = -1};
uint32_t tfh_mode = TFH_MODE_COLD;

static uint32_t no_generation; /* until the page exists: 0 never equals a ring's */
uint32_t *tfh_generation = &no_generation;
static uint32_t *generation_page;

static uint32_t init_state; /* atomic: 0 not, 1 being done, 2 done */

pid_t tfh_raw_getpid(void)
{
	return (pid_t)syscall(SYS_getpid);
}

/* Wiped by the kernel in a forked child, also when no fork handler runs. Older kernels: the handler
 * has to do. */
static bool make_generation(void)
{
	uint32_t *page =
		mmap(NULL, TFH_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return false;
	madvise(page, TFH_PAGE, MADV_WIPEONFORK);
	tfh_clock_init(NULL);
	tfh_clock_read_pair(&tfh_p.first_pair);
	tfh_p.generation = 2;
	*page = tfh_p.generation;
	generation_page = page;
	return true;
}

static void after_fork(void);

static void atfork_child(void)
{
	tfh_p.pid = tfh_raw_getpid();
	tfh_p.paused = 0; /* also where nothing was called yet */
	tfh_locks_forked();
	tfh_devices_forked();
	if (generation_page)
		after_fork();
}

static void read_settings(void)
{
	tfh_options_read(&tfh_p.options, environ);
	if (getauxval(AT_SECURE) || !tfh_opt_bool(&tfh_p.options, TFH_OPT_ENABLED))
		tfh_mode = TFH_MODE_DEAD;
}

int64_t tfh_setting(enum tfh_option id)
{
	return tfh_opt_int(&tfh_p.options, id);
}

const char *tfh_setting_text(enum tfh_option id)
{
	return tfh_opt_str(&tfh_p.options, id);
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
	tfh_p.pid = tfh_raw_getpid();
	read_settings();
	if (tfh_mode != TFH_MODE_DEAD)
		pthread_atfork(tfh_devices_hold, tfh_devices_go_on, atfork_child);
	__atomic_store_n(&init_state, 2, __ATOMIC_RELEASE);
	errno = saved;
}

__attribute__((constructor)) static void on_load(void)
{
	tfh_init();
}

/* A child that no fork handler saw made. Its other threads pass through until it is done. */
static int adopt(pid_t pid)
{
	static pid_t adopted; /* atomic */
	pid_t last = __atomic_load_n(&adopted, __ATOMIC_RELAXED);

	if (last == pid || !__atomic_compare_exchange_n(&adopted, &last, pid, false,
							__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return -ECHILD;
	tfh_p.paused = 0;
	tfh_locks_forked();
	tfh_devices_forked();
	after_fork();
	tfh_self.guard++; /* this is our own code, whose end is still to come */
	__atomic_store_n(&tfh_p.pid, pid, __ATOMIC_RELEASE);
	return 0;
}

int tfh_process_check(void)
{
	static uint32_t lock TFH_LOCK_WORD;
	pid_t pid = tfh_raw_getpid();
	bool made;

	if (__atomic_load_n(&init_state, __ATOMIC_ACQUIRE) != 2)
		return -EAGAIN;
	if (pid != tfh_p.pid) {
		/* A vfork child runs in its parent's memory, and there the page is not wiped. */
		if (!generation_page || *generation_page)
			return -ECHILD;
		return adopt(pid);
	}
	if (__atomic_load_n(&tfh_generation, __ATOMIC_ACQUIRE) != &no_generation)
		return 0;
	/* The first thread needs some 100 us for it, once in the process' life. */
	if (!tfh_lock(&lock))
		return -EAGAIN;
	made = generation_page || make_generation();
	if (made) /* here, because a child may have been forked after make_generation() */
		__atomic_store_n(&tfh_generation, generation_page, __ATOMIC_RELEASE);
	tfh_unlock(&lock);
	return made ? 0 : -EAGAIN;
}

/* Everything of one recording; options, identity and what the job asked for stay. */
static void forget_recording(void)
{
	/* Whoever asks the old recording for something from here on is told that there is none; who
	 * asked before sees by the generation that it is over. */
	__atomic_store_n(&tfh_p.start_state, TFH_START_FAILED, __ATOMIC_SEQ_CST);
	__atomic_store_n(&tfh_p.generation, tfh_p.generation + 2, __ATOMIC_RELEASE);
	tfh_flusher_forget();
	tfh_intern_forget();
	*generation_page = tfh_p.generation;
	tfh_p.next_thread = 0;
	tfh_p.beyond_early = 0;
	tfh_p.steps_off = 0;
	tfh_p.window_off = 0;
	if (!tfh_confined(&tfh_self)) /* else the parent's serves */
		tfh_clock_read_pair(&tfh_p.first_pair);
	__atomic_store_n(&tfh_p.start_state, TFH_START_NOT, __ATOMIC_RELEASE);
}

/* Back to COLD with everything new; what the parent recorded is the parent's to write. */
static void after_fork(void)
{
	tfh_rings_forked();
	tfh_journal_disown(&tfh_p.journal);
	tfh_early_forget();
	forget_recording();
	tfh_self_forked(&tfh_self);
	if (tfh_mode == TFH_MODE_HOLD) /* the parent is leaving */
		tfh_mode = TFH_MODE_DEAD;
	if (tfh_mode != TFH_MODE_DEAD)
		tfh_mode = TFH_MODE_COLD;
}

static uint32_t exec_closed; /* atomic: this process was closed for an exec */

/* Is there a recording to close? Where nothing is recorded no system call is made: a sandbox may
 * kill for it. An exec that is bound to fail (a search along PATH) is not worth an end and a new
 * beginning. */
static bool exec_closes(const char *path)
{
	uint32_t mode;

	if (tfh_confined(&tfh_self))
		return false;
	tfh_start_wait(1000);
	mode = __atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE);
	return (mode == TFH_MODE_ON || mode == TFH_MODE_OFF) && tfh_raw_getpid() == tfh_p.pid &&
	       (!path || !access(path, X_OK));
}

void tfh_exec_begin(const char *path)
{
	int saved = errno;

	if (exec_closes(path)) {
		tfh_finish(true);
		__atomic_store_n(&exec_closed, tfh_flusher_closed(), __ATOMIC_RELEASE);
	}
	errno = saved;
}

/* Other threads may be inside calls that end on the rings of what is over: journal_maps.c, early_calls.c. */
static void begin_anew(void)
{
	if (!__atomic_exchange_n(&exec_closed, 0, __ATOMIC_ACQ_REL) || !tfh_flusher_closed())
		return; /* of several threads that came back another one did it */
	if (!tfh_rings_quiet()) {
		tfh_log(1, "recording ended at an exec that failed: a thread was just beginning");
		return;
	}
	tfh_journal_release(&tfh_p.journal);
	tfh_early_renew();
	forget_recording();
	__atomic_store_n(&tfh_mode, TFH_MODE_COLD, __ATOMIC_RELEASE);
}

void tfh_exec_failed(void)
{
	static uint32_t lock TFH_LOCK_WORD;
	struct tfh_steady steady;
	int saved = errno;

	/* Where nothing was recorded no system call is made. */
	if (!__atomic_load_n(&exec_closed, __ATOMIC_ACQUIRE) || tfh_raw_getpid() != tfh_p.pid)
		return;
	tfh_steady_begin(&steady);
	if (tfh_lock(&lock)) {
		begin_anew();
		tfh_unlock(&lock);
	}
	tfh_steady_end(&steady);
	errno = saved;
}
