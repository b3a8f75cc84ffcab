/*
 * Short stage calls: 10^5 to 10^6 a second upstream of `batch`. They are counted in the ring's AGG
 * table, which is published now and then.
 */
#include "record/process/recorder.h"

/* Open addressing over the 64 entries of the ring header, where a post-mortem reader finds them. */
static struct tft_agg_slot *slot_of(struct tft_ring *ring, uint32_t stage)
{
	uint32_t i = stage * 0x9e3779b1u >> 26;

	for (uint32_t n = 0; n < TFT_AGG_SLOTS; n++, i = (i + 1) & (TFT_AGG_SLOTS - 1))
		if (ring->agg[i].stage == stage || !ring->agg[i].stage)
			return &ring->agg[i];
	return NULL;
}

static uint64_t after_last(const struct tfh_self *self, uint64_t t)
{
	uint64_t last;

	if (self->head == self->ring->first)
		return t;
	last = self->records[(self->head - 1) & self->mask].t_end;
	return t > last ? t : last;
}

/* A reservation may move the thread to a larger ring, together with its table. */
static void publish(struct tfh_self *self, int i)
{
	struct tfh_rec *rec = tfh_reserve(self, 1);
	struct tft_agg_slot *slot = &self->ring->agg[i];

	if (rec) {
		/* A thread's records are ordered by their end times. */
		tfh_fill(self, rec, 0, TFH_FN_tf_stage_getnext, TFT_AGG, slot->t_first,
			 after_last(self, slot->t_last));
		rec->stream = slot->stage;
		rec->ctx = slot->n;
		rec->w[0] = slot->total;
		rec->w[1] = slot->self;
		rec->w[2] = slot->max;
	}
	__atomic_store_n(&slot->n, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->stage, 0, __ATOMIC_RELEASE);
	if (rec)
		tfh_publish(self, 1);
}

void tfh_agg_flush(struct tfh_self *self)
{
	if (!self->in_agg || self->guard & TFH_GUARD_FILLING || !tfh_own_ring(self))
		return;
	self->in_agg = 0;
	for (int i = 0; i < TFT_AGG_SLOTS; i++)
		if (self->ring->agg[i].stage)
			publish(self, i);
}

void tfh_agg_add(struct tfh_self *self, uint32_t stage, uint64_t t_begin, uint64_t t_end,
		 uint64_t self_ticks)
{
	struct tft_agg_slot *slot;
	/* long_ticks is 200 us */
	uint64_t limit = tfh_peek(&tfh_long_ticks);
	uint64_t old = limit < TFH_NEVER / 50 ? limit * 50 : TFH_NEVER;

	if (self->in_agg && t_end - self->agg_since > old)
		tfh_agg_flush(self);
	slot = slot_of(self->ring, stage);
	if (!slot) {
		tfh_agg_flush(self);
		slot = slot_of(self->ring, stage);
		if (!slot)
			return;
	}
	if (!slot->stage) {
		if (!self->in_agg++)
			self->agg_since = t_begin;
		slot->t_first = t_begin;
		slot->total = slot->self = slot->max = 0;
		__atomic_store_n(&slot->n, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&slot->stage, stage, __ATOMIC_RELEASE);
	}
	slot->total += t_end - t_begin;
	slot->self += self_ticks;
	if (t_end - t_begin > slot->max)
		slot->max = t_end - t_begin;
	slot->t_last = t_end;
	__atomic_store_n(&slot->n, slot->n + 1, __ATOMIC_RELEASE);
}
