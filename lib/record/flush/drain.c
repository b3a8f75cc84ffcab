/*
 * Moves records from the rings to the staging area. At any moment, every record is in a ring, in
 * staging or in a written chunk.
 */
#include "record/flush/flusher.h"

#include <string.h>
#include <sys/mman.h>

#include "record/ring/journal.h"
#include "record/ring/staging.h"
#include "record/write/write.h"

#define THREADS_STEP 4096u

static uint64_t *expected; /* [thread] number of the next record to stage */
static uint32_t expected_cap;

/* Number of the thread's next record to stage. It makes sure that a thread's rings are emptied in
 * order. */
static uint64_t *expected_of(uint32_t thread)
{
	if (thread >= expected_cap) {
		uint32_t cap = (thread / THREADS_STEP + 1) * THREADS_STEP;
		void *map = expected ? mremap(expected, expected_cap * sizeof(uint64_t),
					      cap * sizeof(uint64_t), MREMAP_MAYMOVE)
				     : mmap(NULL, cap * sizeof(uint64_t), PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (map == MAP_FAILED)
			return NULL;
		expected = map;
		expected_cap = cap;
	}
	return &expected[thread];
}

/* Stages a NAME record for a thread that is seen for the first time. */
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

static bool grows;	 /* a small ring of a thread was more than half full */
static bool passed_over; /* the last round came to a ring before an older ring of the same thread */

/* Returns the number of records moved. *blocked is set when staging is full and cannot be written
 * now. `records` is NULL for a ring of the journal: its header says where they are, and is complete
 * only once the state is seen. */
static uint32_t drain_ring(struct tft_ring *ring, const struct tfh_rec *records, bool force,
			   bool *blocked)
{
	/* acquire: a ring seen as RETIRED has its last head */
	uint32_t state = __atomic_load_n(&ring->state, __ATOMIC_ACQUIRE);
	uint64_t head, *next;
	uint32_t moved = 0;

	if (state == TFT_RING_FREE)
		return 0;
	if (!records)
		records = (const struct tfh_rec *)(tfh_journal.base + ring->records_off);
	head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	if (head == ring->tail)
		return 0;
	if (!force && state == TFT_RING_ACTIVE && (head - ring->tail) * 4 <= ring->mask)
		return 0;
	grows |= state == TFT_RING_ACTIVE && (head - ring->tail) * 2 > ring->mask &&
		 ring->mask < TFT_RING_LARGE / sizeof(struct tfh_rec) - 1;
	next = expected_of(ring->thread);
	if (!next || *next != ring->tail) {
		passed_over = true; /* an older ring of this thread comes first */
		return 0;
	}
	if (ring->tail == 0 && !stage_thread_name(ring)) {
		*blocked = tfh_seal() != 0;
		if (*blocked || !stage_thread_name(ring))
			return 0;
	}
	while (ring->tail != head) {
		uint32_t n = tfh_stage_ring(ring, records, head);

		*next += n;
		moved += n;
		if (!n && tfh_seal()) {
			*blocked = true;
			break;
		}
	}
	return moved;
}

/* A ring may serve another thread once its own thread has ended and its losses are written. */
static void maybe_free(struct tft_ring *ring, uint32_t slot)
{
	if (__atomic_load_n(&ring->state, __ATOMIC_ACQUIRE) != TFT_RING_RETIRED ||
	    ring->tail != __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) ||
	    ring->drop_seen != __atomic_load_n(&ring->dropped, __ATOMIC_ACQUIRE))
		return;
	__atomic_store_n(&ring->state, TFT_RING_FREE, __ATOMIC_RELEASE);
	tfh_slot_free(&tfh_journal, slot);
}

static uint32_t drain_all(bool force, bool *blocked)
{
	struct tfh_journal *j = &tfh_journal;
	uint32_t n, moved = 0;

	for (uint32_t i = 0; i < tfh_early_count() && !*blocked; i++) {
		struct tfh_rec *records;
		struct tft_ring *ring = tfh_early_at(i, &records);

		/* At an exit, this may be the last round. */
		if (!tfh_early_claim(ring, force))
			continue;
		moved += drain_ring(ring, records, true, blocked);
		tfh_early_release(ring);
	}
	/* Read here: while we waited for a claim, the ring's thread may have moved everything to a
	 * new slot. */
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

/* A thread's new ring may be in a slot that another thread left, before its old one. Then it is
 * drained in another round. A thread has at most three rings: one in memory, a small one and a
 * large one. */
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

bool tfh_drain_grows(void)
{
	bool was = grows;

	grows = false;
	return was;
}

void tfh_drain_forget(void)
{
	if (expected)
		munmap(expected, expected_cap * sizeof(*expected));
	expected = NULL;
	expected_cap = 0;
}
