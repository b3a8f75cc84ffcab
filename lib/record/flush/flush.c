/*
 * The flusher: one thread per recording process, with all signals blocked. It also sets the
 * recording up. It polls; job threads wake it only when a ring is half full or when they wait for
 * it.
 *
 * It does not keep the process alive: a process ends with its last thread, even after its main
 * thread left by pthread_exit. When the flusher is the last thread, it closes the recording,
 * unblocks signals and ends, and the C library calls exit as it would have done for the job's last
 * thread.
 */
#include "record/flush/flusher.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/environ.h"
#include "record/gpu/gpu.h"
#include "record/process/apart.h"
#include "record/process/log.h"
#include "record/process/requests.h"
#include "record/process/thread.h"
#include "record/ring/journal.h"
#include "record/ring/staging.h"
#include "record/ring/switch.h"
#include "record/run/rundir.h"
#include "record/stacks/stacks.h"
#include "record/watch/stack_samples.h"
#include "record/watch/nvml_thread.h"
#include "record/watch/samples.h"
#include "record/write/write.h"

#define POLL_LEAST_NS 5000000ull
#define POLL_MOST_NS 100000000ull
#define SECOND_NS 1000000000ull
/* Users who try tfhook often do so on jobs that last seconds, too short for samples once a
 * second. */
#define FIRST_NS 10000000000ull
#define FIRST_SAMPLES_NS 200000000ull
#define ALONE_NS 100000000ull

static struct {
	uint64_t poll_ns, alone_ns, begin_ns, sample_ns, second_ns;
	bool at_limit;		  /* there is no space for another large ring */
	uint32_t late_state;	  /* atomic: 0 none, 1 being filled in, 2 valid, 3 applied */
	struct tfh_job_rank late; /* a rank that became known after the start */
} f;

/* Sleeps until the next round or a request; samples threads meanwhile. */
static void rest(uint64_t ns)
{
	uint64_t now = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC), end = now + ns;

	tfh_sampling_rest();
	while (now < end) {
		uint64_t sample = tfh_sampling_wait(now), most = end - now;

		if (!tfh_flusher_sleep(sample < most ? sample : most))
			return;
		now = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
		tfh_sampling_take(now);
	}
}

/* Fill of the fullest ring in 64ths. It decides how soon to poll again. */
static uint32_t fullest(void)
{
	struct tfh_journal *j = &tfh_journal;
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
	/* Many short-lived threads: the next ones will need these rings. */
	return retired > n / 16 && retired > 8 ? 64 : most;
}

/* If twice the last interval would leave the fullest ring below a third, poll less often. */
static void adapt_poll(uint32_t full)
{
	if (full >= 16)
		f.poll_ns /= 2;
	else if (full <= 8)
		f.poll_ns += f.poll_ns / 2;
	if (f.poll_ns < POLL_LEAST_NS)
		f.poll_ns = POLL_LEAST_NS;
	if (f.poll_ns > POLL_MOST_NS)
		f.poll_ns = POLL_MOST_NS;
}

/* Not again at the limit, since each attempt may use up a part of the journal. */
static void prepare_ring(void)
{
	if (tfh_drain_grows() && !f.at_limit)
		f.at_limit = !tfh_slot_prepare(&tfh_journal);
}

static void heartbeat(uint64_t now_ns)
{
	struct tft_journal *head = tfh_journal.head;

	__atomic_store_n(&head->heartbeat_ns, now_ns, __ATOMIC_RELAXED);
	head->flusher_cpu_ns = (uint64_t)tfh_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	head->steps = tfh_steps_seen();
}

static void sample_if_due(uint64_t now_ns)
{
	if (now_ns - f.sample_ns < (now_ns - f.begin_ns < FIRST_NS ? FIRST_SAMPLES_NS : SECOND_NS))
		return;
	f.sample_ns = now_ns;
	tfh_sample();
}

/* Enclose work for device times, whose processor time is noted. */
static uint64_t device_times_begin(void)
{
	return __atomic_load_n(&tfh_gpu_storing, __ATOMIC_ACQUIRE) == TFH_GPU_OFF
		       ? 0
		       : (uint64_t)tfh_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void device_times_end(uint64_t begin)
{
	if (begin)
		tfh_gpu_own_cost((uint64_t)tfh_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
}

static void every_second(uint64_t now_ns)
{
	if (now_ns - f.second_ns < SECOND_NS)
		return;
	f.second_ns = now_ns;
	tfh_take_clock();
	heartbeat(now_ns);
	uint64_t begin = device_times_begin();
	tfh_gpu_second(now_ns);
	device_times_end(begin);
	tfh_seal_early();
}

static void seal_if_due(uint64_t now_ns)
{
	if (!tfh_seal_due(now_ns))
		return;
	tfh_drain(true);
	tfh_seal();
}

/*
 * A rank may become known after the start: Python sets os.environ["RANK"] while it runs. The job's
 * threads check again at a flush and at the end. The flusher must not, since the job may be
 * changing its environment meanwhile.
 */
void tfh_find_rank(void)
{
	uint32_t none = 0;
	struct tfh_env now;

	if (!__atomic_compare_exchange_n(&f.late_state, &none, 1, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	f.late.rank = -1;
	if (tfh_recorder.rank.rank < 0 && tfh_env_take(&now)) {
		tfh_rank_detect(&f.late, &tfh_recorder.options, &now);
		tfh_env_drop(&now);
	}
	/* release: a flusher that reads 2 sees the rank */
	__atomic_store_n(&f.late_state, f.late.rank < 0 ? 0 : 2, __ATOMIC_RELEASE);
}

static void take_rank(void)
{
	struct tfh_job_rank *rank = &tfh_recorder.rank;

	if (__atomic_load_n(&f.late_state, __ATOMIC_ACQUIRE) != 2)
		return;
	rank->rank = f.late.rank;
	rank->world = f.late.world;
	rank->local_rank = f.late.local_rank;
	rank->source = f.late.source;
	tfh_head_copy();
	tfh_segment_renew();
	__atomic_store_n(&f.late_state, 3, __ATOMIC_RELAXED);
}

static void answer_flush(void)
{
	struct tfh_requests *r = &tfh_requests;
	uint32_t want = __atomic_load_n(&r->flush_asked, __ATOMIC_ACQUIRE);

	if (want == r->flush_done)
		return;
	take_rank();
	tfh_drain(true);
	tfh_seal();
	uint64_t begin = device_times_begin();
	tfh_gpu_write(false);
	device_times_end(begin);
	tfh_seal_early();
	heartbeat((uint64_t)tfh_clock_ns(CLOCK_MONOTONIC));
	__atomic_store_n(&r->flush_done, want, __ATOMIC_RELEASE);
	tfh_futex_wake(&r->flush_done);
}

static void close_all(bool clean)
{
	int err;

	take_rank();
	tfh_drain(true);
	tfh_sample_open_calls((uint64_t)tfh_clock_ns(CLOCK_MONOTONIC));
	tfh_write_retry();
	tfh_take_clock();
	err = tfh_seal();
	if (err == -EBADF) /* the job closed our descriptor: open another segment */
		err = tfh_seal();
	tfh_gpu_write(true);
	tfh_seal_early();
	if (!err)
		err = tfh_segment_ready();
	if (!err) {
		tfh_notes_last(tfh_segments.writer);
		err = tfh_segment_close(clean);
	}
	/* If anything is unwritten, the journal is the only copy and stays. */
	if (!err)
		tfh_journal_unlink(&tfh_journal);
	tfh_log(1, "closed: %llu events, %llu dropped, status %d",
		(unsigned long long)tfh_journal.head->events_written,
		(unsigned long long)tfh_journal.head->dropped, err);
}

/* The recording is over, and whoever waits is told. From here on, requests may be those of the next
 * one. */
static void answer_all(void)
{
	struct tfh_requests *r = &tfh_requests;

	tfh_apart_over();
	__atomic_store_n(&r->finish_done, 1, __ATOMIC_SEQ_CST);
	tfh_futex_wake(&r->finish_done);
	/* A flush that was requested meanwhile has nothing to wait for. A later one sees that all
	 * is closed. */
	__atomic_store_n(&r->flush_done, __atomic_load_n(&r->flush_asked, __ATOMIC_SEQ_CST),
			 __ATOMIC_RELEASE);
	tfh_futex_wake(&r->flush_done);
}

/* Returns true when all is closed. */
static bool answer_finish(void)
{
	uint32_t how = __atomic_load_n(&tfh_requests.finish_asked, __ATOMIC_ACQUIRE);

	if (!how)
		return false;
	close_all(how == 2);
	answer_all();
	return true;
}

static bool (*set_up)(void), (*open_directory)(void);
static void (*begin_recording)(void);

/* There is no directory to write to, so nothing is kept. */
static void give_up(void)
{
	__atomic_store_n(&tfh_mode, TFH_MODE_DEAD, __ATOMIC_RELEASE);
	tfh_gpu_close();
	tfh_journal_unlink(&tfh_journal);
	answer_all();
}

static void *flusher_main(void *arg);

/* First round. A few ms after the start, the clock rate is known to about 10 ppm, and HEAD can be
 * written. Returns false if there is no run directory. */
static bool begin(void)
{
	uint64_t now_ns = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);

	f.poll_ns = POLL_LEAST_NS;
	f.begin_ns = f.sample_ns = f.second_ns = now_ns;
	tfh_seal_due(now_ns); /* from now on */
	heartbeat(now_ns);
	tfh_flusher_sleep(2 * POLL_LEAST_NS);
	tfh_take_clock();
	tfh_stacks_open();
	tfh_sampling_begin((uint64_t)(uintptr_t)flusher_main);
	if (open_directory && !open_directory())
		return false;
	if (!tfh_disk_check() && tfh_segment_ready())
		tfh_log(1, "no trace file yet");
	return true;
}

/* Returns true if the flusher is the process's only thread; everything is then closed. */
static bool leave_alone(uint64_t now_ns)
{
	if (now_ns - f.alone_ns < ALONE_NS)
		return false;
	f.alone_ns = now_ns;
	if (!tfh_last_threads(tfh_apart_threads() + tfh_devices_threads()))
		return false;
	if (tfh_gpu_exit()) {
		__atomic_add_fetch(&tfh_requests.flush_asked, 1, __ATOMIC_SEQ_CST);
		answer_flush();
	}
	tfh_gpu_close();
	__atomic_store_n(&tfh_mode, TFH_MODE_DEAD, __ATOMIC_RELEASE);
	__atomic_store_n(&tfh_requests.finish_asked, 2, __ATOMIC_SEQ_CST);
	return true;
}

/* The flusher's rounds. Returns true if it is the process's last thread. */
static bool record(void)
{
	bool alone = false;

	for (;;) {
		uint64_t now_ns = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
		uint32_t full = fullest();
		bool counting = tfh_counting_steps();
		uint32_t moved = tfh_drain(counting);

		prepare_ring();
		tfh_take_early_losses();
		alone = leave_alone(now_ns);
		tfh_sample_open_calls(now_ns);
		tfh_control_poll(now_ns);
		uint64_t begin = device_times_begin();
		tfh_gpu_poll(now_ns);
		device_times_end(begin);
		sample_if_due(now_ns);
		every_second(now_ns);
		seal_if_due(now_ns);
		answer_flush();
		if (answer_finish())
			return alone;
		adapt_poll(full);
		/* A quarter of the fullest ring arrived during this round: continue at once. */
		if (moved && fullest() >= 16)
			continue;
		if (!tfh_flusher_asked())
			rest(counting ? POLL_LEAST_NS : f.poll_ns);
	}
}

/* Which thread sets the recording up: the flusher or the thread that started it, whichever sets
 * TURN_TAKEN first. Holds flags and, above them, the flusher's number. It is never reset: a flusher
 * may begin to run long after the recording that it was meant for is over. */
static uint32_t turn; /* atomic, futex */

enum {
	TURN_TAKEN = 1,
	TURN_OVER = 2,	   /* the flusher has set up, or has given up */
	TURN_UNWAITED = 4, /* the thread that started it has gone on */
	TURN_NUMBER = 8,
};

static bool take_turn(uint32_t number)
{
	uint32_t now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);

	do {
		if (now / TURN_NUMBER != number || now & TURN_TAKEN)
			return false;
	} while (!__atomic_compare_exchange_n(&turn, &now, now | TURN_TAKEN, false,
					      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
	tfh_futex_wake(&turn);
	return true;
}

bool tfh_flusher_sets_up(uint64_t ns)
{
	uint32_t now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);

	if (now & TURN_TAKEN)
		return true;
	tfh_futex_wait(&turn, now, ns);
	return !take_turn(now / TURN_NUMBER);
}

bool tfh_flusher_has_set_up(uint64_t ns)
{
	uint64_t begun = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);

	/* Woken when the flusher takes its turn, and when it is over: both within `ns`. */
	for (int i = 0; i < 2; i++) {
		uint64_t spent = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC) - begun;
		uint32_t now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);

		if (now & TURN_OVER || spent >= ns)
			break;
		tfh_futex_wait(&turn, now, ns - spent);
	}
	return __atomic_fetch_or(&turn, TURN_UNWAITED, __ATOMIC_ACQ_REL) & TURN_OVER;
}

/* Returns false if there is nothing to record to. */
static bool set_up_apart(struct tfh_helper **helper)
{
	bool ready;

	*helper = tfh_apart_begin(tfh_journal_populates(), -1);
	ready = set_up();
	if (!ready) {
		tfh_flusher_is(0); /* another thread may get this number */
		tfh_apart_over();
	}
	if (__atomic_fetch_or(&turn, TURN_OVER, __ATOMIC_ACQ_REL) & TURN_UNWAITED) {
		if (ready)
			begin_recording();
		return ready;
	}
	tfh_futex_wake(&turn);
	while (__atomic_load_n(&tfh_recorder.start_state, __ATOMIC_ACQUIRE) == TFH_START_BUSY)
		tfh_futex_wait(&tfh_recorder.start_state, TFH_START_BUSY, SECOND_NS);
	return ready;
}

/* `arg`: the number whose turn it is to set up; 0: all is there. */
static void *flusher_main(void *arg)
{
	uint32_t number = (uint32_t)(uintptr_t)arg;
	struct tfh_helper *helper = NULL;
	bool alone = false, ready = true;

	if (number && !take_turn(number)) {
		pthread_detach(pthread_self());
		return NULL;
	}
	tfh_thread_begin("tfhook-flush");
	tfh_flusher_is(pthread_self());
	if (number)
		ready = set_up_apart(&helper);
	else
		helper = tfh_apart_begin(tfh_journal.anonymous || tfh_journal.populates,
					 tfh_journal.anonymous ? -1 : tfh_journal.fd);
	if (ready && begin())
		alone = record();
	else if (ready)
		give_up();
	tfh_thread_end();
	tfh_apart_end(helper, alone ? tfh_devices_last : NULL);
	return NULL;
}

bool tfh_flusher_start(const struct tfh_steady *steady, bool (*first)(void), void (*second)(void),
		       bool (*third)(void))
{
	sigset_t signals = steady->old;
	uint32_t number = 0;
	pthread_t thread;
	int err;

	if (!steady->blocked)
		pthread_sigmask(SIG_BLOCK, NULL, &signals);
	tfh_apart_signals(&signals);
	set_up = first;
	begin_recording = second;
	open_directory = third;
	if (first) {
		number = turn / TURN_NUMBER + 1;
		__atomic_store_n(&turn, number * TURN_NUMBER, __ATOMIC_RELEASE);
	}
	err = tfh_thread_start(&thread, flusher_main, (void *)(uintptr_t)number);
	if (err)
		tfh_log_failure("the recording thread could not be started",
				"raise the limit of processes (ulimit -u); only the last records "
				"of each thread "
				"will be in the trace");
	__atomic_store_n(&tfh_requests.flusher, err ? TFH_FLUSHER_FAILED : TFH_FLUSHER_MADE,
			 __ATOMIC_RELEASE);
	return !err;
}

void tfh_finish_here(void)
{
	answer_finish();
}

void tfh_flusher_forget(void)
{
	tfh_segments_forget();
	tfh_apart_forget();
	memset(&tfh_requests, 0, sizeof(tfh_requests));
	memset(&f, 0, sizeof(f));
	tfh_drain_forget();
	tfh_sample_open_calls_forget();
	tfh_control_forget();
	tfh_steps_forget();
	tfh_staging_forget();
	tfh_clocks_forget();
	tfh_seal_forget();
	tfh_budget_forget();
	tft_live_forget(&tfh_live);
	tfh_sample_forget();
	tfh_sampling_forget();
	tfh_gpu_forget();
	tfh_stacks_forget();
}
