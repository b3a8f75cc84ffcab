/*
 * Writes OPEN records of calls that have been running for 100 ms, so that a job that hangs or is
 * killed shows where it was.
 */
#include "record/flush/flusher.h"
#include "record/ring/journal.h"
#include "record/ring/staging.h"

#define OPEN_SAMPLE_NS 100000000ull

static uint64_t last_ns;

static void look_at(struct tft_ring *ring, uint64_t now, uint64_t long_ticks)
{
	if (__atomic_load_n(&ring->state, __ATOMIC_ACQUIRE) != TFT_RING_ACTIVE)
		return;
	for (uint32_t i = 0; i < TFT_OPEN_SLOTS; i++) {
		struct tft_open_slot *slot = &ring->open[i];
		/* acquire: pairs with the release in tfh_enter; read again below to check that it
		 * is still the same call */
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

void tfh_sample_open_calls(uint64_t now_ns)
{
	struct tfh_journal *j = &tfh_journal;
	uint64_t hz = tfh_tick_hz();
	uint32_t n = __atomic_load_n(&j->head->slot_count, __ATOMIC_ACQUIRE);

	if (!hz || now_ns - last_ns < OPEN_SAMPLE_NS / 2)
		return;
	last_ns = now_ns;
	for (uint32_t i = 0; i < n; i++) {
		struct tft_ring *ring = tfh_journal_ring(j, i);

		if (ring)
			look_at(ring, tfh_ticks(), hz / 10);
	}
}

void tfh_sample_open_calls_forget(void)
{
	last_ns = 0;
}
