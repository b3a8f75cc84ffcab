#include "record/ring/staging.h"

#include <string.h>

#include "record/ring/journal.h"
#include "record/ring/switch.h"

static uint64_t own_number; /* next number of the flusher's own series, thread 0 */

/* Returns the batch for the next records, which is the last batch if they continue it. NULL:
 * staging is full. */
static struct tft_staged *batch_for(uint32_t thread, uint32_t tid, uint64_t first)
{
	struct tft_staging *s = tfh_journal.staging;
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

/* Appends n records to batch b. Post-mortem readers rely on the order of stores. */
static void batch_grow(struct tft_staged *b, uint32_t n)
{
	struct tft_staging *s = tfh_journal.staging;

	__atomic_store_n(&b->count, b->count + n, __ATOMIC_RELEASE);
	s->used += n;
	if (b == &s->batch[s->n_batches])
		__atomic_store_n(&s->n_batches, s->n_batches + 1, __ATOMIC_RELEASE);
}

static bool staging_room(void)
{
	const struct tft_staging *s = tfh_journal.staging;

	return s->used < s->capacity && s->n_batches < TFT_STAGING_BATCHES;
}

bool tfh_stage_own(const struct tfh_rec *records, uint32_t n)
{
	struct tft_staging *s = tfh_journal.staging;
	struct tft_staged *b;

	if (s->capacity - s->used < n || !staging_room())
		return false;
	b = batch_for(0, 0, own_number);
	for (uint32_t i = 0; i < n; i++) {
		struct tfh_rec *r = &tfh_journal.staged[s->used + i];

		*r = records[i];
		r->seq = (uint32_t)(own_number + i);
	}
	own_number += n;
	batch_grow(b, n);
	return true;
}

uint64_t tfh_own_numbers(uint32_t n)
{
	uint64_t first = own_number;

	own_number += n;
	return first;
}

uint32_t tfh_stage_ring(struct tft_ring *ring, const struct tfh_rec *records, uint64_t head)
{
	struct tft_staging *s = tfh_journal.staging;
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
	to = &tfh_journal.staged[s->used];
	memcpy(to, &records[at], n * sizeof(*to));
	batch_grow(b, (uint32_t)n);
	/* release: the producer may overwrite the copied records */
	__atomic_store_n(&ring->tail, tail + n, __ATOMIC_RELEASE);
	tfh_count_steps(to, (uint32_t)n);
	return (uint32_t)n;
}

void tfh_staging_forget(void)
{
	own_number = 0;
}
