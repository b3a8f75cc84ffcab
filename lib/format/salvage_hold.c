/* The records that a journal holds: rings, staging, sums, and calls that were open. */
#include "format/salvage.h"

#include <errno.h>
#include <stdlib.h>

static struct tfh_rec *new_copy(struct tft_salvage *s, uint64_t records)
{
	if (s->n_copies == s->copies_cap) {
		uint32_t cap = s->copies_cap ? s->copies_cap * 2 : 64;
		struct tfh_rec **grown = realloc(s->copies, cap * sizeof(*grown));
		if (!grown)
			return NULL;
		s->copies = grown;
		s->copies_cap = cap;
	}
	struct tfh_rec *copy = malloc((records ? records : 1) * sizeof(*copy));
	if (copy)
		s->copies[s->n_copies++] = copy;
	return copy;
}

/* Adds copied records, except those whose own number does not match their position. */
static int hold(struct tft_salvage *s, struct tft_piece p)
{
	uint32_t start = 0;

	for (uint32_t i = 0; i <= p.count; i++) {
		bool sound = i < p.count && p.records[i].seq == (uint32_t)(p.first + i) &&
			     p.records[i].kind;
		if (sound)
			continue;
		struct tft_piece part = p;
		part.first += start;
		part.records += start;
		part.count = i - start;
		if (tft_pieces_add(&s->held, part) < 0)
			return -ENOMEM;
		start = i + 1;
		s->result->torn += i < p.count;
	}
	return 0;
}

static int hold_ring(struct tft_salvage *s, const struct tft_ring_copy *r)
{
	return hold(s, (struct tft_piece){.first = r->first,
					  .thread = r->ring.thread,
					  .tid = r->ring.tid,
					  .count = r->n,
					  .records = r->records});
}

static int hold_batch(struct tft_salvage *s, const struct tft_staged *b)
{
	return hold(s, (struct tft_piece){.first = b->first,
					  .thread = b->thread,
					  .tid = b->tid,
					  .count = b->count,
					  .records = s->copy.staged + b->offset});
}

/* Makes records, with the next numbers, from the sums of short calls that were not published
 * yet. */
static int hold_sums(struct tft_salvage *s, const struct tft_ring *ring)
{
	uint64_t number = ring->head;
	struct tfh_rec *copy = new_copy(s, TFT_AGG_SLOTS);
	uint16_t fn = 0;
	uint32_t n = 0;

	if (!copy)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->head.fn_count && !fn; i++)
		if (s->head.fn[i].family == TFH_FAM_STAGE)
			fn = (uint16_t)i;
	for (uint32_t i = 0; i < TFT_AGG_SLOTS; i++) {
		const struct tft_agg_slot *slot = &ring->agg[i];
		if (!slot->stage || !slot->n)
			continue;
		copy[n] = (struct tfh_rec){.t_begin = slot->t_first,
					   .t_end = slot->t_last,
					   .fn = fn,
					   .kind = TFT_AGG,
					   .seq = (uint32_t)(number + n),
					   .stream = slot->stage,
					   .ctx = slot->n,
					   .w = {slot->total, slot->self, slot->max}};
		n++;
	}
	return hold(s, (struct tft_piece){number, ring->thread, ring->tid, n, copy});
}

static void hold_open(struct tft_salvage *s, const struct tft_ring *ring, struct tfh_rec *open,
		      uint32_t *n)
{
	for (uint32_t i = 0; i < TFT_OPEN_SLOTS; i++) {
		const struct tft_open_slot *slot = &ring->open[i];
		if (!slot->fn || *n == TFT_MAX_EVENTS)
			continue;
		uint64_t end =
			(int64_t)(s->end_ticks - slot->t_begin) < 0 ? slot->t_begin : s->end_ticks;
		open[*n] = (struct tfh_rec){.t_begin = slot->t_begin,
					    .t_end = end,
					    .fn = slot->fn,
					    .kind = TFT_OPEN,
					    .depth = (uint8_t)i,
					    .seq = *n,
					    .stream = slot->stage,
					    .ctx = ring->thread,
					    .w = {slot->arg, ring->tid, 0}};
		++*n;
	}
}

static int hold_in_flight(struct tft_salvage *s)
{
	struct tfh_rec *open = new_copy(s, TFT_MAX_EVENTS);
	int code = open ? 0 : -ENOMEM;
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->copy.n_rings && code == 0; i++) {
		const struct tft_ring *ring = &s->copy.ring[i]->ring;
		if (ring->state != TFT_RING_ACTIVE)
			continue;
		/* a running thread will publish its sums itself */
		if (!(s->flags & TFT_SALVAGE_SNAPSHOT))
			code = hold_sums(s, ring);
		hold_open(s, ring, open, &n);
	}
	s->result->open = n;
	if (code == 0)
		code = hold(s, (struct tft_piece){0, TFT_THREAD_SALVAGE, 0, n, open});
	return code;
}

int tft_salvage_hold(struct tft_salvage *s)
{
	int code = 0;

	s->result->torn = s->copy.torn;
	for (uint32_t i = 0; i < s->copy.n_rings && code == 0; i++)
		code = hold_ring(s, s->copy.ring[i]);
	for (uint32_t i = 0; i < s->copy.n_batches && code == 0; i++)
		code = hold_batch(s, &s->copy.batch[i]);
	if (code == 0)
		code = hold_in_flight(s);
	tft_pieces_normalise(&s->held);
	return code;
}
