/* From the rings to the staging area. Every record lies in a ring, in staging or in a written
 * chunk, at any moment. */
#include "record/flusher.h"

#include <string.h>
#include <sys/mman.h>

#define OPEN_LOOK_NS 100000000ull /* calls that run longer than this get an OPEN record */
#define THREADS_STEP 4096u

/* Number of the thread's next record to stage, so that a thread's rings are emptied in their order.
 */
static uint64_t *expected_of(uint32_t thread)
{
	if (thread >= tfh_f.expected_cap) {
		uint32_t cap = (thread / THREADS_STEP + 1) * THREADS_STEP;
		void *map = tfh_f.expected
				    ? mremap(tfh_f.expected, tfh_f.expected_cap * sizeof(uint64_t),
					     cap * sizeof(uint64_t), MREMAP_MAYMOVE)
				    : mmap(NULL, cap * sizeof(uint64_t), PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (map == MAP_FAILED)
			return NULL;
		tfh_f.expected = map;
		tfh_f.expected_cap = cap;
	}
	return &tfh_f.expected[thread];
}

/* Where the next records go: lengthens the last batch if they continue it. NULL: staging is full.
 */
static struct tft_staged *batch_for(uint32_t thread, uint32_t tid, uint64_t first)
{
	struct tft_staging *s = tfh_p.journal.staging;
	struct tft_staged *b = s->n_batches ? &s->batch[s->n_batches - 1] : NULL;

	if (s->used >= s->capacity)
		return NULL;
	if (b && b->thread == thread && b->first + b->count == first)
		return b;
	if (s->n_batches == TFT_STAGING_BATCHES)
		return NULL;
	b = &s->batch[s->n_batches];
	*b = (struct tft_staged){.first = first, .thread = thread, .tid = tid, .offset = s->used};
	return b;
}

/* Makes n records behind `used` part of batch b. The order of stores is what a post-mortem reader
 * relies on. */
static void batch_grow(struct tft_staged *b, uint32_t n)
{
	struct tft_staging *s = tfh_p.journal.staging;

	__atomic_store_n(&b->count, b->count + n, __ATOMIC_RELEASE);
	s->used += n;
	if (b == &s->batch[s->n_batches])
		__atomic_store_n(&s->n_batches, s->n_batches + 1, __ATOMIC_RELEASE);
}

static bool staging_room(void)
{
	const struct tft_staging *s = tfh_p.journal.staging;

	return s->used < s->capacity && s->n_batches < TFT_STAGING_BATCHES;
}

bool tfh_stage_own(const struct tfh_rec *records, uint32_t n)
{
	struct tft_staging *s = tfh_p.journal.staging;
	struct tft_staged *b;

	if (s->capacity - s->used < n || !staging_room())
		return false;
	b = batch_for(0, 0, tfh_f.own_number);
	for (uint32_t i = 0; i < n; i++) {
		struct tfh_rec *r = &tfh_p.journal.staged[s->used + i];

		*r = records[i];
		r->seq = (uint32_t)(tfh_f.own_number + i);
	}
	tfh_live_see(0, &tfh_p.journal.staged[s->used], n);
	tfh_f.own_number += n;
	batch_grow(b, n);
	return true;
}

/* A NAME record for a thread that is seen for the first time. */
static bool stage_thread_name(const struct tft_ring *ring)
{
	struct tfh_rec r[2];
	size_t len = strnlen(ring->name, sizeof(ring->name));

	if (len > TFT_EXT_BYTES)
		len = TFT_EXT_BYTES;
	memset(r, 0, sizeof(r));
	r[0].t_begin = r[0].t_end = ring->t_created;
	r[0].fn = TFT_NAME_THREAD;
	r[0].kind = TFT_NAME;
	r[0].flags = len ? TFT_F_EXT : 0;
	r[0].stream = ring->thread;
	r[0].w[0] = ring->tid;
	r[0].w[1] = ring->pthread;
	r[0].w[2] = len;
	r[1].t_begin = r[1].t_end = ring->t_created;
	r[1].kind = TFT_EXT;
	r[1].result = (uint16_t)len;
	memcpy((char *)&r[1] + offsetof(struct tfh_rec, stream), ring->name, len);
	return tfh_stage_own(r, len ? 2 : 1);
}

/* Copies up to the end of the ring's memory or of staging. Returns the number of records. */
static uint32_t stage_some(struct tft_ring *ring, const struct tfh_rec *records, uint64_t head)
{
	struct tft_staging *s = tfh_p.journal.staging;
	uint64_t tail = ring->tail;
	uint32_t at = (uint32_t)(tail & ring->mask);
	uint64_t n = head - tail;
	struct tft_staged *b = batch_for(ring->thread, ring->tid, tail);
	struct tfh_rec *to;

	if (!b)
		return 0;
	if (n > ring->mask + 1u - at)
		n = ring->mask + 1u - at;
	if (n > s->capacity - s->used)
		n = s->capacity - s->used;
	to = &tfh_p.journal.staged[s->used];
	memcpy(to, &records[at], n * sizeof(*to));
	batch_grow(b, (uint32_t)n);
	/* release: the producer may overwrite what was copied */
	__atomic_store_n(&ring->tail, tail + n, __ATOMIC_RELEASE);
	tfh_live_see(ring->thread, to, (uint32_t)n);
	tfh_count_steps(to, (uint32_t)n);
	return (uint32_t)n;
}

static bool passed_over; /* the last round met a ring before an older one of its thread */

/* Returns records moved; *blocked is set when staging is full and cannot be written now. `records`:
 * NULL for a ring of the journal, whose header says where they are, and is whole only once the
 * state is seen. */
static uint32_t drain_ring(struct tft_ring *ring, const struct tfh_rec *records, bool force,
			   bool *blocked)
{
	/* acquire: a ring seen RETIRED has its last head */
	uint32_t state = __atomic_load_n(&ring->state, __ATOMIC_ACQUIRE);
	uint64_t head, *expected;
	uint32_t moved = 0;

	if (state == TFT_RING_FREE)
		return 0;
	if (!records)
		records = (const struct tfh_rec *)(tfh_p.journal.base + ring->records_off);
	head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	if (head == ring->tail)
		return 0;
	if (!force && state == TFT_RING_ACTIVE && (head - ring->tail) * 4 <= ring->mask)
		return 0;
	expected = expected_of(ring->thread);
	if (!expected || *expected != ring->tail) {
		passed_over = true; /* an older ring of this thread comes first */
		return 0;
	}
	if (ring->tail == 0 && !stage_thread_name(ring)) {
		*blocked = tfh_seal() != 0;
		if (*blocked || !stage_thread_name(ring))
			return 0;
	}
	while (ring->tail != head) {
		uint32_t n = stage_some(ring, records, head);

		*expected += n;
		moved += n;
		if (!n && tfh_seal()) {
			*blocked = true;
			break;
		}
	}
	return moved;
}

/* A ring whose thread has gone and whose losses are written may serve another thread. */
static void maybe_free(struct tft_ring *ring, uint32_t slot)
{
	if (__atomic_load_n(&ring->state, __ATOMIC_ACQUIRE) != TFT_RING_RETIRED ||
	    ring->tail != __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) ||
	    ring->drop_seen != __atomic_load_n(&ring->dropped, __ATOMIC_ACQUIRE))
		return;
	__atomic_store_n(&ring->state, TFT_RING_FREE, __ATOMIC_RELEASE);
	tfh_slot_free(&tfh_p.journal, slot);
}

static uint32_t drain_all(bool force, bool *blocked)
{
	struct tfh_journal *j = &tfh_p.journal;
	uint32_t n, moved = 0;

	for (uint32_t i = 0; i < tfh_early_count() && !*blocked; i++) {
		struct tfh_rec *records;
		struct tft_ring *ring = tfh_early_at(i, &records);

		/* At an end this may be the last time that anybody looks. */
		if (!tfh_early_claim(ring, force))
			continue;
		moved += drain_ring(ring, records, true, blocked);
		tfh_early_release(ring);
	}
	/* Read here: while we waited for a claim its thread may have moved all to a new slot. */
	n = __atomic_load_n(&j->head->slot_count, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < n && !*blocked; i++) {
		struct tft_ring *ring = tfh_journal_ring(j, i);

		if (!ring)
			continue;
		moved += drain_ring(ring, NULL, force, blocked);
		maybe_free(ring, i);
	}
	return moved;
}

/* A thread's new ring may lie in a place that another thread left, before its old one: it comes in
 * another round. A thread has three rings at most, one in memory, a small and a large one. */
uint32_t tfh_drain(bool force)
{
	bool blocked = false;
	uint32_t moved;

	passed_over = false;
	moved = drain_all(force, &blocked);
	for (int i = 0; i < 2 && force && passed_over && !blocked; i++) {
		passed_over = false;
		moved += drain_all(force, &blocked);
	}
	return moved;
}

static void look_at(struct tft_ring *ring, uint64_t now, uint64_t long_ticks)
{
	if (__atomic_load_n(&ring->state, __ATOMIC_ACQUIRE) != TFT_RING_ACTIVE)
		return;
	for (uint32_t i = 0; i < TFT_OPEN_SLOTS; i++) {
		struct tft_open_slot *slot = &ring->open[i];
		/* acquire: pairs with the release in tfh_enter; read again to see that it is still
		 * that call */
		uint16_t fn = __atomic_load_n(&slot->fn, __ATOMIC_ACQUIRE);
		uint64_t begin = __atomic_load_n(&slot->t_begin, __ATOMIC_RELAXED);
		struct tfh_rec r = {.t_begin = begin,
				    .t_end = now,
				    .fn = fn,
				    .kind = TFT_OPEN,
				    .depth = (uint8_t)i,
				    .stream = tfh_peek(&slot->stage),
				    .ctx = ring->thread,
				    .w = {tfh_peek(&slot->arg), ring->tid, 0}};

		if (!fn || begin == slot->seen || (int64_t)(now - begin) < (int64_t)long_ticks)
			continue;
		if (__atomic_load_n(&slot->fn, __ATOMIC_ACQUIRE) != fn ||
		    __atomic_load_n(&slot->t_begin, __ATOMIC_RELAXED) != begin)
			continue;
		if (tfh_stage_own(&r, 1))
			slot->seen = begin;
	}
}

void tfh_look_open(uint64_t now_ns)
{
	struct tfh_journal *j = &tfh_p.journal;
	uint64_t hz = tfh_tick_hz();
	uint32_t n = __atomic_load_n(&j->head->slot_count, __ATOMIC_ACQUIRE);

	if (!hz || now_ns - tfh_f.open_look_ns < OPEN_LOOK_NS / 2)
		return;
	tfh_f.open_look_ns = now_ns;
	for (uint32_t i = 0; i < n; i++) {
		struct tft_ring *ring = tfh_journal_ring(j, i);

		if (ring)
			look_at(ring, tfh_ticks(), hz / 10);
	}
}
