#include "record/watch/stack_samples.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/refused.h"
#include "record/process/apart.h"
#include "record/process/filters.h"
#include "record/process/log.h"
#include "record/ring/journal.h"
#include "record/ring/rings.h"
#include "record/ring/staging.h"
#include "record/stacks/pyplaces.h"
#include "sampling/holder.h"
#include "sampling/moments.h"
#include "sampling/waiting.h"
#include "record/watch/workers.h"

#define MEAN_NS 10000000ull
/* While steps run and the budget for their beginning lasts: a short run needs samples, too. */
#define MEAN_FIRST_NS 2500000ull
#define MEAN_MOST_NS 1000000000ull
#define SHARE 500u /* samples may use 1/500 of the run's time: 0.2 % of one CPU */
#define COST_TIMES 4u
#define COST_OF 4u /* samples over which the cost is averaged */
/* Budgets of CPU time that are granted once, in addition to SHARE: one at any time, the other only
 * while steps run, since imports and compilers, which have deep stacks, would use up all of it. */
#define FIRST_NS 5000000ull
#define FIRST_OF_STEPS_NS 15000000ull
#define OPEN_NS 100000000ull /* calls open for this long are sampled */
#define CHOOSE_NS 100000000ull
#define DRIVERS 64u /* threads to choose from */
#define AT_ONCE 4u
/* A thread that has made no call for IDLE_NS is sampled only in every IDLE_TIMES-th round, and each
 * sample counts as that many. JAX launches from a pool of threads while it chooses kernels, and
 * they then wait until the job ends. */
#define IDLE_NS 1000000000ull
#define IDLE_TIMES 64u
#define SAME 100u /* samples of an unchanged thread after which they get rarer */
/* Loops, which cost half as much as the rest of a sample, are read in each sample until so many had
 * some, then in one of LOOPS_OF. */
#define LOOPS_FIRST 64u
#define LOOPS_OF 4u
#define BACK 16u /* records that show whether a thread drives the device */
#define NAMES 256u
#define SECOND_NS 1000000000ull
#define AGAIN_NS 20000000ull
#define RECENT_NS                                                                                  \
	100000000ull /* steps are running: a single sample may find a thread twice in one call */

/* A thread that may be sampled. */
struct driver {
	struct tft_ring *ring;
	/* Ring's thread when it was chosen; another thread may use the ring later. */
	uint32_t thread;
	uint64_t head;	   /* ring's head at the last sample */
	uint32_t same;	   /* samples since it changed */
	int fd;		   /* -1: not opened yet */
	uint64_t moved;	   /* ring's head when threads were last chosen */
	uint64_t moved_ns; /* when it was last found changed */
};

static struct {
	bool off;
	char why[128], why_no_lines[128]; /* "": there are samples */
	uint64_t next_ns, mean_ns, cost_ns, spent_ns, random, chosen_ns, workers_ns, begin_ns,
		ended_ns,    /* when a worker was last found to have ended */
		rest_cpu_ns, /* this thread's CPU clock when it last went to sleep */
		steps_ns;    /* time of the last sample before which calls had been made */
	bool steps;	     /* calls were made since the last sample */
	bool waits;	     /* one of the drivers was seen waiting, perhaps for another thread */
	int status_fd;
	uint32_t confined; /* how many system call filters the flusher is under */
	uint32_t asked;	   /* how many the job had asked for when that was read */
	struct driver driver[DRIVERS];
	uint32_t drivers;
	uint32_t loops;	      /* samples with loops */
	uint64_t name[NAMES]; /* hashes of texts whose names have been recorded */
} samples;

static void plan(uint64_t now_ns)
{
	samples.next_ns = now_ns + tfh_draw_wait(&samples.random, samples.mean_ns);
}

static void stop(const char *why)
{
	samples.off = true;
	snprintf(samples.why, sizeof(samples.why), "%s", why);
	tfh_log(1, "threads are not sampled: %s", why);
}

static void refused(int err)
{
	char why[128];

	snprintf(why, sizeof(why), "/proc/self/task/TID/syscall: %s", strerror(-err));
	stop(why);
}

/* Stacks of other threads are read from copies, which a sandbox may forbid. */
static void look_at_own_memory(void)
{
	uint64_t from = 1, to = 0;
	struct iovec here = {&to, sizeof(to)}, there = {&from, sizeof(from)};

	if (tfh_copy_memory(tfh_recorder.pid, &here, 1, &there, 1) != (ssize_t)sizeof(to))
		snprintf(samples.why_no_lines, sizeof(samples.why_no_lines), "process_vm_readv: %s",
			 strerror(errno));
}

void tfh_sampling_begin(uint64_t function)
{
	int fd;

	if (!tfh_opt_bool(&tfh_recorder.options, TFH_OPT_SAMPLES)) {
		stop("TFHOOK_SAMPLES=0");
		return;
	}
	/* Files that stay open would take descriptor numbers that the job relies on. */
	if (!tfh_is_apart()) {
		stop("a descriptor table of the recorder's own needs Linux 5.14");
		return;
	}
	fd = tfh_waiting_open(0, (uint32_t)syscall(SYS_gettid));
	if (fd < 0) {
		refused(fd);
		return;
	}
	tfh_close(fd);
	look_at_own_memory();
	tfh_futex_begin();
	tfh_holder_begin(function);
	samples.status_fd = tfh_call_filters_open();
	samples.asked = tfh_filters_asked();
	samples.confined = tfh_call_filters(samples.status_fd);
	samples.mean_ns = MEAN_NS;
	samples.cost_ns = MEAN_NS / SHARE;
	samples.random = tfh_ticks() ^ (uint64_t)tfh_recorder.pid << 40;
	samples.random = samples.random ? samples.random : 1;
	samples.begin_ns = (uint64_t)tfh_clock_ns(CLOCK_MONOTONIC);
	plan(samples.begin_ns);
}

const char *tfh_sampling_why(void)
{
	return samples.off ? samples.why : NULL;
}

const char *tfh_sampling_why_no_lines(void)
{
	return *samples.why_no_lines ? samples.why_no_lines : NULL;
}

uint64_t tfh_sampling_wait(uint64_t now_ns)
{
	if (samples.off || !samples.mean_ns)
		return UINT64_MAX;
	return samples.next_ns > now_ns ? samples.next_ns - now_ns : 0;
}

/* ---- which threads ---- */

static bool tells(uint16_t fn)
{
	return fn && fn < TFH_FN_COUNT && tfh_fn_table[fn].family != TFH_FAM_STAGE;
}

/* Whether its outermost call, which may be its first, is such a call. */
static bool opens(const struct tft_ring *ring)
{
	return tells(__atomic_load_n(&ring->open[0].fn, __ATOMIC_ACQUIRE));
}

/* Whether the thread's last calls show that it drives the device or fetches batches. A pipeline's
 * own threads do neither. If the owner overwrites a record meanwhile, the new record is one of its
 * calls, too. */
static bool drives(const struct tft_ring *ring)
{
	const struct tfh_rec *records =
		(const struct tfh_rec *)(tfh_journal.base + ring->records_off);
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

	if ((pid_t)ring->tid == tfh_recorder.pid || opens(ring))
		return true;
	for (uint64_t n = 1; n <= BACK && n <= head - ring->first; n++) {
		const struct tfh_rec *r = &records[(head - n) & ring->mask];

		if (tfh_peek(&r->kind) == TFT_CALL && tells(tfh_peek(&r->fn)))
			return true;
	}
	return false;
}

static struct driver *known(struct driver *of, uint32_t n, const struct tft_ring *ring)
{
	for (uint32_t i = 0; i < n; i++)
		if (of[i].ring == ring && of[i].thread == ring->thread)
			return &of[i];
	return NULL;
}

/* Whether the thread has made no call for long and is in none. The main thread never counts as
 * idle: its pauses may be long, and are what matters. */
static bool idle(const struct driver *d, uint64_t now_ns)
{
	return (pid_t)d->ring->tid != tfh_recorder.pid && now_ns - d->moved_ns > IDLE_NS &&
	       !opens(d->ring);
}

static void choose(uint64_t now_ns)
{
	struct tfh_journal *j = &tfh_journal;
	uint32_t slots = __atomic_load_n(&j->head->slot_count, __ATOMIC_ACQUIRE), n = 0;
	struct driver old[DRIVERS];
	uint32_t n_old = samples.drivers;

	memcpy(old, samples.driver, sizeof(old));
	for (uint32_t i = 0; i < slots && n < DRIVERS; i++) {
		struct tft_ring *ring = tfh_journal_ring(j, i);
		struct driver *was;

		if (!ring || __atomic_load_n(&ring->state, __ATOMIC_ACQUIRE) != TFT_RING_ACTIVE ||
		    !drives(ring))
			continue;
		was = known(old, n_old, ring);
		struct driver *d = &samples.driver[n++];
		*d = was ? *was : (struct driver){.ring = ring, .thread = ring->thread, .fd = -1};
		if (was)
			was->fd = -1;
		uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
		if (!was || head != d->moved) {
			d->moved = head;
			d->moved_ns = now_ns;
		}
	}
	samples.drivers = n;
	for (uint32_t i = 0; i < n_old; i++)
		if (old[i].fd >= 0)
			tfh_close(old[i].fd);
}

/* Once a second; more often in the second after one has ended, as the processes of a pool may live
 * for less than that. */
static void choose_workers(uint64_t now_ns)
{
	uint32_t tid[DRIVERS + 1] = {(uint32_t)tfh_recorder.pid}, n = 1;

	samples.ended_ns = tfh_workers_ended() ? now_ns : samples.ended_ns;
	bool again = samples.ended_ns && now_ns - samples.ended_ns < SECOND_NS;
	if (now_ns - samples.workers_ns < (again ? AGAIN_NS : SECOND_NS))
		return;
	samples.workers_ns = now_ns;
	for (uint32_t i = 0; i < samples.drivers; i++)
		if (samples.driver[i].ring->tid != tid[0])
			tid[n++] = samples.driver[i].ring->tid;
	tfh_workers_choose(tid, n);
}

/* ---- one sample ---- */

/* Id of the name, which is recorded first; 0: no id is left, or there is no room for the record. */
static uint32_t name_id(const char *text)
{
	struct tfh_rec r[1 + (TFH_WAITING_NAME + TFT_EXT_BYTES - 1) / TFT_EXT_BYTES];
	size_t len = strlen(text);
	uint64_t hash = 0;
	uint32_t id = len ? tfh_text_number(TFT_NAME_STRING, text, len, &hash) : 0;
	uint32_t parts = (uint32_t)((len + TFT_EXT_BYTES - 1) / TFT_EXT_BYTES), i;

	if (!id)
		return 0;
	for (i = 0; i < NAMES && samples.name[i] && samples.name[i] != hash;)
		i++;
	if (i == NAMES || samples.name[i] == hash)
		return i == NAMES ? 0 : id;
	memset(r, 0, sizeof(r));
	for (uint32_t k = 0; k <= parts; k++)
		r[k].t_begin = r[k].t_end = tfh_ticks();
	r[0].fn = TFT_NAME_STRING;
	r[0].kind = TFT_NAME;
	r[0].flags = TFT_F_EXT;
	r[0].stream = id;
	r[0].w[0] = hash;
	r[0].w[2] = len;
	for (uint32_t k = 0; k < parts; k++) {
		size_t at = (size_t)k * TFT_EXT_BYTES, left = len - at;

		r[1 + k].fn = (uint16_t)k;
		r[1 + k].kind = TFT_EXT;
		r[1 + k].result = (uint16_t)left;
		memcpy((char *)&r[1 + k] + offsetof(struct tfh_rec, stream), text + at,
		       left < TFT_EXT_BYTES ? left : TFT_EXT_BYTES);
	}
	if (!tfh_stage_own(r, 1 + parts))
		return 0;
	samples.name[i] = hash;
	return id;
}

/* What is stored in the place of the descriptor. */
static uint32_t shown(const struct tfh_waiting *w)
{
	return (uint32_t)(w->state == TFT_STATE_LOCK ? (int32_t)w->wait : w->fd);
}

static void keep(const struct driver *d, uint64_t t, const struct tfh_waiting *w, uint16_t fn,
		 uint64_t ns)
{
	struct tfh_place_seen seen = {.wants_loops = samples.loops < LOOPS_FIRST ||
						     tfh_draw(&samples.random) % LOOPS_OF == 0};
	uint32_t place =
		*samples.why_no_lines ? 0 : tfh_place_there(d->ring->tid, d->ring->pthread, &seen);
	struct tfh_rec r[] = {{.t_begin = t,
			       .t_end = t,
			       .kind = TFT_STATE,
			       .flags = seen.loops ? TFT_F_EXT : 0,
			       .result = (uint16_t)w->state,
			       .depth = fn != 0,
			       .stream = name_id(w->name),
			       .ctx = d->thread,
			       .stack = place,
			       .w = {w->state == TFT_STATE_RUNNING ? seen.gil : w->what,
				     w->call | (uint64_t)fn << 16 | (uint64_t)shown(w) << 32, ns}},
			      {.t_begin = t, .t_end = t, .kind = TFT_EXT}};

	r[1].result = (uint16_t)tft_loops_pack(seen.loop, seen.loops,
					       (uint8_t *)&r[1] + offsetof(struct tfh_rec, stream));
	samples.loops += seen.loops != 0;
	tfh_stage_own(r, seen.loops ? 2 : 1);
}

/* The innermost call that the thread is in; 0: none. *since: begin of the outermost one. */
static uint16_t open_call(const struct tft_ring *ring, uint64_t *since)
{
	uint16_t fn = __atomic_load_n(&ring->open[0].fn, __ATOMIC_ACQUIRE), inner = fn;

	*since = tfh_peek(&ring->open[0].t_begin);
	for (uint32_t i = 1; i < TFT_OPEN_SLOTS && inner; i++) {
		inner = tfh_peek(&ring->open[i].fn);
		fn = inner ? inner : fn;
	}
	return fn;
}

/* A thread that does the same thing for long is sampled less and less often, and each sample
 * represents more time. Returns how many samples this one counts as; 0: not sampled this time. */
static uint64_t stands_for(struct driver *d, uint64_t head)
{
	samples.steps |= head != d->head;
	d->same = head == d->head ? d->same + 1 : 0;
	d->head = head;
	if (d->same < SAME)
		return 1;
	return tfh_draw(&samples.random) % d->same < SAME ? d->same / SAME : 0;
}

static int ask(struct driver *d, struct tfh_waiting *w)
{
	if (d->fd < 0)
		d->fd = tfh_waiting_open(0, d->ring->tid);
	return d->fd < 0 ? d->fd : tfh_waiting_sample(d->fd, 0, d->ring->tid, w);
}

/* Whether it is in a call that may wait for a batch. */
static bool fetches(const struct tft_ring *ring)
{
	uint16_t fn = __atomic_load_n(&ring->open[0].fn, __ATOMIC_ACQUIRE);

	return fn && fn < TFH_FN_COUNT &&
	       (tfh_fn_table[fn].family == TFH_FAM_CONSUMER ||
		tfh_fn_table[fn].family == TFH_FAM_EXECUTE);
}

/* ns: the time of the thread that a sample represents, other things being equal. */
static void look_at(struct driver *d, uint64_t ns)
{
	struct tft_ring *ring = d->ring;
	struct tfh_waiting w;
	uint64_t head, since, other, t, times;
	uint16_t fn;
	int err;

	if (__atomic_load_n(&ring->state, __ATOMIC_ACQUIRE) != TFT_RING_ACTIVE ||
	    ring->thread != d->thread)
		return;
	head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	fn = open_call(ring, &since);
	samples.waits |= fetches(ring);
	t = tfh_ticks();
	if (fn && t - since < tfh_tick_hz() / (SECOND_NS / OPEN_NS))
		return;
	times = stands_for(d, head);
	if (!times)
		return;
	err = ask(d, &w);
	if (err == -ESRCH) /* the thread has ended */
		return;
	if (err) {
		refused(err);
		return;
	}
	/* The thread ran on meanwhile, so the sample belongs to its new state. */
	if (__atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) != head || open_call(ring, &other) != fn)
		w = (struct tfh_waiting){.state = TFT_STATE_RUNNING, .call = UINT16_MAX, .fd = -1};
	samples.waits |= w.state == TFT_STATE_GIL || w.state == TFT_STATE_LOCK ||
			 w.state == TFT_STATE_EVENT || w.state == TFT_STATE_POLL;
	keep(d, t, &w, fn, ns * times);
}

/* While a driver waits, another thread that runs Python may be making what it waits for, or holding
 * the global lock. */
static void sample_other(uint64_t ns)
{
	uint32_t but[DRIVERS];
	struct tfh_place_other other = {0};
	struct tfh_waiting w;
	struct tfh_rec r = {.kind = TFT_CHILD, .ctx = (uint32_t)tfh_recorder.pid};
	int fd;

	for (uint32_t i = 0; i < samples.drivers; i++)
		but[i] = samples.driver[i].ring->tid;
	r.t_begin = r.t_end = tfh_ticks();
	r.stack = tfh_place_other(tfh_draw(&samples.random), but, samples.drivers, &other);
	if (!other.tid || (fd = tfh_waiting_open(0, other.tid)) < 0) /* the thread has ended */
		return;
	if (!tfh_waiting_sample(fd, 0, other.tid, &w)) {
		r.result = (uint16_t)w.state;
		r.stream = other.tid;
		r.w[0] = w.what;
		r.w[1] = w.call | (uint64_t)shown(&w) << 32;
		r.w[2] = ns * other.of;
		tfh_stage_own(&r, 1);
	}
	tfh_close(fd);
}

static void look_at_some(uint64_t now_ns)
{
	struct driver *busy[DRIVERS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < samples.drivers && !samples.off; i++) {
		if (!idle(&samples.driver[i], now_ns))
			busy[n++] = &samples.driver[i];
		else if (tfh_draw(&samples.random) % IDLE_TIMES == 0)
			look_at(&samples.driver[i], samples.mean_ns * IDLE_TIMES);
	}
	uint32_t once = n < AT_ONCE ? n : AT_ONCE;
	uint32_t first = n > AT_ONCE ? (uint32_t)(tfh_draw(&samples.random) % n) : 0;
	for (uint32_t i = 0; i < once && !samples.off; i++)
		look_at(busy[(first + i) % n], samples.mean_ns * n / once);
}

/* ---- when ---- */

/* The mean interval allowed by what samples have cost so far. */
static uint64_t mean_now(uint64_t now_ns)
{
	uint64_t all = FIRST_NS + (now_ns - samples.begin_ns) / SHARE,
		 mean = samples.cost_ns * SHARE;

	samples.steps_ns = samples.steps ? now_ns : samples.steps_ns;
	if (now_ns - samples.steps_ns < RECENT_NS && samples.spent_ns < all + FIRST_OF_STEPS_NS)
		return MEAN_FIRST_NS;
	if (samples.spent_ns < all)
		return MEAN_NS;
	mean = mean > MEAN_NS ? mean : MEAN_NS;
	return mean < MEAN_MOST_NS ? mean : MEAN_MOST_NS;
}

/* Accounts for a sample: the CPU time that this thread has used since it went to sleep, because
 * waking up costs more than the sample on some virtual machines. */
static void pace(uint64_t now_ns)
{
	uint64_t cpu = (uint64_t)tfh_clock_ns(CLOCK_THREAD_CPUTIME_ID), cost, mean;

	cost = cpu - samples.rest_cpu_ns;
	samples.rest_cpu_ns = cpu;
	samples.spent_ns += cost;
	/* One sample that costs far more, as the first ones do, does not delay the next for
	 * long. */
	cost = cost < COST_TIMES * samples.cost_ns ? cost : COST_TIMES * samples.cost_ns;
	samples.cost_ns += cost / COST_OF - samples.cost_ns / COST_OF;
	mean = mean_now(now_ns);
	/* Takes few different values: the interval is part of each record, and records that differ
	 * in nothing else take less space. */
	samples.mean_ns = MEAN_FIRST_NS;
	while (samples.mean_ns < mean)
		samples.mean_ns += samples.mean_ns / 4;
}

void tfh_sampling_rest(void)
{
	if (!samples.off && samples.mean_ns)
		samples.rest_cpu_ns = (uint64_t)tfh_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void tfh_sampling_take(uint64_t now_ns)
{
	if (samples.off || !samples.mean_ns || now_ns < samples.next_ns)
		return;
	if (__atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE) == TFH_MODE_ON && tfh_tick_hz()) {
		bool chooses = now_ns - samples.chosen_ns > CHOOSE_NS;

		/* A filter that ends the process must not meet a sample. The kernel takes 7 us to
		 * tell: it is asked before each sample only once the job may have installed one. */
		if ((chooses || tfh_filters_asked() != samples.asked) &&
		    tfh_call_filters(samples.status_fd) != samples.confined)
			stop("the job has filtered its system calls");
		if (chooses) {
			samples.chosen_ns = now_ns;
			choose(now_ns);
		}
		choose_workers(now_ns);
		if (!samples.off) {
			samples.steps = samples.waits = false;
			look_at_some(now_ns);
			if (samples.waits)
				sample_other(samples.mean_ns);
			tfh_workers_sample(tfh_draw(&samples.random), samples.mean_ns);
		}
		pace(now_ns);
	}
	plan((uint64_t)tfh_clock_ns(CLOCK_MONOTONIC));
}

void tfh_sampling_forget(void)
{
	memset(&samples, 0, sizeof(samples));
	tfh_workers_forget();
}
