/*
 * Calls that are left without a return, and calls that return on another thread. record.h describes
 * how they are detected.
 */
#include "record/ring/rings.h"

#include <errno.h>
#include <signal.h>
#include <sys/uio.h>

#include "base/refused.h"
#include "record/process/steady.h"
#include "record/ring/journal.h"

/* Whether the frame still holds the call's return address. The frame's memory may be gone along
 * with a coroutine's stack. If it cannot be read (in a sandbox), the answer is yes. */
static bool holds(const struct tfh_record_frame *place)
{
	uint64_t word = 0;
	struct iovec to = {&word, sizeof(word)};
	struct iovec from = {(void *)(uintptr_t)(place->at - sizeof(word)), sizeof(word)};
	int saved = errno;
	bool there = tfh_copy_memory(tfh_raw_getpid(), &to, 1, &from, 1) >= 0 ? word == place->back
									      : errno != EFAULT;

	errno = saved;
	return there;
}

static bool was_left(const struct tfh_self *self, uint32_t i, uint64_t at)
{
	const struct tfh_record_frame *place = &self->room->place[i];

	return place->at <= at || (i < TFT_OPEN_SLOTS && !tfh_peek(&self->ring->open[i].fn)) ||
	       (place->back && !holds(place));
}

/* Closes all but the outermost n calls. */
static void close_to(struct tfh_self *self, uint32_t n)
{
	uint32_t end = self->depth < TFT_OPEN_SLOTS ? self->depth : TFT_OPEN_SLOTS;

	for (uint32_t i = n; i < end; i++)
		__atomic_store_n(&self->ring->open[i].fn, 0, __ATOMIC_RELEASE);
	if (n <= TFT_OPEN_SLOTS)
		self->stage = n ? self->ring->open[n - 1].stage : 0;
	self->depth = n;
}

/* Calls nested too deep to have a recorded frame are closed with the last call that has one. */
static uint32_t drop_left(struct tfh_self *self, uint64_t at)
{
	uint32_t known = self->depth < TFH_OPEN_MOST ? self->depth : TFH_OPEN_MOST;
	uint32_t n = known;

	while (n && was_left(self, n - 1, at))
		n--;
	if (n < known)
		close_to(self, n);
	return self->depth;
}

bool tfh_on_signal_stack(void)
{
	stack_t stack;

	return sigaltstack(NULL, &stack) || stack.ss_flags & SS_ONSTACK;
}

/*
 * Only a signal handler can leave our own code early, and what that code had reserved is not
 * published. A call from a deeper frame may follow such a jump, or come from a handler that
 * interrupted the filling of a record. The frame of the call whose record was being filled decides
 * between the two.
 */
static void drop_guard(struct tfh_self *self, uint64_t at)
{
	const struct tfh_record_frame *filling =
		self->guard & TFH_GUARD_CALL ? &self->room->place[0] : &self->filling;
	uint64_t own = self->guard & ~TFH_GUARD_FILLING ? self->guard_at : 0;

	if (self->guard & TFH_GUARD_FILLING && filling->at > own)
		own = filling->at;
	/* On the signal stack, the order of addresses has no meaning. */
	if (self->guard && own && own <= at && !tfh_on_signal_stack())
		self->guard = 0;
	else if (self->guard && !(self->guard & ~TFH_GUARD_FILLING) && filling->back &&
		 !holds(filling))
		self->guard = 0;
}

void tfh_settle_at(struct tfh_self *self, uint64_t at)
{
	if (self->guard)
		drop_guard(self, at);
	if (self->depth && !self->guard)
		drop_left(self, at);
}

void tfh_self_settle(struct tfh_self *self)
{
	int saved = errno;

	tfh_settle_at(self, tfh_stack());
	errno = saved;
}

static uint64_t begin_of(const struct tfh_self *self, uint32_t i)
{
	return i < TFT_OPEN_SLOTS ? self->ring->open[i].t_begin
				  : self->room->deep[i - TFT_OPEN_SLOTS];
}

/* The thread may have ended, but rings stay mapped. */
static void close_slot(struct tft_ring *ring, uint64_t begin)
{
	for (uint32_t i = 0; ring && i < TFT_OPEN_SLOTS; i++)
		if (tfh_peek(&ring->open[i].t_begin) == begin)
			__atomic_store_n(&ring->open[i].fn, 0, __ATOMIC_RELEASE);
}

/* Reopens a call after a signal handler interrupted it. */
static void enter_again(struct tfh_self *self, struct tft_ring *old, uint32_t depth,
			struct tfh_record_frame place, struct tft_open_slot call)
{
	struct tft_open_slot *slot;
	struct tfh_steady steady;
	int saved = errno;

	tfh_steady_begin(&steady);
	if (old != self->ring)
		close_slot(old, call.t_begin);
	slot = &self->ring->open[depth];
	self->depth = depth + 1;
	/* Calls opened in between are over. If a failed exec emptied the ring meanwhile, the call
	 * did not find its own slot. */
	for (uint32_t i = depth + 1; i < TFT_OPEN_SLOTS; i++)
		__atomic_store_n(&self->ring->open[i].fn, 0, __ATOMIC_RELEASE);
	self->room->place[depth] = place;
	tfh_poke(&slot->t_begin, call.t_begin);
	tfh_poke(&slot->arg, call.arg);
	tfh_poke(&slot->stage, self->stage);
	__atomic_store_n(&slot->fn, call.fn, __ATOMIC_RELEASE);
	tfh_steady_end(&steady);
	errno = saved;
}

/* Whether the innermost open call may have been abandoned. Almost nothing calls the driver inside a
 * driver call. */
static bool doubtful(const struct tfh_self *self, uint32_t d, uint64_t at)
{
	return d >= TFH_OPEN_MOST || self->room->place[d].at <= at || self->room->place[d].back ||
	       (d < TFT_OPEN_SLOTS && !tfh_peek(&self->ring->open[d].fn));
}

static void open_slot(struct tfh_self *self, uint32_t depth, struct tfh_record_frame place,
		      struct tft_open_slot call)
{
	struct tft_ring *ring = tfh_peek(&self->ring);
	struct tft_open_slot *slot = &ring->open[depth];

	tfh_poke(&slot->t_begin, call.t_begin);
	tfh_poke(&slot->arg, call.arg);
	tfh_poke(&slot->stage, self->stage);
	/* release: pairs with the acquire load of fn in the flusher's scan for open calls */
	__atomic_store_n(&slot->fn, call.fn, __ATOMIC_RELEASE);
	/* A signal handler may have run in between. It may have moved the ring, or mistaken this
	 * call, which was not visible yet, for an abandoned one. */
	if (tfh_unlikely(tfh_peek(&self->ring) != ring || tfh_peek(&self->depth) != depth + 1))
		enter_again(self, ring, depth, place, call);
}

struct tfh_self *tfh_enter_inner(struct tfh_self *self, enum tfh_fn fn, uint64_t arg,
				 struct tfh_record_frame place, uint64_t *begin)
{
	uint64_t now = tfh_ticks();
	uint32_t depth = self->depth;

	if (tfh_unlikely(depth && doubtful(self, depth - 1, place.at)))
		depth = drop_left(self, place.at);
	if (tfh_unlikely(depth == 0 && now - self->last_end > tfh_peek(&tfh_long_ticks)))
		now = tfh_pause_over(self, now);
	*begin = now;
	self->depth = depth + 1;
	if (tfh_likely(depth < TFH_OPEN_MOST))
		self->room->place[depth] = place;
	if (tfh_likely(depth < TFT_OPEN_SLOTS))
		open_slot(self, depth, place,
			  (struct tft_open_slot){.t_begin = now, .arg = arg, .fn = (uint16_t)fn});
	else if (depth < TFH_OPEN_MOST)
		self->room->deep[depth - TFT_OPEN_SLOTS] = now;
	return self;
}

static bool leave_odd(struct tfh_self *self, uint64_t begin)
{
	uint32_t n = self->depth < TFH_OPEN_MOST ? self->depth : TFH_OPEN_MOST;

	while (n && begin_of(self, n - 1) != begin)
		n--;
	if (n)
		close_to(self, n - 1);
	else if (self->depth > TFH_OPEN_MOST)
		self->depth--; /* nested too deep to have a slot */
	else		       /* a handler that ran while the call was being opened took it for
			        * abandoned */
		close_slot(self->ring, begin);
	return n || (self->ring && begin >= self->since);
}

bool tfh_leave_inner(struct tfh_self *self, uint64_t begin)
{
	uint32_t depth = self->depth - 1;

	if (tfh_unlikely(depth >= TFT_OPEN_SLOTS || self->ring->open[depth].t_begin != begin))
		return leave_odd(self, begin);
	self->depth = depth;
	/* A signal handler of this thread may have moved the ring. */
	__atomic_store_n(&tfh_peek(&self->ring)->open[depth].fn, 0, __ATOMIC_RELEASE);
	return true;
}

void tfh_close_elsewhere(uint64_t begin)
{
	const struct tfh_journal *j = &tfh_journal;
	struct tfh_rec *records;
	uint32_t n;

	for (uint32_t i = 0; i < tfh_early_count(); i++)
		close_slot(tfh_early_at(i, &records), begin);
	if (__atomic_load_n(&tfh_recorder.start_state, __ATOMIC_ACQUIRE) != TFH_START_DONE)
		return;
	n = __atomic_load_n(&j->head->slot_count, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < n; i++)
		close_slot(tfh_journal_ring(j, i), begin);
}
