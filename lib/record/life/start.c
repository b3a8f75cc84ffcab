/*
 * From "kept in memory" to "recording": run directory, journal, flusher. One thread begins it, inside
 * its first launch, copy, get-next or step: what needs the job's environment it does itself. What
 * needs a file system that may never answer is the flusher's, and the thread waits for it a second
 * at most. Where the file system is local it is not: on a busy machine a new thread comes late.
 */
#include "record/flusher.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/priced.h"
#include "base/rules.h"
#include "record/gpu/gpu.h"
#include "record/run/runjson_write.h"
#include "record/process/thread.h"
#include "tfhook/version.h"

#define START_MS 1000

static uint64_t hz; /* atomic */
static char boot_id[48];
/* Atomic: the process in which a thread of ours begins the recording; 0: none. */
static uint32_t aside;

uint64_t tfh_tick_hz(void)
{
	return __atomic_load_n(&hz, __ATOMIC_RELAXED);
}

void tfh_set_tick_hz(const struct tft_clock_triple *a, const struct tft_clock_triple *b)
{
	uint64_t ns = b->monotonic_ns - a->monotonic_ns;
	uint64_t value;

	if (ns < 1000000 || ns > 1ull << 40 ||
	    b->ticks <= a->ticks) /* below 1 ms the reading is too coarse */
		return;
	value = (uint64_t)((double)(b->ticks - a->ticks) * 1e9 / (double)ns);
	__atomic_store_n(&hz, value, __ATOMIC_RELAXED);
	__atomic_store_n(&tfh_long_ticks, value / 5000, __ATOMIC_RELAXED); /* 200 us */
	if (tfh_p.journal.head)
		tfh_p.journal.head->tick_hz = value;
}

void tfh_head_fill(struct tft_head *h, uint32_t segment)
{
	struct tfh_clock_info clock;

	tfh_clock_init(&clock);
	memset(h, 0, sizeof(*h));
	h->version = TFT_VERSION;
	h->pid = (uint32_t)tfh_p.pid;
	h->ppid = (uint32_t)getppid();
	h->rank = tfh_p.dir.rank.rank;
	h->world = tfh_p.dir.rank.world;
	h->local_rank = tfh_p.dir.rank.local_rank;
	h->segment = segment;
	h->host = tfh_p.host;
	h->exe = tfh_p.exe;
	h->command = tfh_p.command;
	h->boot_id = boot_id;
	h->tfhook_version = TFHOOK_VERSION;
	h->job = tfh_p.dir.job;
	h->start_realtime_ns = tfh_f.first.realtime_ns;
	h->start_ticks = tfh_f.first.ticks;
	h->tick_hz = tfh_tick_hz();
	h->ticks_are_ns = clock.source == TFH_CLOCK_MONOTONIC;
	h->fn_count = TFH_FN_COUNT;
	h->fn = tfh_fn_table;
	h->journal_path = tfh_p.journal.path;
	h->journal_start = tfh_p.process_start;
}

static void who_am_i(void)
{
	ssize_t n = readlink("/proc/self/exe", tfh_p.exe, sizeof(tfh_p.exe) - 1);

	tfh_p.exe[n > 0 ? n : 0] = '\0';
	if (gethostname(tfh_p.host, sizeof(tfh_p.host)))
		strcpy(tfh_p.host, "unknown");
	tfh_p.host[sizeof(tfh_p.host) - 1] = '\0';
	for (char *c = tfh_p.host; *c; c++)
		if (*c == '/')
			*c = '_';
	tfh_command_line(tfh_p.command, sizeof(tfh_p.command));
	tfh_read_small("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id));
	boot_id[strcspn(boot_id, "\n")] = '\0';
	tfh_p.process_start = tfh_process_start(tfh_p.pid);
}

static struct tft_clock_triple triple(const struct tfh_clock_pair *pair)
{
	return (struct tft_clock_triple){pair->ticks, (uint64_t)pair->mono_ns,
					 (uint64_t)pair->real_ns};
}

/* A second copy differs in numbers only: whoever reads meanwhile finds the old or the new ones. */
void tfh_head_copy(void)
{
	struct tft_journal *j = tfh_p.journal.head;
	struct tft_head head;
	size_t n;

	j->rank = tfh_p.dir.rank.rank;
	tfh_head_fill(&head, 0);
	n = tft_head_pack(&head, tfh_p.journal.base + j->head_off, TFT_JOURNAL_HEAD_CAP);
	if (n <= TFT_JOURNAL_HEAD_CAP)
		__atomic_store_n(&j->head_bytes, (uint32_t)n, __ATOMIC_RELEASE);
}

/* Everything a stranger needs to make sense of the journal, before it says that it is one. */
static void describe_journal(void)
{
	struct tft_journal *j = tfh_p.journal.head;
	struct tfh_clock_info clock;
	struct stat root;

	tfh_clock_init(&clock);
	j->pid = (uint32_t)tfh_p.pid;
	j->ppid = (uint32_t)getppid();
	j->process_start = tfh_p.process_start;
	if (clock.source == TFH_CLOCK_MONOTONIC)
		j->flags |= TFT_JF_TICKS_ARE_NS;
	j->start = tfh_f.first;
	snprintf(j->boot_id, sizeof(j->boot_id), "%s", boot_id);
	snprintf(j->host, sizeof(j->host), "%s", tfh_p.host);
	tfh_read_small("/proc/self/comm", j->comm, sizeof(j->comm));
	j->comm[strcspn(j->comm, "\n")] = '\0';
	snprintf(j->run_dir, sizeof(j->run_dir), "%s", tfh_p.dir.path);
	snprintf(j->prefix, sizeof(j->prefix), "%s", tfh_p.dir.prefix);
	j->pid_ns = tfh_namespace("pid");
	j->mnt_ns = tfh_namespace("mnt");
	if (!stat("/", &root)) {
		j->root_dev = root.st_dev;
		j->root_ino = root.st_ino;
	}
	tfh_take_clock();
	tfh_head_copy();
	j->heartbeat_ns = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
	j->state = TFT_JOURNAL_RUNNING;
	__atomic_store_n(&j->magic, TFT_JOURNAL_MAGIC, __ATOMIC_RELEASE);
}

/* What is asked of the process itself. False: it is not to be recorded, told on stderr where that
 * is for want of memory. */
static bool look(void)
{
	char what[128];

	tfh_f.first = triple(&tfh_p.first_pair);
	who_am_i();
	tfh_rank_detect(&tfh_p.dir.rank, &tfh_p.options);
	if (!tfh_filter_program(&tfh_p) ||
	    !tfh_ranks_match(tfh_opt_str(&tfh_p.options, TFH_OPT_RANKS), tfh_p.dir.rank.rank))
		return false;
	tfh_p.priced = tfh_priced_here();
	tfh_p.dir.of_sagemaker = secure_getenv("SM_CURRENT_HOST") != NULL;
	tfh_in_container();
	if (tfh_tight_space()) {
		snprintf(what, sizeof(what),
			 "not recording: no memory for the rings under a limit of %llu MB",
			 (unsigned long long)(tfh_tight_space() >> 20));
		tfh_log_failure(what,
				"raise the limit of address space (ulimit -v, ulimit -d) to 1 GB");
		return false;
	}
	return true;
}

/* 0 or -errno, told on stderr. */
static int set_up(void)
{
	static char what[PATH_MAX + 128]; /* where there is no flusher the stack may be 16 KiB */
	int err;

	err = tfh_rundir_open(&tfh_p.dir, &tfh_p);
	if (err) {
		snprintf(what, sizeof(what), "not recording: cannot write to %s: %s",
			 tfh_p.dir.path, tfh_p.dir.why ? tfh_p.dir.why : strerror(-err));
		tfh_log_failure(what, "set TFHOOK_DIR to a directory that this job may write to");
		return err;
	}
	err = tfh_journal_open(&tfh_p.journal, &tfh_p.dir,
			       (uint64_t)tfh_opt_int(&tfh_p.options, TFH_OPT_RING_TOTAL));
	if (err) {
		snprintf(what, sizeof(what), "not recording: no memory for the rings: %s",
			 strerror(-err));
		tfh_log_failure(
			what,
			"lower TFHOOK_RING_TOTAL or raise the limit of address space (ulimit -v)");
		return err;
	}
	describe_journal();
	tfh_window_setup();
	tfh_log(1, "recording to %s, journal %s", tfh_p.dir.path,
		tfh_p.journal.anonymous ? "in memory" : tfh_p.journal.path);
	for (int id = 0; id < TFH_OPT_COUNT; id++)
		if (tfh_p.options.error[id])
			tfh_log(1, "%s is not understood and was passed over",
				tfh_option_specs[id].name);
	return 0;
}

/* A time that was not enough once is not waited for again. */
static void wait_while(uint32_t *word, uint32_t value, unsigned ms)
{
	const struct timespec time = {ms / 1000, ms % 1000 * 1000000l};

	if (!__atomic_load_n(&tfh_f.start_waited, __ATOMIC_RELAXED) &&
	    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &time, NULL, 0) &&
	    errno == ETIMEDOUT && ms >= START_MS)
		__atomic_store_n(&tfh_f.start_waited, true, __ATOMIC_RELAXED);
}

/*
 * What is recorded meanwhile would lie in plain memory and die with the process, so the first copies
 * and launches wait until there is a journal: 1 to 3 ms once, at most a second (a run directory on a
 * file system that hangs). Then they go on with their rings in memory.
 */
static void wait_for_journal(unsigned ms)
{
	if (__atomic_load_n(&tfh_p.start_state, __ATOMIC_ACQUIRE) == TFH_START_BUSY)
		wait_while(&tfh_p.start_state, TFH_START_BUSY, ms);
}

void tfh_start_wait(unsigned ms)
{
	uint32_t begins = __atomic_load_n(&aside, __ATOMIC_ACQUIRE);
	struct tfh_steady steady;
	int saved = errno;

	/* Where nothing is recorded no system call is made. */
	if ((!begins && __atomic_load_n(&tfh_p.start_state, __ATOMIC_ACQUIRE) != TFH_START_BUSY) ||
	    tfh_self.guard & ~TFH_GUARD_APPEND || tfh_raw_getpid() != tfh_p.pid)
		return;
	tfh_steady_begin(&steady); /* a signal would end the wait */
	tfh_steady_long(&steady);
	/* To its end, not only to the journal: device times and the flusher come after it. */
	if (begins == (uint32_t)tfh_p.pid)
		wait_while(&aside, begins, ms);
	else
		wait_for_journal(ms);
	tfh_steady_end(&steady);
	errno = saved;
}

void tfh_start_never(void)
{
	uint32_t none = TFH_START_NOT;

	if (__atomic_compare_exchange_n(&tfh_p.start_state, &none, TFH_START_FAILED, false,
					__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		__atomic_store_n(&tfh_mode, TFH_MODE_DEAD, __ATOMIC_RELEASE);
}

static void set_and_wake(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void end_start(uint32_t state)
{
	set_and_wake(&tfh_p.start_state, state);
}

static void give_up(void)
{
	__atomic_store_n(&tfh_mode, TFH_MODE_DEAD, __ATOMIC_RELEASE);
	end_start(TFH_START_FAILED);
}

bool tfh_set_up(void)
{
	if (set_up()) {
		give_up();
		return false;
	}
	/* What was kept goes first, and from here on survives us. */
	tfh_drain(true);
	tfh_register_exit(TFH_EXIT_AFTER_START);
	__atomic_store_n(&tfh_p.start_state, TFH_START_DONE, __ATOMIC_RELEASE);
	__atomic_store_n(tfh_generation, tfh_p.generation | 1, __ATOMIC_RELEASE);
	__atomic_store_n(&tfh_mode, tfh_p.window_off || tfh_p.paused ? TFH_MODE_OFF : TFH_MODE_ON,
			 __ATOMIC_SEQ_CST);
	/* By a thread whose exec failed, too, and which meant the recording before: one of the two
	 * sees the other. */
	if (__atomic_load_n(&tfh_f.finish_asked, __ATOMIC_SEQ_CST))
		__atomic_store_n(&tfh_mode, TFH_MODE_DEAD, __ATOMIC_RELEASE);
	end_start(TFH_START_DONE);
	return true;
}

void tfh_start(const struct tfh_steady *steady)
{
	uint32_t none = TFH_START_NOT;
	bool local;

	if (!__atomic_compare_exchange_n(&tfh_p.start_state, &none, TFH_START_BUSY, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		wait_for_journal(START_MS);
		return;
	}
	tfh_steady_long(steady);
	if (!look()) {
		give_up();
		return;
	}
	local = tfh_rundir_answers(&tfh_p.dir, &tfh_p.options);
	if (!local && tfh_flusher_start(steady)) {
		wait_for_journal(START_MS);
		tfh_gpu_begin();
	} else if (tfh_set_up()) {
		tfh_gpu_begin();
		if (local)
			tfh_flusher_start(steady);
		tfh_apart_hand_over();
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
	set_and_wake(&aside, 0);
	return arg;
}

void tfh_start_aside(void)
{
	pthread_t thread;

	tfh_register_exit(TFH_EXIT_AFTER_DRIVER);
	__atomic_store_n(&aside, (uint32_t)tfh_raw_getpid(), __ATOMIC_RELEASE);
	if (tfh_thread_start(&thread, begin_aside, NULL))
		__atomic_store_n(&aside, 0, __ATOMIC_RELEASE);
	else
		pthread_detach(thread);
}
