/*
 * The interface for hooks. One producer per thread; no lock, allocation or system call on the fast
 * path.
 *
 *	uint64_t begin;
 *	struct tfh_self *self = tfh_enter(TFH_FN_x, argument, &begin);
 *	if (!self)
 *		return real(...);		// not recording: nothing was touched
 *	r = real(...);
 *	self = tfh_back(self, TFH_FN_x, begin);
 *	struct tfh_rec *rec = self ? tfh_leave(self, begin, TFH_FN_x, TFT_CALL) : NULL;
 *	if (rec) {				// NULL: ring full (counted) or call filtered
 *		rec->w[0] = ...;
 *		tfh_publish(self, 1);
 *	}
 *	return r;
 *
 * errno stays as the real call left it.
 *
 * A call may end without tfh_leave: by longjmp, cancellation, an exception, or on a coroutine's
 * stack that never runs again. The recorder detects such abandoned calls from the stack when the
 * thread enters another call, flushes or exits. A call counts as abandoned if its frame is not
 * above the new call's frame, or no longer holds its return address (checked only for driver calls,
 * which rarely contain others). If the job switches stacks, a live call may be mistaken for an
 * abandoned one, and the state kept here may belong to another call. So a call is identified by its
 * begin time, which is kept in its own frame, and leaving it closes only what was opened inside it.
 */
#ifndef TFH_RECORD_RECORD_H
#define TFH_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/fn.h"
#include "record/thread_self.h"

#pragma GCC visibility push(hidden)

/* The unusual ways of tfh_enter_at() (record/life/first_call.c): sets up the process or thread,
 * or refuses. */
struct tfh_self *tfh_enter_slow(enum tfh_fn fn, uint64_t arg, struct tfh_record_frame place,
				uint64_t *begin);
/* Closes abandoned calls of the calling thread, including abandoned code of ours. */
void tfh_self_settle(struct tfh_self *self);
/* Entering and leaving calls that are within others or unusual. tfh_leave_inner() returns false if
 * the call is not to be recorded. */
struct tfh_self *tfh_enter_inner(struct tfh_self *self, enum tfh_fn fn, uint64_t arg,
				 struct tfh_record_frame place, uint64_t *begin);
bool tfh_leave_inner(struct tfh_self *self, uint64_t begin);
/* For a call that began on another thread, which may have ended. Returns NULL if the call is not to
 * be recorded. */
struct tfh_self *tfh_back_elsewhere(enum tfh_fn fn, uint64_t begin);
struct tfh_rec *tfh_reserve_slow(struct tfh_self *self, uint32_t n);
/* exit.c: called in mode HOLD, before the real call. Returns at once for functions outside the
 * driver. */
void tfh_exit_wait(enum tfh_fn fn);
/* Publishes a CPUTIME record stamped `now`. */
void tfh_cputime(struct tfh_self *self, uint64_t now);
/* Like tfh_cputime(), at the end of a pause between hooked calls, with the place of the pause.
 * Returns the ticks after it, when the call that ends the pause begins. */
uint64_t tfh_pause_over(struct tfh_self *self, uint64_t now);

/* 200 us in ticks; UINT64_MAX (no CPUTIME records) until the tick rate is known. */
extern uint64_t tfh_long_ticks;
/* In ticks: shorter calls need neither a CPUTIME record nor a backtrace. */
extern uint64_t tfh_notable_ticks;
void tfh_notable_from(uint64_t ticks);
#pragma GCC visibility pop

/* The caller's frame, whatever function this is inlined into. */
static tfh_hot uint64_t tfh_stack(void)
{
	return (uint64_t)(uintptr_t)__builtin_dwarf_cfa();
}

/* Whether none of our code may run on the thread, except to count its calls. */
static inline bool tfh_confined(const struct tfh_self *self)
{
	return self->guard & TFH_GUARD_CONFINED;
}

/* Enclose our own code, whose hooked calls are not the job's. */
static inline void tfh_guard_begin(struct tfh_self *self)
{
	if (!(self->guard & ~TFH_GUARD_FILLING))
		self->guard_at = tfh_stack();
	self->guard++;
}

static inline void tfh_guard_end(struct tfh_self *self)
{
	self->guard--;
}

/* Whether a call can be entered in the usual way while recording, if it also comes soon after the
 * one before: it is outermost, on a thread that is set up. */
static tfh_hot bool tfh_set_up(const struct tfh_self *self)
{
	return tfh_likely(self->state == 0) && tfh_likely(tfh_up_to_date(self));
}

static tfh_hot bool tfh_at_ease(const struct tfh_self *self)
{
	/* acquire, free on x86: a thread that sees ON also sees the set-up that preceded it */
	return tfh_likely(__atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE) == TFH_MODE_ON) &&
	       tfh_set_up(self);
}

/* Enters such a call. If it comes after a pause, or a signal handler interferes,
 * it does nothing and returns false. */
static tfh_hot bool tfh_enter_usual(struct tfh_self *self, enum tfh_fn fn, uint64_t arg,
				    struct tfh_record_frame place, uint64_t now)
{
	struct tft_open_slot *slot = &tfh_peek(&self->ring)->open[0];

	if (tfh_unlikely(now - self->last_end > tfh_peek(&tfh_long_ticks)))
		return false;
	tfh_poke(&slot->t_begin, now);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->room->place[0] = place;
	self->state = tfh_state(1, 0);
	tfh_poke(&slot->arg, arg);
	/* release: pairs with the acquire load of fn in the flusher's scan for open calls */
	__atomic_store_n(&slot->stage_fn, (uint64_t)fn << 32, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	/* A signal handler may have run in between. Its calls may have moved the ring, or used this
	 * slot, since they saw no call or took this one, which was not visible yet, for
	 * abandoned. */
	if (tfh_likely(tfh_peek(&self->ring)->open[0].t_begin == now))
		return true;
	self->state = 0;
	__atomic_store_n(&slot->fn, 0, __ATOMIC_RELEASE);
	return false;
}

/* Whether a call passes through while recording is off. Steps are counted then,
 * so that a window of steps can start. */
static tfh_hot bool tfh_passes(uint32_t mode, enum tfh_fn fn)
{
	const struct tfh_fn_info *info = &tfh_fn_table[fn];

	return mode == TFH_MODE_DEAD || (mode == TFH_MODE_OFF && !(info->props & TFH_FN_ALWAYS) &&
					 info->family < TFH_FAM_CONSUMER);
}

/* tfh_enter() for a call whose frame is not the caller's. */
static tfh_hot struct tfh_self *tfh_enter_at(enum tfh_fn fn, uint64_t arg,
					     struct tfh_record_frame place, uint64_t *begin)
{
	struct tfh_self *self = tfh_here();

	if (tfh_at_ease(self)) {
		uint64_t now = tfh_ticks();

		if (tfh_likely(tfh_enter_usual(self, fn, arg, place, now))) {
			*begin = now;
			return self;
		}
	}
	return tfh_passes(tfh_peek(&tfh_mode), fn) ? NULL : tfh_enter_slow(fn, arg, place, begin);
}

/*
 * Announces a call. `arg` (bytes, stream id, iterator id, ...) is shown as its argument if the
 * process dies or hangs in it. `begin`, in ticks, is for tfh_leave(). Returns NULL if this call is
 * not to be recorded.
 */
static tfh_hot struct tfh_self *tfh_enter(enum tfh_fn fn, uint64_t arg, uint64_t *begin)
{
	return tfh_enter_at(fn, arg,
			    (struct tfh_record_frame){
				    tfh_stack(), (uint64_t)(uintptr_t)__builtin_return_address(0)},
			    begin);
}

/* Called after the real call. Returns the thread that the call returned on, usually the one that
 * entered it, or NULL if the call is not to be recorded. */
static tfh_hot struct tfh_self *tfh_back(struct tfh_self *self, enum tfh_fn fn, uint64_t begin)
{
	return tfh_likely(self == tfh_here()) ? self : tfh_back_elsewhere(fn, begin);
}

/* Whether the ring has space for n consecutive records. If not, the loss is counted. */
static tfh_hot bool tfh_room(struct tfh_self *self, uint32_t n)
{
	return self->head + n - self->tail_cache <= (uint64_t)self->mask + 1;
}

/* The i-th reserved record (they may wrap around the end of the ring). */
static tfh_hot struct tfh_rec *tfh_reserved(struct tfh_self *self, uint32_t i)
{
	return &self->records[(self->head + i) & self->mask];
}

/* The flusher has read the record that was there before, so its line is in another core's cache. A
 * write would wait for the line, 8 to 30 ns a call while other programs use the caches. So it is
 * prefetched this many records ahead (not the first ones of the ring: the test for its end would
 * cost more). */
#define TFH_RECORDS_AHEAD 4

/*
 * Reserves n records. Every successful reservation must be published. In between, the thread must
 * not reserve anything else (handles are named before tfh_leave), except a second, longer
 * reservation at the same position.
 */
static tfh_hot struct tfh_rec *tfh_reserve(struct tfh_self *self, uint32_t n)
{
	const struct tfh_record_frame frame = {tfh_stack(),
					       (uint64_t)(uintptr_t)__builtin_return_address(0)};

	self->filling = frame;
	/* The compiler keeps this order, so a signal handler on this thread sees the guard before
	 * the record. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->state |= tfh_state(0, TFH_GUARD_APPEND);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (tfh_unlikely(self->filling.at != frame.at)) /* a signal handler ran in between */
		self->filling = frame;
	/* More than half full: check again, grow. Otherwise there is room for one record. */
	if (tfh_unlikely(self->head >= self->half || (n > 1 && !tfh_room(self, n))))
		return tfh_reserve_slow(self, n);
	struct tfh_rec *rec = tfh_reserved(self, 0);
	tfh_arch_fetch_to_write(rec + n + TFH_RECORDS_AHEAD);
	if (!rec) /* spares callers a test */
		__builtin_unreachable();
	return rec;
}

/* Makes n reserved records visible to the flusher and to post-mortem readers. */
static tfh_hot void tfh_publish(struct tfh_self *self, uint32_t n)
{
	self->head += n;
	/* release: pairs with the acquire of head in the flusher's drain */
	__atomic_store_n(&self->ring->head, self->head, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->state &= ~tfh_state(0, TFH_GUARD_FILLING);
}

/* The fields of a record from fn to flags2 as one word, which is one store. */
#define TFH_WHAT_FLAGS 24
#define TFH_WHAT_RESULT 32
#define TFH_WHAT_DEPTH 48
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && offsetof(struct tfh_rec, kind) == 18 &&
		      offsetof(struct tfh_rec, flags) == 19 &&
		      offsetof(struct tfh_rec, result) == 20 &&
		      offsetof(struct tfh_rec, depth) == 22,
	      "one word");

static tfh_hot uint64_t tfh_what(uint16_t fn, uint8_t kind)
{
	return fn | (uint64_t)kind << 16;
}

static tfh_hot void tfh_say_what(struct tfh_rec *rec, uint64_t what)
{
	__builtin_memcpy((char *)rec + offsetof(struct tfh_rec, fn), &what, sizeof(what));
}

/* The context, and that there is no backtrace. */
static tfh_hot void tfh_say_context(struct tfh_rec *rec, uint64_t ctx)
{
	static_assert(offsetof(struct tfh_rec, stack) == offsetof(struct tfh_rec, ctx) + 4,
		      "one store");
	__builtin_memcpy((char *)rec + offsetof(struct tfh_rec, ctx), &ctx, sizeof(ctx));
}

/* Fills a reserved record, except words, stream, ctx and result. */
static tfh_hot void tfh_fill(struct tfh_self *self, struct tfh_rec *rec, uint32_t i, uint16_t fn,
			     uint8_t kind, uint64_t t_begin, uint64_t t_end)
{
	rec->t_begin = t_begin;
	rec->t_end = t_end;
	tfh_say_what(rec, tfh_what(fn, kind) | (uint64_t)(uint8_t)self->depth << TFH_WHAT_DEPTH);
	rec->seq = (uint32_t)(self->head + i);
	rec->stream = 0;
	rec->ctx = self->ctx;
	rec->stack = 0;
	rec->w[0] = rec->w[1] = rec->w[2] = 0;
}

/* Time for a record about what the thread is doing. A thread's records are ordered by their ends,
 * and the call just left is published with its end, after the records that name its handles. */
static inline uint64_t tfh_record_time(const struct tfh_self *self)
{
	uint32_t d = self->depth - 1;
	uint64_t begin = d < TFT_OPEN_SLOTS  ? self->ring->open[d].t_begin
			 : d < TFH_OPEN_MOST ? self->room->deep[d - TFT_OPEN_SLOTS]
					     : 0;

	return begin > self->last_end ? begin : self->last_end;
}

/* The part of tfh_leave_quiet() that all calls take. */
static tfh_hot bool tfh_left(struct tfh_self *self, uint64_t begin, uint64_t *end)
{
	uint64_t now = tfh_ticks();

	if (tfh_likely(self->depth == 1 && self->ring->open[0].t_begin == begin)) {
		self->state &= ~tfh_state(UINT32_MAX, 0);
		/* A signal handler of this thread may have moved the ring. */
		__atomic_store_n(&tfh_peek(&self->ring)->open[0].fn, 0, __ATOMIC_RELEASE);
	} else if (!tfh_leave_inner(self, begin)) {
		return false;
	}
	self->last_end = now;
	*end = now;
	return true;
}

/* Closes the call that began at `begin` without a record (aggregated calls). Returns its end in
 * ticks, or 0 if it belongs to another process and must not be recorded. */
static tfh_hot uint64_t tfh_leave_quiet(struct tfh_self *self, uint64_t begin)
{
	uint64_t now;

	if (tfh_unlikely(!tfh_left(self, begin, &now)))
		return 0;
	if (tfh_unlikely(now - begin > tfh_peek(&tfh_long_ticks)) && self->depth == 0)
		tfh_cputime(self, now);
	return now;
}

/*
 * Closes the call that began at `begin` and returns its record with times, fn, kind, depth and ctx
 * filled. The caller adds words, stream, flags and result, then publishes. Returns NULL if there is
 * no space (counted as lost) or the call is not to be recorded.
 */
static tfh_hot struct tfh_rec *tfh_leave(struct tfh_self *self, uint64_t begin, enum tfh_fn fn,
					 enum tft_kind kind)
{
	uint64_t t_end = tfh_leave_quiet(self, begin);
	struct tfh_rec *rec = tfh_likely(t_end != 0) ? tfh_reserve(self, 1) : NULL;

	if (tfh_likely(rec != NULL))
		tfh_fill(self, rec, 0, (uint16_t)fn, (uint8_t)kind, begin, t_end);
	return rec;
}

/* ---- handles ---- */

/*
 * Handles get small ids, each described by a NAME record. All of these functions may publish
 * records. Call them between tfh_enter and tfh_leave (or before), never while a record is reserved.
 *
 * Returns the id (>0) of a handle, and writes its NAME record before the first use by this thread.
 * `text` may be NULL; `extra` as described at enum tft_name. Returns the id even if the NAME record
 * did not fit (the next call tries again), or 0 if all ids of its kind are in use (intern.c).
 */
uint32_t tfh_handle_new(struct tfh_self *self, enum tft_name kind, uint64_t handle, uint64_t extra,
			const char *text, size_t len);

/* Slow path of tfh_handle_known(): returns the id if this thread has published its NAME, else 0. */
uint32_t tfh_handle_find(struct tfh_self *self, enum tft_name kind, uint64_t handle);

static tfh_hot uint64_t tfh_handle_key(enum tft_name kind, uint64_t handle)
{
	return handle * 16 + kind; /* kinds fit 4 bits; handles are pointers or small numbers */
}

/* Uses the top bits of a product, which depend on all bits of the handle: the driver's handles may
 * be pages apart. */
static tfh_hot uint64_t *tfh_handle_slot(struct tfh_self *self, uint64_t key)
{
	return self->room->handle_cache[key * 0x9e3779b97f4a7c15ull >> 58];
}

/* Whether the thread's cache has the id of a handle. */
static tfh_hot bool tfh_handle_cached(struct tfh_self *self, enum tft_name kind, uint64_t handle,
				      uint32_t *id)
{
	uint64_t key = tfh_handle_key(kind, handle);
	uint64_t *slot = tfh_handle_slot(self, key);

	*id = (uint32_t)slot[1];
	return tfh_likely(slot[0] == key) &&
	       tfh_likely(self->seen.handles == tfh_peek(&tfh_peek(&tfh_epoch)->handles));
}

/* Returns the id of a handle that this thread has named before, or 0. In that case, call
 * tfh_handle_new() with its text. */
static tfh_hot uint32_t tfh_handle_known(struct tfh_self *self, enum tft_name kind, uint64_t handle)
{
	uint32_t id;

	return tfh_handle_cached(self, kind, handle, &id) ? id
							  : tfh_handle_find(self, kind, handle);
}

/* The same for a stream; threads mostly use one at a time, which is kept in self->stream. */
uint32_t tfh_stream_find(struct tfh_self *self, uint64_t stream);

/* The only entry of the cache that can hold this function. */
static tfh_hot struct tfh_function *tfh_function_slot(struct tfh_self *self, uint64_t handle)
{
	return &self->room->functions[(uint32_t)handle * 0x9e3779b1u >> 26];
}

/* Discards what the thread has cached if the process's handles have changed. */
void tfh_handles_renew(struct tfh_self *self);

/* Called when a handle is destroyed or unloaded: every thread names it again if its value is
 * reused. */
void tfh_handles_forget(void);

/* Returns the id of a text (op name, mark name), by the same rules. */
uint32_t tfh_text_id(struct tfh_self *self, enum tft_name kind, const char *text, size_t len);

/* ---- aggregation ---- */

/*
 * Counts one short stage call instead of recording it. AGG records are published when the table is
 * full, when the oldest entry is 10 ms old, or by tfh_agg_flush() (when a long or a consumer call
 * ends on this thread).
 */
void tfh_agg_add(struct tfh_self *self, uint32_t stage, uint64_t t_begin, uint64_t t_end,
		 uint64_t self_ticks);
void tfh_agg_flush(struct tfh_self *self);

/* ---- life ---- */

/* Constructor work: reads the settings and the pid, registers the fork handlers. Opens no file,
 * starts no thread, prints nothing. Idempotent. */
void tfh_init(void);

/*
 * Registers an exit handler that closes the recording, once per `after`. Handlers run in reverse
 * order of registration. Registered after a successful cuInit, ours precedes the driver's.
 * Registered after the start, it precedes the destructors of other preloads, so their functions
 * (write, fstat, clock_gettime) still work when ours calls them.
 */
enum tfh_exit_after { TFH_EXIT_AFTER_DRIVER, TFH_EXIT_AFTER_START, TFH_EXIT_AFTERS };
void tfh_register_exit(enum tfh_exit_after after);

/* Drains every ring of this process to its file and writes index and footer. `clean`: the process
 * ends normally. Waits only once: at most 2 s, or 1 s inside a recorded call (a signal handler).
 * May be called more than once. */
void tfh_finish(bool clean);

/* Seals and writes everything recorded so far. Waits at most `ms` milliseconds. Returns 0 or
 * -errno. */
int tfh_flush_now(unsigned ms);

/* Counts a driver function that no hook covers; it is written to the NOTE chunk and run.json. */
void tfh_unhooked(const char *name);

/* Notes what became of PyTorch's ranges, for the NOTE chunk. `what` must stay valid.
 * Thread-safe. */
void tfh_note_torch(const char *what);

/* A framework's setting and where it is kept. It is read once a second, and recorded when it
 * changes. All of it must stay valid. Thread-safe. */
#define TFH_SETTINGS_AT_MOST 16u
#define TFH_SETTING_VALUES 4u
struct tfh_setting_at {
	const char *name;
	/* text for the values 0, 1, ...; NULL: not worth reporting */
	const char *value[TFH_SETTING_VALUES];
	const void *at;
	const uint8_t *there; /* 0: not initialized yet; NULL: always is */
	uint32_t bytes;	      /* 1 or 4 */
};
void tfh_note_setting(const struct tfh_setting_at *at);

/* The job pauses and resumes recording (marks header). */
void tfh_pause(void);
void tfh_resume(void);

/* Like tfh_map_once() in base/map.h, for memory that most jobs never need. On failure, prints one
 * line that `what` is not recorded. Thread-safe. */
void *tfh_memory(void *place, size_t bytes, const char *what);

/* Prints a short line on stderr, at most once per process, about a failure that costs the trace.
 * Signal-safe; preserves errno. */
void tfh_log_failure(const char *what, const char *remedy);

/* The calling thread is about to lose access to the clock. From here on its calls pass through and
 * are counted as not recorded, until tfh_confine_end() if it keeps the clock after all. */
void tfh_confine(void);
void tfh_confine_end(void);

/* Called by hooks before a request that installs a system call filter (number and six arguments).
 * Recording continues if the filter allows the recorder's calls. `answered_elsewhere`: another
 * process decides about filtered calls. Preserves errno. */
void tfh_filter_coming(const long *install, bool answered_elsewhere);

/* For hooks of exec. Before the real call, everything is written and closed as at an exit, unless
 * this is a vfork child or `path` is not a program (NULL: unknown). If the real call returns,
 * recording starts again with the next trigger. */
void tfh_exec_begin(const char *path);
void tfh_exec_failed(void);

#endif
