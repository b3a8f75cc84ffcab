/*
 * The usual way to leave a call: the call ends on a thread that has no other call open and runs
 * none of our code. Nearly all calls take this path, so its instructions are what recording costs.
 * Everything else is in functions that are not inlined.
 */
#ifndef TFH_RECORD_USUAL_H
#define TFH_RECORD_USUAL_H

#include "record/record.h"

/* The record of such a call while it is being filled. */
struct tfh_filling {
	struct tft_ring *ring;
	struct tfh_rec *rec;
	uint64_t number;
};

/* The ring seems more than half full. Returns false if there is no room for a record. */
bool tfh_usual_room(struct tfh_self *self);

static tfh_hot bool tfh_alone(const struct tfh_self *self)
{
	return self->state == tfh_state(1, 0);
}

/* With tfh_alone(): sets the guard to TFH_GUARD_CALL by a store of its highest byte, since a
 * constant of eight bytes would take a second instruction. A load of the whole state would stall on
 * that store, but before the whole is written again only a signal handler loads it. */
static tfh_hot void tfh_guard_filling(struct tfh_self *self)
{
	static_assert(TFH_GUARD_CALL << 8 == 0, "one byte");
	tfh_poke((uint8_t *)&self->guard + 3, (uint8_t)(TFH_GUARD_CALL >> 24));
}

/*
 * With tfh_alone(): closes the call that began at `begin` and fills its record except words;
 * tfh_publish_usual() must follow. If the open call is another one or there is no room, it does
 * nothing and returns false.
 */
static tfh_hot bool tfh_leave_usual(struct tfh_self *self, uint64_t begin, uint64_t end,
				    uint64_t what, uint32_t stream, uint32_t ctx,
				    struct tfh_filling *f)
{
	/* First, so that calls of a signal handler leave ring,
	 * place[0] and record alone from here on. */
	tfh_guard_filling(self);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	f->number = self->head;
	if (tfh_unlikely(self->ring->open[0].t_begin != begin) ||
	    (tfh_unlikely(f->number >= self->half) && !tfh_usual_room(self))) {
		self->state = tfh_state(1, 0);
		return false;
	}
	f->ring = self->ring;
	f->rec = &self->records[f->number & self->mask];
	tfh_arch_fetch_to_write(f->rec + 1 + TFH_RECORDS_AHEAD);
	__atomic_store_n(&f->ring->open[0].fn, 0, __ATOMIC_RELEASE);
	self->last_end = end;
	f->rec->t_begin = begin;
	f->rec->t_end = end;
	tfh_say_what(f->rec, what);
	f->rec->seq = (uint32_t)f->number;
	f->rec->stream = stream;
	tfh_say_context(f->rec, ctx);
	return true;
}

static tfh_hot void tfh_publish_usual(struct tfh_self *self, const struct tfh_filling *f,
				      uint64_t a, uint64_t b, uint64_t c)
{
	f->rec->w[0] = a;
	f->rec->w[1] = b;
	f->rec->w[2] = c;
	self->head = f->number + 1;
	/* release: as in tfh_publish() */
	__atomic_store_n(&f->ring->head, f->number + 1, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->state = 0;
}

#endif
