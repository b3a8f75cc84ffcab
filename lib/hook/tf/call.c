/*
 * The logic around a wrapped TensorFlow call: nesting, self time, what is recorded and what is only
 * counted.
 *
 * One batch gives one record, of the consumer: IteratorResource::GetNext inside a DoCompute only
 * identifies the iterator. In a dataset loop inside a tf.function the consumer is a stage, whose
 * records then carry an iterator id, too. Stages before `batch` run up to a million times a second,
 * so their short calls are counted per thread and stage.
 */
#include "hook/tf/tf.h"

#include "hook/driver/driver.h"
#include "hook/torch/torch.h"
#include "record/stacks/stacks.h"

#include <errno.h>

#define TLS __attribute__((tls_model("initial-exec")))
#define LOADERS 64 /* distinct first arguments of tf_data_iterator_get_next */
#define NEST 64	   /* deeper calls are not recorded; a long pipeline has 30 stages */

/* The thread's open calls, outermost first. Stored here, since longjmp abandons frames whose memory
 * is then reused. */
static __thread struct {
	uint32_t count;
	struct tfh_tf_frame *open[NEST];
} calls TLS;

/* What an open call learns from calls inside it. This is not in its frame either: with a coroutine,
 * the frame may end or continue elsewhere. */
struct sum {
	uint64_t children; /* ticks spent in wrapped calls directly inside */
	uint64_t iterator; /* consumer: its IteratorResource */
	uint32_t stage;	   /* consumer: the root stage's id */
	uint16_t row;
	bool end;
};
_Static_assert(NEST * sizeof(struct sum) <= sizeof(((struct tfh_room *)0)->tf_calls), "room");

static const uint16_t fn_of[TFH_TF_HOOKS] = {
	[TFH_ROW_tf_stage_getnext] = TFH_FN_tf_stage_getnext,
	[TFH_ROW_tf_getnext_op] = TFH_FN_tf_getnext_op,
	[TFH_ROW_tf_getnext_optional_op] = TFH_FN_tf_getnext_optional_op,
	[TFH_ROW_tf_iterator_resource] = TFH_FN_tf_iterator_resource,
	[TFH_ROW_tf_reduce_op] = TFH_FN_tf_reduce_op,
	[TFH_ROW_TFE_Execute] = TFH_FN_TFE_Execute,
	[TFH_ROW_TF_SessionRun] = TFH_FN_TF_SessionRun,
	[TFH_ROW_user_getnext] = TFH_FN_user_getnext,
	[TFH_ROW_torch_backward] = TFH_FN_torch_backward,
};

/* ---- frames ---- */

/* NULL while the thread is not recorded. */
static inline struct sum *sum_at(uint32_t level)
{
	struct tfh_room *room = tfh_self.room;

	return room && level < NEST ? (struct sum *)room->tf_calls + level : NULL;
}

/* The call that encloses the one at `level`. */
static inline struct sum *outer_of(uint32_t level)
{
	return level ? sum_at(level - 1) : NULL;
}

static inline uint64_t mark_of(const struct tfh_tf_frame *frame)
{
	return (uint64_t)(uintptr_t)frame * 0x9e3779b97f4a7c15;
}

/* Frames at or below the new one's stack address were abandoned by a longjmp. */
static void drop_dead(const struct tfh_tf_frame *frame)
{
	while (calls.count && calls.open[calls.count - 1] <= frame)
		calls.count--;
}

static inline bool is_consumer(uint16_t row)
{
	switch (row) {
	case TFH_ROW_tf_getnext_op:
	case TFH_ROW_tf_getnext_optional_op:
	case TFH_ROW_tf_iterator_resource:
	case TFH_ROW_tf_reduce_op:
	case TFH_ROW_user_getnext:
		return true;
	default:
		return false;
	}
}

static void track(struct tfh_tf_frame *frame)
{
	struct sum *sum = sum_at(frame->level);

	frame->mark = mark_of(frame);
	calls.open[calls.count++] = frame;
	if (sum)
		*sum = (struct sum){.row = frame->row};
}

/* Removes the frame from the list; false if it is no longer there. */
static bool untrack(struct tfh_tf_frame *frame)
{
	const struct sum *sum = sum_at(frame->level);

	if (frame->level >= calls.count || calls.open[frame->level] != frame)
		return false;
	calls.count = frame->level;
	if (!sum)
		return true;
	frame->children = sum->children;
	if (is_consumer(frame->row)) {
		frame->iterator = sum->iterator;
		frame->stage = sum->stage;
		frame->end = sum->end;
	}
	return true;
}

/* ---- enter ---- */

static inline void announce(struct tfh_self *self, uint64_t argument, uint32_t stage)
{
	uint32_t depth = self->depth - 1;

	if (depth < TFT_OPEN_SLOTS) {
		self->ring->open[depth].arg = argument;
		self->ring->open[depth].stage = stage;
	}
}

static inline void enter_stage(struct tfh_self *self, struct tfh_tf_frame *frame)
{
	int at = tfh_tf_this >= 0
			 ? tfh_tf_this
			 : tfh_tf_this_index(frame, tfh_tf_wrapper[TFH_ROW_tf_stage_getnext]);
	struct tfh_tf_stage stage = tfh_likely(at >= 0)
					    ? tfh_tf_stage(self, (const void *)frame->arg[at])
					    : tfh_tf_stage_unnamed(self);

	frame->stage = stage.id;
	frame->place = stage.place;
	frame->outer_stage = self->stage;
	self->stage = frame->stage;
	announce(self, frame->stage, frame->stage);
}

/* Returns false if the pass is not to be recorded. If no Python module has been looked up since
 * torch was loaded, torch is asked for its ranges here. */
static bool begin_backward(void)
{
	tfh_torch_find();
	return tfh_torch_wanted();
}

/* The name of what a call executes. */
static inline void name_executed(struct tfh_self *self, struct tfh_tf_frame *frame, unsigned row)
{
	if (row == TFH_ROW_TFE_Execute) {
		struct tfh_tf_op op = tfh_tf_op(self, frame->arg);
		frame->iterator = op.id;
		frame->makes_stage = op.makes_stage;
	} else if (row == TFH_ROW_TF_SessionRun) {
		frame->iterator = tfh_tf_session_name(self, frame);
	} else if (row == TFH_ROW_torch_backward) {
		frame->iterator = tfh_torch_backward_name(self);
	} else {
		return;
	}
	announce(self, frame->iterator, self->stage);
}

void *tfh_tf_enter(unsigned row, struct tfh_tf_frame *frame)
{
	void *real = __atomic_load_n(&tfh_tf_real[row], __ATOMIC_ACQUIRE);
	const struct sum *outer;
	struct tfh_self *self;

	if (tfh_unlikely(!real)) {
		real = tfh_tf_resolve(row, tfh_tf_wrapper[row]);
		if (row == TFH_ROW_TFE_Execute && real)
			tfh_tf_settings();
	}
	frame->self = NULL;
	frame->row = (uint16_t)row;
	frame->mark = 0;
	if (tfh_unlikely(calls.count && calls.open[calls.count - 1] <= frame))
		drop_dead(frame);
	frame->level = (uint16_t)calls.count;
	if (tfh_unlikely(!real || calls.count == NEST))
		return real;
	if (row == TFH_ROW_torch_backward && !begin_backward())
		return real;
	frame->children = frame->iterator = 0;
	frame->stage = 0;
	frame->place = TFH_PLACE_PIPELINE;
	frame->end = frame->makes_stage = false;
	outer = outer_of(frame->level);
	if (row == TFH_ROW_tf_iterator_resource && outer && is_consumer(outer->row)) {
		track(frame); /* tfh_tf_leave passes `this` on */
		return real;
	}
	self = tfh_enter_at(
		fn_of[row], 0,
		(struct tfh_record_frame){(uint64_t)(uintptr_t)frame + TFH_TF_FRAME + 16, 0},
		&frame->begin);
	track(frame);
	if (!self)
		return real;
	frame->self = self;
	if (tfh_likely(row == TFH_ROW_tf_stage_getnext))
		enter_stage(self, frame);
	else
		name_executed(self, frame, row);
	return real;
}

/* ---- leave ---- */

/* The iterator's id, from its IteratorResource and its pipeline. The next epoch's iterator may
 * reuse the resource's address, but not the root stage. */
static uint32_t iterator_id(struct tfh_self *self, const struct tfh_tf_frame *frame)
{
	static uint32_t loaders;
	uint64_t resource = frame->row == TFH_ROW_user_getnext ? frame->arg[0] : frame->iterator;
	uint64_t handle = (resource ^ (uint64_t)frame->stage << 40 ^ (uint64_t)frame->stage >> 24) &
			  (UINT64_MAX >> 4);
	uint32_t id = tfh_handle_known(self, TFT_NAME_ITERATOR, handle);

	if (!id && handle) {
		int saved_errno = errno;
		/* A custom loader's first argument may be anything, such as a batch number. */
		if (frame->row == TFH_ROW_user_getnext &&
		    __atomic_fetch_add(&loaders, 1, __ATOMIC_RELAXED) >= LOADERS)
			handle = 1;
		id = tfh_handle_new(self, TFT_NAME_ITERATOR, handle, frame->stage, NULL, 0);
		errno = saved_errno;
	}
	return id;
}

/* Whose line of the program is recorded: a stage runs on TensorFlow's threads, but the program's
 * thread makes it. */
static bool is_placed(const struct tfh_tf_frame *frame, uint64_t ticks)
{
	uint64_t least = tfh_peek(&tfh_stack_ticks);

	return frame->makes_stage ? least != UINT64_MAX
				  : frame->row == TFH_ROW_torch_backward && ticks >= least;
}

/* Like tfh_leave(), for a call that tfh_leave_quiet() has closed. */
static void publish(struct tfh_self *self, const struct tfh_tf_frame *frame, uint64_t end,
		    const uint64_t w[3], bool failed)
{
	bool placed = is_placed(frame, end - frame->begin);
	uint32_t stack = tfh_unlikely(placed) ? tfh_stack_of_pause(self) : 0;
	struct tfh_rec *rec = tfh_reserve(self, 1);

	if (!rec)
		return;
	tfh_fill(self, rec, 0, fn_of[frame->row], TFT_CALL, frame->begin, end);
	rec->stack = stack;
	rec->stream = frame->stage;
	rec->flags = (uint8_t)((frame->end ? TFT_F_OPTIONAL : 0) | (failed ? TFT_F_FAILED : 0));
	rec->w[0] = w[0];
	rec->w[1] = w[1];
	rec->w[2] = w[2];
	tfh_publish(self, 1);
}

/* bool *end_of_sequence is the last argument of a stage's get-next, which is virtual, so the caller
 * did pass it. */
static inline bool said_end(const struct tfh_tf_frame *frame)
{
	const volatile unsigned char *end = (const unsigned char *)frame->arg[tfh_tf_this + 3];

	return tfh_tf_this >= 0 && end && *end == 1;
}

static inline void leave_stage(struct tfh_self *self, struct tfh_tf_frame *frame, struct sum *outer,
			       bool failed)
{
	/* named before the end time is read, since records are ordered by their ends */
	uint64_t iterator = frame->place == TFH_PLACE_LOOP_SOURCE ? iterator_id(self, frame) : 0;
	uint64_t end = tfh_leave_quiet(self, frame->begin);
	uint64_t total = end - frame->begin;
	uint64_t own = total > frame->children ? total - frame->children : 0;

	self->stage = frame->outer_stage;
	if (tfh_unlikely(!end))
		return;
	frame->end = !failed && said_end(frame);
	if (outer) {
		outer->children += total;
		if (is_consumer(outer->row)) {
			outer->stage = frame->stage;
			outer->end = frame->end;
		}
	}
	/* 50 us: a quarter of what the recorder calls long */
	if (total < tfh_peek(&tfh_long_ticks) / 4 && frame->place == TFH_PLACE_PIPELINE) {
		if (frame->stage)
			tfh_agg_add(self, frame->stage, frame->begin, end, own);
		return;
	}
	tfh_agg_flush(self);
	publish(self, frame, end, (uint64_t[]){iterator, frame->stage, own}, failed);
}

static void leave_other(struct tfh_self *self, struct tfh_tf_frame *frame, struct sum *outer,
			bool failed)
{
	if (frame->row == TFH_ROW_tf_iterator_resource && tfh_tf_this >= 0)
		frame->iterator = frame->arg[tfh_tf_this];
	uint64_t w[3] = {is_consumer(frame->row) ? iterator_id(self, frame) : frame->iterator, 0,
			 0};
	uint64_t end = tfh_leave_quiet(self, frame->begin);
	uint64_t total = end - frame->begin;

	if (tfh_unlikely(!end))
		return;
	if (is_consumer(frame->row)) {
		if (outer)
			outer->children += total;
		w[1] = frame->stage;
		w[2] = total > frame->children ? total - frame->children : 0;
		tfh_agg_flush(self);
	} else if (frame->row == TFH_ROW_TFE_Execute && frame->arg[2]) {
		w[2] = (uint64_t) * (const int *)frame->arg[2]; /* num_retvals */
	} else if (frame->row == TFH_ROW_TF_SessionRun) {
		w[1] = (uint32_t)tfh_tf_argument(frame, 4); /* ninputs */
		w[2] = (uint32_t)tfh_tf_argument(frame, 7); /* noutputs */
	}
	publish(self, frame, end, w, failed);
}

/* Passes on to the consumer what a resource inside it learned. */
static void pass_on(const struct tfh_tf_frame *frame, struct sum *outer)
{
	if (tfh_tf_this >= 0)
		outer->iterator = frame->arg[tfh_tf_this];
	outer->stage = frame->stage;
	outer->children += frame->children;
	outer->end = frame->end;
}

static void finish(struct tfh_tf_frame *frame, bool failed)
{
	struct tfh_self *self = frame->self;
	struct sum *outer = untrack(frame) ? outer_of(frame->level) : NULL;

	if (tfh_unlikely(!self)) {
		if (frame->row == TFH_ROW_tf_iterator_resource && outer && is_consumer(outer->row))
			pass_on(frame, outer);
		return;
	}
	self = tfh_back(self, fn_of[frame->row], frame->begin);
	if (tfh_unlikely(self != frame->self)) {
		if (!self)
			return;
		frame->outer_stage = self->stage;
	}
	if (tfh_unlikely(frame->begin < self->since))
		return; /* in a child forked inside the call */
	if (tfh_likely(frame->row == TFH_ROW_tf_stage_getnext))
		leave_stage(self, frame, outer, failed);
	else
		leave_other(self, frame, outer, failed);
}

void tfh_tf_leave(struct tfh_tf_frame *frame)
{
	if (tfh_likely(frame->mark != 0))
		finish(frame, false);
}

void *tfh_tf_destroyed(void *object)
{
	int saved_errno = errno;
	void *real = tfh_tf_resolve(TFH_TF_HOOKS, tfh_tf_wrapper[TFH_TF_HOOKS]);

	tfh_tf_stage_gone(object);
	errno = saved_errno;
	return real;
}

/* The open call whose wrapper has this stack pointer. Copied arguments are below its frame. */
static struct tfh_tf_frame *frame_at(uintptr_t stack)
{
	for (uint32_t i = calls.count; i-- > 0;)
		if ((uintptr_t)calls.open[i] - stack < TFH_TF_FRAME)
			return calls.open[i];
	return NULL;
}

/*
 * Personality routine of the wrappers' frames (Itanium C++ ABI, exception handling, 2.5.2). It
 * catches nothing and has no landing pad. While the stack is unwound (phase 2, also in
 * pthread_exit) it ends the call and lets the unwinder continue. Only the unwinder knows the
 * current frame (its "CFA" is the frame's stack pointer): the thread's top frame may have been
 * abandoned by a longjmp and overwritten.
 */
int tfh_tf_personality(int version, int actions, uint64_t class, void *exception, void *context);
int tfh_tf_personality(int version, int actions, uint64_t class, void *exception, void *context)
{
	uintptr_t (*stack_of_frame)(void *) = NULL;
	struct tfh_tf_frame *frame;

	(void)version;
	(void)class;
	(void)exception;
	if ((actions & 2) && calls.count) /* _UA_CLEANUP_PHASE */
		stack_of_frame = (uintptr_t(*)(void *))tfh_without_us("_Unwind_GetCFA",
								      __builtin_return_address(0));
	frame = stack_of_frame ? frame_at(stack_of_frame(context)) : NULL;
	if (frame)
		finish(frame, true);
	return 8; /* _URC_CONTINUE_UNWIND */
}
