/*
 * The flusher: one thread per recording process, which also sets the recording up, all signals
 * blocked. It polls; job threads wake it only when a ring is half full or somebody waits for it.
 *
 * It keeps no process alive: a process ends with its last thread, also after its main thread left
 * by pthread_exit. When the flusher is the last, it closes the recording, takes signals again and
 * ends, and the C library calls exit as it would have done for the job's last thread.
 */
#include "record/flusher.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/watch/nvml_thread.h"
#include "record/gpu/gpu.h"
#include "record/watch/looks.h"
#include "record/stacks/stacks.h"
#include "record/process/thread.h"

#define POLL_LEAST_NS 5000000ull
#define POLL_MOST_NS 100000000ull
#define SECOND_NS 1000000000ull
#define SEAL_NS (30 * SECOND_NS)
#define STUCK_NS 100000000ull
#define LOOK_NS 20000000ull
#define ALONE_NS 100000000ull

struct tfh_flusher tfh_f;

/* True: that time is over. */
static bool futex_wait(uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / SECOND_NS),
			      .tv_nsec = (long)(ns % SECOND_NS)};

	return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &ts, NULL, 0) &&
	       errno == ETIMEDOUT;
}

static void futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void tfh_flusher_wake(void)
{
	int saved = errno;

	/* acq_rel: one waker wins, and the flusher sees what was stored before */
	if (__atomic_load_n(&tfh_f.asleep, __ATOMIC_SEQ_CST) &&
	    __atomic_exchange_n(&tfh_f.asleep, 0, __ATOMIC_ACQ_REL))
		futex_wake(&tfh_f.asleep);
	errno = saved;
}

static bool asked(void)
{
	return __atomic_load_n(&tfh_f.flush_asked, __ATOMIC_SEQ_CST) !=
		       __atomic_load_n(&tfh_f.flush_done, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&tfh_f.finish_asked, __ATOMIC_SEQ_CST);
}

/* True: that time is over, and nobody has asked. */
static bool sleep_until_asked(uint64_t ns)
{
	bool over = false;

	__atomic_store_n(&tfh_f.asleep, 1, __ATOMIC_SEQ_CST);
	if (!asked())
		over = futex_wait(&tfh_f.asleep, 1, ns);
	__atomic_store_n(&tfh_f.asleep, 0, __ATOMIC_SEQ_CST);
	return over;
}

/* Until the next round, or somebody asks; looks at threads meanwhile. */
static void rest(uint64_t ns)
{
	uint64_t now = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC), end = now + ns;

	while (now < end) {
		uint64_t look = tfh_looks_wait(now), most = end - now;

		if (!sleep_until_asked(look < most ? look : most))
			return;
		now = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
		tfh_looks_take(now);
	}
}

/* Fullest ring in 64ths: how soon to look again. */
static uint32_t fullest(void)
{
	struct tfh_journal *j = &tfh_p.journal;
	uint32_t n = __atomic_load_n(&j->head->slot_count, __ATOMIC_ACQUIRE), most = 0, retired = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct tft_ring *ring = tfh_journal_ring(j, i);
		uint32_t state =
			ring ? __atomic_load_n(&ring->state, __ATOMIC_ACQUIRE) : TFT_RING_FREE;
		uint64_t used;

		if (state == TFT_RING_FREE)
			continue;
		retired += state == TFT_RING_RETIRED;
		used = __atomic_load_n(&ring->head, __ATOMIC_RELAXED) - ring->tail;
		used = used * 64 / ((uint64_t)ring->mask + 1);
		if (used > most)
			most = (uint32_t)used;
	}
	/* Many short threads: the next ones want these rings. */
	return retired > n / 16 && retired > 8 ? 64 : most;
}

/* Twice the last interval would still leave the fullest ring below a third: look less often. */
static void adapt_poll(uint32_t full)
{
	if (full >= 16)
		tfh_f.poll_ns /= 2;
	else if (full <= 8)
		tfh_f.poll_ns += tfh_f.poll_ns / 2;
	if (tfh_f.poll_ns < POLL_LEAST_NS)
		tfh_f.poll_ns = POLL_LEAST_NS;
	if (tfh_f.poll_ns > POLL_MOST_NS)
		tfh_f.poll_ns = POLL_MOST_NS;
}

static void heartbeat(uint64_t now_ns)
{
	struct tft_journal *head = tfh_p.journal.head;

	__atomic_store_n(&head->heartbeat_ns, now_ns, __ATOMIC_RELAXED);
	head->flusher_cpu_ns = (uint64_t)tfh_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	head->steps = tfh_steps_seen();
}

static void every_second(uint64_t now_ns)
{
	if (now_ns - tfh_f.second_ns < SECOND_NS)
		return;
	tfh_f.second_ns = now_ns;
	tfh_take_clock();
	tfh_sample();
	heartbeat(now_ns);
	tfh_gpu_second(now_ns);
	tfh_stacks_write();
}

static void seal_if_due(uint64_t now_ns)
{
	uint64_t age = tfh_p.journal.anonymous ? SECOND_NS : SEAL_NS;

	if (now_ns - tfh_f.sealed_ns < age)
		return;
	tfh_drain(true);
	tfh_seal();
	tfh_f.sealed_ns = now_ns;
}

/*
 * A rank may become known after the start: Python sets os.environ["RANK"] while it runs. Threads of
 * the job look again, at a flush and at the end; the flusher must not, since the job may be
 * changing its environment meanwhile.
 */
static void look_for_rank(void)
{
	uint32_t none = 0;

	if (!__atomic_compare_exchange_n(&tfh_f.late_state, &none, 1, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	if (tfh_p.dir.rank.rank < 0)
		tfh_rank_detect(&tfh_f.late, &tfh_p.options);
	else
		tfh_f.late.rank = -1;
	/* release: the flusher that sees 2 sees the rank */
	__atomic_store_n(&tfh_f.late_state, tfh_f.late.rank < 0 ? 0 : 2, __ATOMIC_RELEASE);
}

static void take_rank(void)
{
	struct tfh_job_rank *rank = &tfh_p.dir.rank;

	if (__atomic_load_n(&tfh_f.late_state, __ATOMIC_ACQUIRE) != 2)
		return;
	rank->rank = tfh_f.late.rank;
	rank->world = tfh_f.late.world;
	rank->local_rank = tfh_f.late.local_rank;
	rank->source = tfh_f.late.source;
	tfh_head_copy();
	tfh_segment_renew();
	__atomic_store_n(&tfh_f.late_state, 3, __ATOMIC_RELAXED);
}

static void answer_flush(void)
{
	uint32_t want = __atomic_load_n(&tfh_f.flush_asked, __ATOMIC_ACQUIRE);

	if (want == tfh_f.flush_done)
		return;
	take_rank();
	tfh_drain(true);
	tfh_seal();
	tfh_gpu_write(false);
	tfh_stacks_write();
	heartbeat((uint64_t)tfh_clock_ns(CLOCK_MONOTONIC));
	__atomic_store_n(&tfh_f.flush_done, want, __ATOMIC_RELEASE);
	futex_wake(&tfh_f.flush_done);
}

static void close_all(bool clean)
{
	int err;

	take_rank();
	tfh_drain(true);
	tfh_look_open((uint64_t)tfh_clock_ns(CLOCK_MONOTONIC));
	tfh_f.pause_until_ns = 0; /* one more try */
	tfh_take_clock();
	err = tfh_seal();
	if (err == -EBADF) /* the job closed our descriptor: another segment */
		err = tfh_seal();
	tfh_gpu_write(true);
	tfh_stacks_write();
	if (!err)
		err = tfh_segment_ready();
	if (!err) {
		tfh_notes_last();
		err = tfh_segment_close(clean);
	}
	/* With anything unwritten the journal is the only copy: it stays. */
	if (!err)
		tfh_journal_unlink(&tfh_p.journal);
	tfh_log(1, "closed: %llu events, %llu dropped, status %d",
		(unsigned long long)tfh_p.journal.head->events_written,
		(unsigned long long)tfh_p.journal.head->dropped, err);
}

/* True: all is closed, and tfh_f may already serve the next recording. */
static bool answer_finish(void)
{
	uint32_t how = __atomic_load_n(&tfh_f.finish_asked, __ATOMIC_ACQUIRE);

	if (!how)
		return false;
	close_all(how == 2);
	tfh_apart_over();
	__atomic_store_n(&tfh_f.finish_done, 1, __ATOMIC_SEQ_CST);
	futex_wake(&tfh_f.finish_done);
	/* A flush that was asked for meanwhile has nothing to wait for; one that comes later sees
	 * that all is closed. */
	__atomic_store_n(&tfh_f.flush_done, __atomic_load_n(&tfh_f.flush_asked, __ATOMIC_SEQ_CST),
			 __ATOMIC_RELEASE);
	futex_wake(&tfh_f.flush_done);
	return true;
}

bool tfh_flusher_closed(void)
{
	return __atomic_load_n(&tfh_f.finish_done, __ATOMIC_ACQUIRE);
}

/* First round: a few ms after the start the pace of the clock is known to some 10 ppm, and HEAD can
 * be written. */
static void begin(void)
{
	uint64_t now_ns = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);

	tfh_f.poll_ns = POLL_LEAST_NS;
	tfh_f.sealed_ns = tfh_f.second_ns = now_ns;
	heartbeat(now_ns);
	sleep_until_asked(2 * POLL_LEAST_NS);
	tfh_take_clock();
	tfh_stacks_open();
	tfh_looks_begin();
	if (!tfh_disk_check() && tfh_segment_ready())
		tfh_log(1, "no trace file yet");
}

bool tfh_on_flusher(void)
{
	return __atomic_load_n(&tfh_f.pthread, __ATOMIC_RELAXED) == (uint64_t)pthread_self() ||
	       tfh_on_helper();
}

/* The process is the flusher's alone: true, and everything is closed. */
static bool leave_alone(uint64_t now_ns)
{
	if (now_ns - tfh_f.alone_ns < ALONE_NS)
		return false;
	tfh_f.alone_ns = now_ns;
	if (!tfh_last_threads((tfh_f.helper_thread ? 2 : 1) + tfh_devices_threads()))
		return false;
	if (tfh_gpu_exit()) {
		__atomic_add_fetch(&tfh_f.flush_asked, 1, __ATOMIC_SEQ_CST);
		answer_flush();
	}
	tfh_gpu_close();
	__atomic_store_n(&tfh_mode, TFH_MODE_DEAD, __ATOMIC_RELEASE);
	__atomic_store_n(&tfh_f.finish_asked, 2, __ATOMIC_SEQ_CST);
	return true;
}

static void hand_over(void *arg)
{
	(void)arg;
	if (tfh_is_apart())
		tfh_journal_handed_over(&tfh_p.journal);
}

static void *flusher_main(void *arg)
{
	bool sets_up = __atomic_load_n(&tfh_p.start_state, __ATOMIC_ACQUIRE) == TFH_START_BUSY;
	struct tfh_helper *helper;
	bool alone = false;

	(void)arg;
	tfh_thread_begin("tfhook-flush");
	__atomic_store_n(&tfh_f.pthread, (uint64_t)pthread_self(), __ATOMIC_RELAXED);
	if (sets_up && !tfh_set_up()) {
		__atomic_store_n(&tfh_f.pthread, 0, __ATOMIC_RELAXED); /* another's some time */
		tfh_thread_end();
		pthread_detach(pthread_self());
		return NULL;
	}
	helper = tfh_apart_begin();
	if (sets_up)
		tfh_among_job(hand_over, NULL);
	begin();
	for (;;) {
		uint64_t now_ns = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
		uint32_t full = fullest();
		bool counting = tfh_counting_steps();
		uint32_t moved = tfh_drain(counting);

		alone = leave_alone(now_ns);
		tfh_look_open(now_ns);
		tfh_control_poll(now_ns);
		tfh_gpu_poll(now_ns);
		every_second(now_ns);
		seal_if_due(now_ns);
		answer_flush();
		if (answer_finish())
			break;
		adapt_poll(full);
		/* A quarter of the fullest ring came in while this round ran: go on at once. */
		if (moved && fullest() >= 16)
			continue;
		if (!asked())
			rest(counting ? POLL_LEAST_NS : tfh_f.poll_ns);
	}
	tfh_thread_end();
	tfh_apart_end(helper, alone);
	return NULL;
}

bool tfh_flusher_start(const struct tfh_steady *steady)
{
	pthread_t thread;
	int err;

	tfh_f.signals = steady->old;
	if (!steady->blocked)
		pthread_sigmask(SIG_BLOCK, NULL, &tfh_f.signals);
	err = tfh_thread_start(&thread, flusher_main, NULL);
	if (err)
		tfh_log_failure("the recording thread could not be started",
				"raise the limit of processes (ulimit -u); only the last records "
				"of each thread "
				"will be in the trace");
	__atomic_store_n(&tfh_f.thread, err ? 3 : 2, __ATOMIC_RELEASE);
	return !err;
}

/* The flusher waits inside CUPTI, and the calling thread, whose signal handler leaves a call of the
 * driver's, may have what it waits for. */
static bool stuck(uint64_t now)
{
	uint64_t since = __atomic_load_n(&tfh_f.foreign_ns, __ATOMIC_RELAXED);

	return tfh_self.depth && since && now > since + STUCK_NS;
}

/* Is the recording that had this generation over, and its memory another one's? */
static bool is_over(uint32_t generation)
{
	return __atomic_load_n(&tfh_p.generation, __ATOMIC_ACQUIRE) != generation;
}

/* Waits until *word is no longer `old`, or all is closed. Another preload may let the clock stand
 * still, so what the kernel let pass counts as well. */
static bool wait_for(uint32_t *word, uint32_t old, uint64_t end, uint32_t generation)
{
	uint64_t begun = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC), waited = 0;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == old && !tfh_flusher_closed() &&
	       !is_over(generation)) {
		uint64_t now = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC), most;

		if (now >= end || waited >= end - begun || stuck(now))
			return false;
		most = end - now > LOOK_NS ? LOOK_NS : end - now;
		if (futex_wait(word, old, most))
			waited += most;
	}
	return true;
}

bool tfh_recording(void)
{
	/* In this order: a job that records nothing makes no system call of ours, which a sandbox
	 * may answer with a signal. */
	return __atomic_load_n(&tfh_p.start_state, __ATOMIC_ACQUIRE) == TFH_START_DONE &&
	       tfh_raw_getpid() == tfh_p.pid;
}

int tfh_flush_by(uint64_t end)
{
	int saved = errno, err = 0;
	uint32_t ticket, done, generation = __atomic_load_n(&tfh_p.generation, __ATOMIC_ACQUIRE);

	tfh_self_settle(&tfh_self);
	if (!tfh_recording() || tfh_self.guard & ~TFH_GUARD_APPEND)
		return -EAGAIN;
	if (__atomic_load_n(&tfh_f.thread, __ATOMIC_ACQUIRE) != 2)
		return -EAGAIN;
	look_for_rank();
	ticket = __atomic_add_fetch(&tfh_f.flush_asked, 1, __ATOMIC_SEQ_CST);
	tfh_flusher_wake();
	while (!err) {
		done = __atomic_load_n(&tfh_f.flush_done, __ATOMIC_ACQUIRE);
		if ((int32_t)(done - ticket) >= 0 || tfh_flusher_closed() || is_over(generation))
			break;
		if (!wait_for(&tfh_f.flush_done, done, end, generation))
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
	struct tfh_self *self = &tfh_self;
	bool first;
	uint32_t none = 0, generation = __atomic_load_n(&tfh_p.generation, __ATOMIC_ACQUIRE);
	int saved = errno;

	tfh_self_settle(self);
	if (!tfh_recording() || self->guard & ~TFH_GUARD_APPEND || tfh_flusher_closed() ||
	    __atomic_load_n(&tfh_f.gave_up, __ATOMIC_RELAXED))
		return;
	tfh_guard_begin(self);
	if (tfh_own_ring(self) && !(self->guard & TFH_GUARD_APPEND))
		tfh_agg_flush(self);
	look_for_rank();
	tfh_gpu_close();
	/* Calls that come later (other threads, the driver's own exit handlers) pass through. */
	__atomic_store_n(&tfh_mode, mode, __ATOMIC_RELEASE);
	first = __atomic_compare_exchange_n(&tfh_f.finish_asked, &none, clean ? 2 : 1, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	/* Once more: after an exec that failed another recording may just begin (tfh_set_up). */
	__atomic_store_n(&tfh_mode, mode, __ATOMIC_SEQ_CST);
	if (first && __atomic_load_n(&tfh_f.thread, __ATOMIC_ACQUIRE) == 3) {
		struct tfh_xfsz x;

		tfh_xfsz_block(&x);
		answer_finish(); /* there is no flusher: this thread does it */
		tfh_xfsz_restore(&x);
	} else {
		tfh_flusher_wake();
		if (!wait_for(&tfh_f.finish_done, 0, end, generation))
			__atomic_store_n(&tfh_f.gave_up, 1, __ATOMIC_RELAXED);
	}
	tfh_guard_end(self);
	errno = saved;
}

void tfh_flusher_forget(void)
{
	/* A parent process goes on writing to it, maybe in a table that the child does not have. */
	if (tfh_f.seg.writer && !tfh_is_apart())
		tft_writer_abandon(tfh_f.seg.writer);
	if (tfh_f.expected)
		munmap(tfh_f.expected, tfh_f.expected_cap * sizeof(uint64_t));
	memset(&tfh_f, 0, sizeof(tfh_f));
	tfh_budget_forget();
	tfh_live_forget();
	tfh_sample_forget();
	tfh_looks_forget();
	tfh_gpu_forget();
	tfh_stacks_forget();
}
