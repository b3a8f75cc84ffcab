/* The calling thread's ring: set-up, growth, loss, end of the thread. Slow paths of record.h. */
#include "record/internal.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/flusher.h"
#include "record/stacks/stacks.h"
#include "record/process/sanitizer.h"

__thread struct tfh_self tfh_self __attribute__((tls_model("initial-exec")));
uint64_t tfh_long_ticks = TFH_NEVER;

/* A thread that found no room asks again after some 5 ms (2^24 ticks of a 3 GHz counter). */
#define RETRY_TICKS (1u << 24)
#define REARM_MAX 3 /* PTHREAD_DESTRUCTOR_ITERATIONS is 4 */

static pthread_key_t end_key;
static uint32_t end_key_state; /* atomic: 0 none, 1 being made, 2 usable, 3 there is none to have */

/* Only this thread counts, but a signal handler of it may come in the middle: the sum is one
 * instruction. */
static void count_drop(struct tft_ring *ring)
{
	uint64_t now = tfh_ticks();

	if (__atomic_load_n(&ring->dropped, __ATOMIC_RELAXED) ==
	    __atomic_load_n(&ring->drop_seen, __ATOMIC_RELAXED))
		__atomic_store_n(&ring->drop_first, now, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->drop_last, now, __ATOMIC_RELAXED);
	/* release: who sees the count sees the bracket */
	__atomic_fetch_add(&ring->dropped, 1, __ATOMIC_RELEASE);
}

static void count_beyond(void)
{
	struct tft_journal *j = __atomic_load_n(&tfh_p.journal.head, __ATOMIC_ACQUIRE);
	uint64_t now = tfh_ticks(), zero = 0;

	if (!j) {
		__atomic_fetch_add(&tfh_p.beyond_early, 1, __ATOMIC_RELAXED);
		return;
	}
	__atomic_compare_exchange_n(&j->beyond_first, &zero, now, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	__atomic_store_n(&j->beyond_last, now, __ATOMIC_RELAXED);
	__atomic_fetch_add(&j->beyond, 1, __ATOMIC_RELEASE);
}

/*
 * A failed exec puts another journal in the place of one that threads may be taking rings from just
 * then, so these are counted. They look at the mode after that, and it looks at the count after
 * it set the mode: one of the two sees the other.
 */
static uint32_t taking; /* atomic */

static bool taking_begin(void)
{
	uint32_t mode;

	__atomic_fetch_add(&taking, 1, __ATOMIC_SEQ_CST);
	mode = __atomic_load_n(&tfh_mode, __ATOMIC_SEQ_CST);
	return mode != TFH_MODE_DEAD && mode != TFH_MODE_HOLD;
}

static void taking_end(void)
{
	__atomic_fetch_sub(&taking, 1, __ATOMIC_RELEASE);
}

bool tfh_rings_quiet(void)
{
	return !__atomic_load_n(&taking, __ATOMIC_SEQ_CST);
}

void tfh_rings_forked(void)
{
	__atomic_store_n(&taking, 0, __ATOMIC_RELAXED);
}

/* ---- the thread's ring ---- */

static void thread_name(char *name, size_t size)
{
	char comm[16] = "";

	prctl(PR_GET_NAME, comm, 0, 0, 0);
	comm[sizeof(comm) - 1] = '\0';
	memset(name, 0, size);
	memcpy(name, comm, sizeof(comm));
}

/* The old ring ends here; what it holds is drained by the flusher. */
static void ring_retire(struct tft_ring *ring)
{
	for (int i = 0; i < TFT_OPEN_SLOTS; i++)
		__atomic_store_n(&ring->open[i].fn, 0, __ATOMIC_RELAXED);
	/* release: the flusher that sees RETIRED sees the last head */
	__atomic_store_n(&ring->state, TFT_RING_RETIRED, __ATOMIC_RELEASE);
}

/* What a claimed cold ring still holds goes into the thread's new ring, where it survives the
 * process. */
static void copy_cold(const struct tft_ring *old, const struct tfh_rec *from, struct tft_ring *ring,
		      struct tfh_rec *to)
{
	if (ring->head - old->tail <= ring->mask + 1ull) {
		for (uint64_t n = old->tail; n != ring->head; n++)
			to[n & ring->mask] = from[n & old->mask];
		ring->first = ring->tail = old->tail;
	}
	ring->dropped = old->dropped - old->drop_seen;
	ring->drop_first = old->drop_first;
	ring->drop_last = old->drop_last;
}

/* Once the new ring can be drained: until then the flusher, which may close the recording
 * meanwhile, finds all of it in the old one. */
static void empty_cold(struct tft_ring *old, const struct tft_ring *ring)
{
	if (ring->head - old->tail <= ring->mask + 1ull)
		old->tail = ring->head;
	old->drop_seen = old->dropped;
	tfh_early_release(old);
}

/* Fills the header of a fresh ring and makes it the thread's own; open calls and running totals
 * move along. */
static void ring_adopt(struct tfh_self *self, struct tft_ring *ring, struct tfh_rec *records,
		       uint32_t mask)
{
	struct tft_ring *before = self->ring, *old = tfh_own_ring(self) ? before : NULL;
	/* Not claimed: the flusher is moving the records itself. */
	bool cold = old && tfh_ring_is_cold(old) && tfh_early_claim(old, false);

	ring->mask = mask;
	ring->tid = old ? old->tid : (uint32_t)syscall(SYS_gettid);
	ring->thread =
		old ? old->thread : __atomic_add_fetch(&tfh_p.next_thread, 1, __ATOMIC_RELAXED);
	ring->t_created = tfh_ticks();
	ring->pthread = (uint64_t)(uintptr_t)pthread_self();
	ring->first = ring->head = ring->tail = self->head;
	ring->dropped = ring->drop_seen = 0;
	thread_name(ring->name, sizeof(ring->name));
	if (self->depth && self->ring != ring) /* calls go on that began on the old ring */
		memcpy(ring->open, self->ring->open, sizeof(ring->open));
	if (old) {
		memcpy(ring->agg, old->agg, sizeof(ring->agg));
		for (int i = 0; i < TFT_AGG_SLOTS; i++)
			old->agg[i].stage = 0;
	}
	if (cold)
		copy_cold(old, self->records, ring, records);
	if (!tfh_ring_is_cold(ring) && (!old || tfh_ring_is_cold(old)))
		tfh_journal_map_enter(ring);
	self->ring = ring;
	self->records = records;
	self->mask = mask;
	self->tail_cache = ring->tail;
	__atomic_store_n(&ring->state, TFT_RING_ACTIVE, __ATOMIC_RELEASE);
	if (cold)
		empty_cold(old, ring);
	if (old)
		ring_retire(old);
	else
		tfh_journal_map_leave(before);
}

static bool ring_in_journal(struct tfh_self *self, bool large)
{
	struct tfh_journal *j = &tfh_p.journal;
	struct tft_ring *ring = tfh_slot_alloc(j, large);
	uint32_t bytes = large ? TFT_RING_LARGE : TFT_RING_SMALL;

	if (!ring)
		return false;
	ring->records_off = (uint64_t)((uint8_t *)ring - j->base) + TFT_RING_HEADER;
	ring_adopt(self, ring, (struct tfh_rec *)(j->base + ring->records_off),
		   bytes / (uint32_t)sizeof(struct tfh_rec) - 1);
	return true;
}

static bool ring_grow(struct tfh_self *self)
{
	struct tfh_steady steady;
	bool done;

	tfh_steady_begin(&steady);
	done = taking_begin() && tfh_own_ring(self) && ring_in_journal(self, true);
	taking_end();
	tfh_steady_end(&steady);
	return done;
}

static bool ring_in_memory(struct tfh_self *self)
{
	struct tfh_rec *records;
	struct tft_ring *ring = tfh_early_ring(&records);

	if (!ring)
		return false;
	ring_adopt(self, ring, records, TFH_COLD_RECORDS - 1);
	return true;
}

static bool thread_room(struct tfh_self *self)
{
	void *map = self->room;

	if (!map)
		map = mmap(NULL, sizeof(*self->room), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return false;
	self->room = map;
	return true;
}

static void thread_room_free(struct tfh_self *self)
{
	if (self->room)
		munmap(self->room, sizeof(*self->room));
	self->room = NULL;
}

/* Runs when the thread ends. Calls made by later destructors set the thread up again, a few times.
 */
static void thread_end(void *arg)
{
	struct tfh_self *self = &tfh_self;
	struct tfh_steady steady;
	int saved = errno;

	(void)arg;
	if (tfh_confined(self))
		return;
	tfh_steady_begin(&steady);
	tfh_guard_begin(self);
	if (tfh_own_ring(self)) {
		tfh_agg_flush(self);
		ring_retire(self->ring);
	}
	tfh_journal_map_leave(self->ring);
	self->ring = NULL;
	self->head = self->tail_cache = 0;
	self->rearmed++;
	tfh_self_names_free(self);
	thread_room_free(self);
	/* The thread may have been cancelled inside a call, or in the middle of our own code. */
	self->depth = self->stage = self->in_agg = self->guard = 0;
	tfh_steady_end(&steady);
	errno = saved;
}

static void make_key(void)
{
	uint32_t none = 0;

	if (__atomic_load_n(&end_key_state, __ATOMIC_ACQUIRE) != 0 ||
	    !__atomic_compare_exchange_n(&end_key_state, &none, 1, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&end_key_state, pthread_key_create(&end_key, thread_end) ? 3 : 2,
			 __ATOMIC_RELEASE);
}

static void thread_arm(void)
{
	make_key();
	if (__atomic_load_n(&end_key_state, __ATOMIC_ACQUIRE) == 2)
		pthread_setspecific(end_key, &tfh_self);
}

/* Gives the thread a ring where this process records now; false: none to have. */
static bool thread_ring(struct tfh_self *self)
{
	/* Read before the state: the starter stores them in the other order, so that a ring in
	 * memory never passes for one in the journal. */
	uint32_t generation = __atomic_load_n(tfh_peek(&tfh_generation), __ATOMIC_ACQUIRE);
	bool hot = __atomic_load_n(&tfh_p.start_state, __ATOMIC_ACQUIRE) == TFH_START_DONE;
	uint64_t now = tfh_ticks();
	bool done;

	if (self->ring && !tfh_own_ring(self))
		self->head = self->tail_cache = 0; /* a parent process counted these */
	if (tfh_own_ring(self) && (!hot || !tfh_ring_is_cold(self->ring))) {
		self->generation = generation;
		return true;
	}
	if (now < self->retry)
		return tfh_own_ring(self);
	if (!tfh_own_ring(self))
		thread_arm();
	done = thread_room(self);
	/* A large ring takes over all that a cold one may hold. */
	if (done && hot)
		done = (self->head != 0 && ring_in_journal(self, true)) ||
		       ring_in_journal(self, false);
	else if (done)
		done = ring_in_memory(self);
	if (done) {
		self->generation = generation;
		return true;
	}
	self->retry = now + RETRY_TICKS;
	if (hot)
		tfh_flusher_wake();
	return tfh_own_ring(self);
}

void tfh_self_forked(struct tfh_self *self)
{
	/* Calls open across the fork are the parent's. */
	self->depth = self->stage = 0;
	self->since = tfh_confined(self) ? 0 : tfh_ticks();
	self->named = NULL;
	self->handle_generation = 0;
	self->in_agg = 0;
	self->rearmed = 0;
	self->retry = 0;
	self->guard &= TFH_GUARD_CONFINED;
	self->ctx = 0;
}

/* While recording is off, trigger calls of the training loop are counted: a window of steps may
 * begin. */
static void count_step_off(enum tfh_fn fn)
{
	uint64_t n;

	if (fn != TFH_FN_mark_step &&
	    (tfh_fn_table[fn].family != TFH_FAM_CONSUMER || tfh_self.depth > 0))
		return;
	n = __atomic_add_fetch(&tfh_p.steps_off, 1, __ATOMIC_RELAXED);
	if (tfh_p.window_off && tfh_p.window_first && n >= tfh_p.window_first)
		tfh_window_begin();
}

static int begin_and_take(struct tfh_self *self, enum tfh_fn fn, const struct tfh_steady *steady)
{
	uint32_t mode;

	if (__atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE) == TFH_MODE_COLD &&
	    tfh_fn_table[fn].props & TFH_FN_TRIGGER)
		tfh_start(steady);
	if (__atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE) == TFH_MODE_OFF &&
	    !(tfh_fn_table[fn].props & TFH_FN_ALWAYS))
		count_step_off(fn);
	mode = __atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE);
	if (mode == TFH_MODE_HOLD || mode == TFH_MODE_DEAD ||
	    (mode == TFH_MODE_OFF && !(tfh_fn_table[fn].props & TFH_FN_ALWAYS)))
		return -ECANCELED;
	return thread_ring(self) ? 0 : -EAGAIN;
}

/* Everything that a first call may have to set up. Returns 0 when the thread has a ring, else why
 * not. */
static int prepare(struct tfh_self *self, enum tfh_fn fn, const struct tfh_steady *steady)
{
	int err;

	tfh_init();
	err = tfh_process_check();
	if (err) {
		if (err == -EAGAIN)
			count_beyond();
		return err;
	}
	err = taking_begin() ? begin_and_take(self, fn, steady) : -ECANCELED;
	if (err == -EAGAIN)
		count_beyond();
	taking_end();
	return err;
}

struct tfh_self *tfh_enter_slow(enum tfh_fn fn, uint64_t arg, struct tfh_record_frame place,
				uint64_t *begin)
{
	struct tfh_self *self = tfh_here();
	uint32_t mode = __atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE);
	struct tfh_steady steady;
	int saved = errno, err;

	if (self->guard)
		tfh_settle_at(self, place.at);
	errno = saved;
	if (self->guard) {
		if (tfh_confined(self) && (mode == TFH_MODE_ON || mode == TFH_MODE_COLD))
			tfh_confined_call(self);
		else if (self->guard & TFH_GUARD_APPEND && tfh_own_ring(self))
			count_drop(self->ring);
		return NULL;
	}
	if (mode == TFH_MODE_HOLD)
		tfh_exit_wait(fn);
	if (mode == TFH_MODE_HOLD || mode == TFH_MODE_DEAD || self->rearmed > REARM_MAX)
		return NULL;
	if (mode == TFH_MODE_OFF && !(tfh_fn_table[fn].props & TFH_FN_ALWAYS)) {
		count_step_off(fn);
		mode = __atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE);
		if (mode != TFH_MODE_ON)
			return NULL;
	}
	/* The common slow call: this thread is set up, and nothing is to begin. */
	if (self->ring && self->generation == tfh_peek(tfh_peek(&tfh_generation)) &&
	    (mode != TFH_MODE_COLD || !(tfh_fn_table[fn].props & TFH_FN_TRIGGER)))
		return tfh_enter_open(self, fn, arg, place, begin);
	if (!self->room && tfh_counter_refused()) {
		tfh_confine();
		tfh_confined_call(self);
		return NULL;
	}
	tfh_steady_begin(&steady);
	tfh_guard_begin(self);
	tfh_sanitizer_ignore_begin();
	err = prepare(self, fn, &steady);
	tfh_sanitizer_ignore_end();
	tfh_guard_end(self);
	tfh_steady_end(&steady);
	errno = saved;
	return err ? NULL : tfh_enter_open(self, fn, arg, place, begin);
}

struct tfh_rec *tfh_reserve_slow(struct tfh_self *self, uint32_t n)
{
	struct tft_ring *ring = self->ring;
	uint64_t used;
	int saved;

	if (!tfh_own_ring(self)) { /* a call that was open across a fork */
		self->guard &= ~TFH_GUARD_APPEND;
		return NULL;
	}
	/* acquire: the flusher has copied what it gives back */
	self->tail_cache = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
	used = self->head - self->tail_cache;
	if (used * 2 > self->mask && !tfh_ring_is_cold(ring)) {
		tfh_flusher_wake();
		if (self->mask < TFT_RING_LARGE / sizeof(struct tfh_rec) - 1) {
			uint64_t now = tfh_ticks();

			saved = errno;
			if (now >= self->retry && !ring_grow(self))
				self->retry = now + RETRY_TICKS;
			errno = saved;
		}
	}
	if (tfh_likely(tfh_room(self, n)))
		return &self->records[self->head & self->mask];
	count_drop(self->ring);
	self->guard &= ~TFH_GUARD_APPEND;
	return NULL;
}

/* 181 ns a reading, so only around gaps and long calls. A reading that finds no room is no loss of
 * a call. */
static void cputime(struct tfh_self *self, uint64_t now, uint32_t stack)
{
	struct tfh_rec *rec;
	int saved = errno;

	if (!tfh_own_ring(self) || self->guard & TFH_GUARD_APPEND)
		return;
	self->tail_cache = __atomic_load_n(&self->ring->tail, __ATOMIC_ACQUIRE);
	rec = tfh_room(self, 1) ? tfh_reserve(self, 1) : NULL;
	if (!rec)
		return;
	tfh_fill(self, rec, 0, 0, TFT_CPUTIME, now, now);
	rec->stack = stack;
	rec->w[0] = (uint64_t)tfh_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	tfh_publish(self, 1);
	errno = saved;
}

void tfh_cputime(struct tfh_self *self, uint64_t now)
{
	cputime(self, now, 0);
}

uint64_t tfh_pause_over(struct tfh_self *self, uint64_t now)
{
	cputime(self, now, tfh_stack_of_pause(self));
	return tfh_ticks();
}
