/*
 * From "kept in memory" to "recording": run directory, journal, flusher. One thread begins this
 * inside its first launch, copy, get-next or step, and does whatever needs the job's environment.
 * The flusher does whatever writes files: in a descriptor table of its own, so that the job never
 * meets them, and because a file system may never answer. On a busy machine the flusher may start
 * seconds late; then the thread does everything itself that cannot hang.
 *
 * On a network file system the journal comes first, in /dev/shm, and recording begins with it; the
 * flusher then opens the run directory. If that hangs, records stay in the journal, and calls
 * beyond its size are counted, as when a later write hangs. If it is not known what the directory's
 * file system is, the flusher does all of this, and the thread waits for it for at most a second.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/environ.h"
#include "base/priced.h"
#include "base/rules.h"
#include "record/flush/flusher.h"
#include "record/gpu/gpu.h"
#include "record/life/life.h"
#include "record/process/apart.h"
#include "record/process/log.h"
#include "record/process/requests.h"
#include "record/process/thread.h"
#include "record/ring/journal.h"
#include "record/ring/rings.h"
#include "record/ring/switch.h"
#include "record/run/place.h"
#include "record/run/runjson_write.h"
#include "record/write/write.h"

#define LATE_NS 50000000 /* how long a new thread may take to start */

static void who_am_i(void)
{
	ssize_t n = readlink("/proc/self/exe", tfh_recorder.exe, sizeof(tfh_recorder.exe) - 1);

	tfh_recorder.exe[n > 0 ? n : 0] = '\0';
	if (gethostname(tfh_recorder.host, sizeof(tfh_recorder.host)))
		strcpy(tfh_recorder.host, "unknown");
	tfh_recorder.host[sizeof(tfh_recorder.host) - 1] = '\0';
	for (char *c = tfh_recorder.host; *c; c++)
		if (*c == '/')
			*c = '_';
	tfh_command_line(tfh_recorder.command, sizeof(tfh_recorder.command));
	tfh_read_small("/proc/sys/kernel/random/boot_id", tfh_recorder.boot_id,
		       sizeof(tfh_recorder.boot_id));
	tfh_recorder.boot_id[strcspn(tfh_recorder.boot_id, "\n")] = '\0';
	tfh_recorder.process_start = tfh_process_start(tfh_recorder.pid);
}

/* Returns whether what a recording takes leaves enough to the job; if not, stderr says why. */
static bool have_memory(void)
{
	char what[128];

	if (tfh_tight_space()) {
		snprintf(what, sizeof(what),
			 "not recording: no memory for the rings under a limit of %llu MB",
			 (unsigned long long)(tfh_tight_space() >> 20));
		tfh_log_failure(what,
				"raise the limit of address space (ulimit -v, ulimit -d) to 1 GB");
		return false;
	}
	if (tfh_tight_lock()) {
		tfh_log_failure(
			"not recording: all memory is to be locked, and there is none for the "
			"rings",
			"raise the limit of locked memory (ulimit -l)");
		return false;
	}
	return true;
}

/* Examines the process itself. Returns false if it is not to be recorded; if memory is the reason,
 * stderr says so. */
static bool look(void)
{
	struct tft_clock_triple first = tfh_first_clock();

	if (first.monotonic_ns)
		tfh_recorder.first = first;
	who_am_i();
	tfh_env_renew();
	tfh_rank_detect(&tfh_recorder.rank, &tfh_recorder.options, NULL);
	if (!tfh_filter_program(&tfh_recorder) ||
	    !tfh_ranks_match(tfh_opt_str(&tfh_recorder.options, TFH_OPT_RANKS),
			     tfh_recorder.rank.rank))
		return false;
	tfh_recorder.priced = tfh_priced_here();
	tfh_dir.of_sagemaker = tfh_env("SM_CURRENT_HOST") != NULL;
	tfh_in_container();
	return have_memory();
}

static char what[PATH_MAX + 128]; /* without a flusher, the stack may be 16 KiB */

/* `err`: the result of planning or opening the run directory. Returns whether there is one;
 * if not, stderr says why. */
static bool have_directory(int err)
{
	if (!err)
		return true;
	snprintf(what, sizeof(what), "not recording: cannot write to %s: %s", tfh_dir.path,
		 tfh_dir.why ? tfh_dir.why : strerror(-err));
	tfh_log_failure(what, "set TFHOOK_DIR to a directory that this job may write to");
	return false;
}

/* Returns whether there is a journal; if not, stderr says why. */
static bool open_journal(void)
{
	int err =
		tfh_journal_open(&tfh_journal, &tfh_dir,
				 (uint64_t)tfh_opt_int(&tfh_recorder.options, TFH_OPT_RING_TOTAL));

	if (err) {
		snprintf(what, sizeof(what), "not recording: no memory for the rings: %s",
			 strerror(-err));
		tfh_log_failure(
			what,
			"lower TFHOOK_RING_TOTAL or raise the limit of address space (ulimit -v)");
		return false;
	}
	tfh_describe_journal();
	tfh_window_setup();
	tfh_log(1, "recording to %s, journal %s", tfh_dir.path,
		tfh_journal.anonymous ? "in memory" : tfh_journal.path);
	for (int id = 0; id < TFH_OPT_COUNT; id++)
		if (tfh_recorder.options.error[id])
			tfh_log(1, "%s has an invalid value and is ignored",
				tfh_option_specs[id].name);
	return true;
}

static void give_up(void)
{
	__atomic_store_n(&tfh_mode, TFH_MODE_DEAD, __ATOMIC_RELEASE);
	tfh_start_ended(TFH_START_FAILED);
}

/* There is a journal: the calls kept in memory go first. From here on, the records survive the
 * process. */
static void begin_with_journal(void)
{
	tfh_drain(true);
	tfh_take_early_losses();
	tfh_register_exit(TFH_EXIT_AFTER_START);
	__atomic_store_n(&tfh_recorder.start_state, TFH_START_DONE, __ATOMIC_RELEASE);
	__atomic_store_n(&tfh_epoch->generation, tfh_recorder.generation | 1, __ATOMIC_RELEASE);
	__atomic_store_n(&tfh_mode,
			 tfh_recorder.window_off || tfh_recorder.paused ? TFH_MODE_OFF
									: TFH_MODE_ON,
			 __ATOMIC_SEQ_CST);
	/* The request may come from a thread whose exec failed and that meant the previous
	 * recording. One of the two threads sees the other. */
	if (__atomic_load_n(&tfh_requests.finish_asked, __ATOMIC_SEQ_CST))
		__atomic_store_n(&tfh_mode, TFH_MODE_DEAD, __ATOMIC_RELEASE);
	tfh_start_ended(TFH_START_DONE);
}

static bool make_recording(void)
{
	int err = tfh_rundir_plan(&tfh_dir, &tfh_recorder, false);

	if (!err)
		err = tfh_rundir_open(&tfh_dir, &tfh_recorder);
	if (!have_directory(err) || !open_journal()) {
		give_up();
		return false;
	}
	return true;
}

/* The journal first: nothing here touches the run directory's file system. */
static bool make_ahead(void)
{
	if (!have_directory(tfh_rundir_plan(&tfh_dir, &tfh_recorder, true)) || !open_journal()) {
		give_up();
		return false;
	}
	tfh_write_hold();
	return true;
}

/* Called on the flusher after make_ahead(), for as long as the file system takes. */
static bool open_directory(void)
{
	if (!have_directory(tfh_rundir_open(&tfh_dir, &tfh_recorder)))
		return false;
	tfh_describe_directory();
	tfh_write_retry();
	return true;
}

static void open_without_flusher(void)
{
	if (open_directory())
		return;
	__atomic_store_n(&tfh_mode, TFH_MODE_DEAD, __ATOMIC_RELEASE);
	tfh_journal_unlink(&tfh_journal);
}

/* The flusher has taken the journal's descriptor along to its own table, so it is closed in the
 * job's. */
static void hand_over(void)
{
	if (!tfh_journal.anonymous && tfh_journal.populates && tfh_apart_decided())
		tfh_journal_handed_over(&tfh_journal);
}

/* The flusher makes the journal. The thread that waits for it then begins, so that device times
 * come with the first call. */
static void begin_when_made(void)
{
	if (!tfh_flusher_has_set_up(TFH_START_MS * 1000000ull)) {
		__atomic_store_n(&tfh_requests.start_waited, true, __ATOMIC_RELAXED);
	} else if (__atomic_load_n(&tfh_recorder.start_state, __ATOMIC_ACQUIRE) == TFH_START_BUSY) {
		begin_with_journal();
		tfh_gpu_begin();
	}
}

void tfh_start(const struct tfh_steady *steady)
{
	uint32_t none = TFH_START_NOT;
	enum tfh_reach reach = TFH_REACH_UNKNOWN;
	bool remote, made;

	if (!__atomic_compare_exchange_n(&tfh_recorder.start_state, &none, TFH_START_BUSY, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		tfh_wait_for_journal(TFH_START_MS);
		return;
	}
	tfh_steady_long(steady);
	if (!look()) {
		give_up();
		return;
	}
	/* A signal stack, often only 8 KiB, is too small for this. */
	if (!tfh_on_signal_stack())
		reach = tfh_rundir_reach(&tfh_dir, &tfh_recorder.options);
	remote = reach == TFH_REACH_REMOTE;
	made = tfh_flusher_start(steady, remote ? make_ahead : make_recording, begin_with_journal,
				 remote ? open_directory : NULL);
	if (made && (reach == TFH_REACH_UNKNOWN || tfh_flusher_sets_up(LATE_NS))) {
		begin_when_made();
	} else if (remote ? make_ahead() : make_recording()) {
		begin_with_journal();
		tfh_gpu_begin();
		if (made)
			made = tfh_flusher_start(steady, NULL, NULL,
						 remote ? open_directory : NULL);
		if (!made && remote)
			open_without_flusher();
		hand_over();
	}
}

static void *begin_aside(void *arg)
{
	struct tfh_steady steady;

	tfh_steady_begin(&steady);
	tfh_guard_begin(&tfh_self);
	if (!tfh_process_check() && __atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE) == TFH_MODE_COLD)
		tfh_start(&steady);
	tfh_guard_end(&tfh_self);
	tfh_steady_end(&steady);
	tfh_aside(0);
	return arg;
}

void tfh_start_aside(void)
{
	pthread_t thread;

	if (!tfh_may_begin())
		return;
	tfh_register_exit(TFH_EXIT_AFTER_DRIVER);
	tfh_aside((uint32_t)tfh_raw_getpid());
	if (tfh_thread_start(&thread, begin_aside, NULL))
		tfh_aside(0);
	else
		pthread_detach(thread);
}
