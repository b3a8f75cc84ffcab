/* The calling thread's ring: growth, loss, CPU time. Slow paths of record.h. */
#include "record/ring/rings.h"
#include "record/usual.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/refused.h"
#include "record/process/requests.h"
#include "record/process/steady.h"
#include "record/ring/journal.h"
#include "record/stacks/stacks.h"

/* Only this thread adds to the count, but one of its signal handlers may interrupt it, so the
 * addition is one instruction. */
void tfh_count_drop(struct tft_ring *ring)
{
	uint64_t now = tfh_ticks();

	if (__atomic_load_n(&ring->dropped, __ATOMIC_RELAXED) ==
	    __atomic_load_n(&ring->drop_seen, __ATOMIC_RELAXED))
		__atomic_store_n(&ring->drop_first, now, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->drop_last, now, __ATOMIC_RELAXED);
	/* release: a thread that sees the count sees the bracket */
	__atomic_fetch_add(&ring->dropped, 1, __ATOMIC_RELEASE);
}

/*
 * A failed exec replaces the journal while other threads may be taking rings from it, so those
 * threads are counted. They count themselves before they read the mode, and the exec sets the mode
 * before it reads the count, so one of the two sees the other.
 */
static uint32_t taking; /* atomic */

bool tfh_taking_begin(void)
{
	uint32_t mode;

	__atomic_fetch_add(&taking, 1, __ATOMIC_SEQ_CST);
	mode = __atomic_load_n(&tfh_mode, __ATOMIC_SEQ_CST);
	return mode != TFH_MODE_DEAD && mode != TFH_MODE_HOLD;
}

void tfh_taking_end(void)
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

	if (tfh_may_call(TFH_CALL_THREAD))
		prctl(PR_GET_NAME, comm, 0, 0, 0);
	comm[sizeof(comm) - 1] = '\0';
	memset(name, 0, size);
	memcpy(name, comm, sizeof(comm));
}

void tfh_ring_retire(struct tft_ring *ring)
{
	for (int i = 0; i < TFT_OPEN_SLOTS; i++)
		__atomic_store_n(&ring->open[i].fn, 0, __ATOMIC_RELAXED);
	/* release: a flusher that sees RETIRED sees the last head */
	__atomic_store_n(&ring->state, TFT_RING_RETIRED, __ATOMIC_RELEASE);
}

/* Copies what a claimed cold ring still holds into the thread's new ring, where it survives the
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

/* Called once the new ring can be drained. Until then the flusher, which may close the recording
 * meanwhile, finds all records in the old ring. */
static void empty_cold(struct tft_ring *old, const struct tft_ring *ring)
{
	if (ring->head - old->tail <= ring->mask + 1ull)
		old->tail = ring->head;
	old->drop_seen = old->dropped;
	tfh_early_release(old);
}

static void tail_seen(struct tfh_self *self, uint64_t tail)
{
	self->tail_cache = tail;
	self->half = tail + ((uint64_t)self->mask + 1) / 2;
}

/* Fills the header of a fresh ring and makes it the thread's own. Open calls and running totals
 * move along. */
static void ring_adopt(struct tfh_self *self, struct tft_ring *ring, struct tfh_rec *records,
		       uint32_t mask)
{
	struct tft_ring *before = self->ring, *old = tfh_own_ring(self) ? before : NULL;
	uint32_t open = self->depth < TFT_OPEN_SLOTS ? self->depth : TFT_OPEN_SLOTS;
	/* If the claim fails, the flusher is moving the records itself. */
	bool cold = old && tfh_ring_is_cold(old) && tfh_early_claim(old, false);

	ring->mask = mask;
	ring->tid = old ? old->tid : (uint32_t)syscall(SYS_gettid);
	ring->thread = old ? old->thread
			   : __atomic_add_fetch(&tfh_recorder.next_thread, 1, __ATOMIC_RELAXED);
	ring->t_created = tfh_ticks();
	ring->pthread = (uint64_t)(uintptr_t)pthread_self();
	ring->first = ring->head = ring->tail = self->head;
	ring->dropped = ring->drop_seen = 0;
	thread_name(ring->name, sizeof(ring->name));
	/* Calls that began on the old ring go on. Behind them may be one that was being opened when
	 * a failed exec emptied that ring: it did not find its own slot when it was over. */
	if (self->depth && self->ring != ring)
		memcpy(ring->open, self->ring->open, open * sizeof(ring->open[0]));
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
	tail_seen(self, ring->tail);
	__atomic_store_n(&ring->state, TFT_RING_ACTIVE, __ATOMIC_RELEASE);
	if (cold)
		empty_cold(old, ring);
	if (old)
		tfh_ring_retire(old);
	else
		tfh_journal_map_leave(before);
}

bool tfh_ring_in_journal(struct tfh_self *self, bool large)
{
	struct tfh_journal *j = &tfh_journal;
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
	done = tfh_taking_begin() && tfh_own_ring(self) && tfh_ring_in_journal(self, true);
	tfh_taking_end();
	tfh_steady_end(&steady);
	return done;
}

bool tfh_ring_in_memory(struct tfh_self *self)
{
	struct tfh_rec *records;
	struct tft_ring *ring = tfh_early_ring(&records);

	if (!ring)
		return false;
	ring_adopt(self, ring, records, TFH_COLD_RECORDS - 1);
	return true;
}

/* For a ring that seems more than half full: looks again, makes it larger.
 * Returns false if it has no room for n records. */
static bool make_room(struct tfh_self *self, uint32_t n)
{
	struct tft_ring *ring = self->ring;
	uint64_t used;
	int saved;

	/* acquire: the flusher has copied the records it gives back */
	tail_seen(self, __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE));
	used = self->head - self->tail_cache;
	if (used * 2 > self->mask && !tfh_ring_is_cold(ring)) {
		tfh_flusher_wake();
		bool late = used * 4 > self->mask * 3ull || !tfh_room(self, n);
		if (self->mask < TFT_RING_LARGE / sizeof(struct tfh_rec) - 1 &&
		    (late || tfh_peek(&tfh_journal.spare))) {
			uint64_t now = tfh_ticks();

			saved = errno;
			if (now >= self->retry && !ring_grow(self))
				self->retry = now + TFH_RETRY_TICKS;
			errno = saved;
		}
	}
	return tfh_room(self, n);
}

struct tfh_rec *tfh_reserve_slow(struct tfh_self *self, uint32_t n)
{
	bool own = tfh_own_ring(self); /* not if the call was open at a fork */

	if (tfh_likely(own && make_room(self, n)))
		return &self->records[self->head & self->mask];
	if (own)
		tfh_count_drop(self->ring);
	self->guard &= ~TFH_GUARD_APPEND;
	return NULL;
}

bool tfh_usual_room(struct tfh_self *self)
{
	return tfh_own_ring(self) && make_room(self, 1);
}

/* A reading takes 181 ns, so it is made only around gaps and long calls. A reading that finds no
 * room is not a lost call. */
static void cputime(struct tfh_self *self, uint64_t now, uint32_t stack)
{
	struct tfh_rec *rec;
	int saved = errno;

	if (!tfh_own_ring(self) || self->guard & TFH_GUARD_FILLING)
		return;
	tail_seen(self, __atomic_load_n(&self->ring->tail, __ATOMIC_ACQUIRE));
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
