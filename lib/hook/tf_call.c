/*
 * What happens around a wrapped TensorFlow call: nesting, self time, what is recorded and what is
 * only counted.
 *
 * One batch gives one record of the consumer: IteratorResource::GetNext inside a DoCompute only
 * says which iterator it was. In a dataset loop inside a tf.function the consumer is a stage, whose
 * records then carry an iterator id, too. Stages run up to a million times a second before `batch`,
 * so their short calls are counted per thread and stage.
 */
#include "hook/tf.h"

#include "hook/driver.h"

#include <errno.h>

#define TLS __attribute__((tls_model("initial-exec")))
#define LOADERS 64 /* first arguments of tf_data_iterator_get_next that are told apart */
#define NEST                                                                                       \
	64 /* calls nested deeper on one thread are not recorded; a long pipeline has 30 stages */

/* The thread's open calls, outermost first. Kept here and not in the frames alone, because a
 * longjmp leaves frames behind whose memory is soon something else. */
static __thread struct {
	uint32_t count;
	struct {
		struct tfh_tf_frame *frame;
		uint32_t depth;	   /* tfh_self.depth before the call */
		uint32_t stage;	   /* tfh_self.stage before */
		uint32_t recorded; /* both are known */
	} open[NEST];
} calls TLS;

static const uint16_t fn_of[TFH_TF_HOOKS] = {
	[TFH_ROW_tf_stage_getnext] = TFH_FN_tf_stage_getnext,
	[TFH_ROW_tf_getnext_op] = TFH_FN_tf_getnext_op,
	[TFH_ROW_tf_getnext_optional_op] = TFH_FN_tf_getnext_optional_op,
	[TFH_ROW_tf_iterator_resource] = TFH_FN_tf_iterator_resource,
	[TFH_ROW_tf_reduce_op] = TFH_FN_tf_reduce_op,
	[TFH_ROW_TFE_Execute] = TFH_FN_TFE_Execute,
	[TFH_ROW_TF_SessionRun] = TFH_FN_TF_SessionRun,
	[TFH_ROW_user_getnext] = TFH_FN_user_getnext,
};

/* ---- frames ---- */

/* The frame records into the journal and ring that the thread has now (not so in a forked child).
 */
static inline bool same_journal(const struct tfh_tf_frame *frame)
{
	return tfh_own_ring(frame->self) && (frame->self->generation ^ frame->generation) <= 1;
}

/* Closes calls that were left without a return, down to `depth` open ones. */
static inline void unwind_to(struct tfh_self *self, uint32_t depth)
{
	while (tfh_unlikely(self->depth > depth))
		tfh_leave_quiet(self);
}

/* Frames at or below the new one's place on the stack are dead: a longjmp went past them. */
static void drop_dead(const struct tfh_tf_frame *frame)
{
	struct tfh_self *self = &tfh_self;

	while (calls.count && calls.open[calls.count - 1].frame <= frame) {
		calls.count--;
		if (!calls.open[calls.count].recorded || !tfh_own_ring(self))
			continue;
		unwind_to(self, calls.open[calls.count].depth);
		self->stage = calls.open[calls.count].stage;
	}
}

static inline struct tfh_tf_frame *outer_of(const struct tfh_tf_frame *frame)
{
	return frame->level ? calls.open[frame->level - 1].frame : NULL;
}

static inline bool is_consumer(const struct tfh_tf_frame *frame)
{
	switch (frame->row) {
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
	int at = tfh_tf_this >= 0 ? tfh_tf_this : tfh_tf_this_index(frame);
	struct tfh_tf_stage stage = tfh_likely(at >= 0)
					    ? tfh_tf_stage(self, (const void *)frame->arg[at])
					    : tfh_tf_stage_unnamed(self);

	frame->stage = stage.id;
	frame->place = stage.place;
	frame->outer_stage = self->stage;
	self->stage = frame->stage;
	announce(self, frame->stage, frame->stage);
}

/* Argument words on the stack: above the frame lie the caller's rbp and the return address, then
 * they. */
static inline const uint64_t *stack_of(const struct tfh_tf_frame *frame)
{
	return (const uint64_t *)((const char *)frame + TFH_TF_FRAME) + 2;
}

void *tfh_tf_enter(unsigned row, struct tfh_tf_frame *frame)
{
	void *real = __atomic_load_n(&tfh_tf_real[row], __ATOMIC_ACQUIRE);

	if (tfh_unlikely(!real))
		real = tfh_tf_resolve(row);
	frame->self = NULL;
	frame->row = (uint16_t)row;
	if (tfh_unlikely(calls.count && calls.open[calls.count - 1].frame <= frame))
		drop_dead(frame);
	frame->level = calls.count;
	if (tfh_unlikely(!real || calls.count == NEST))
		return real;
	calls.count++;
	calls.open[frame->level].frame = frame;
	calls.open[frame->level].recorded = 0;
	frame->children = frame->iterator = 0;
	frame->stage = 0;
	frame->place = TFH_PLACE_PIPELINE;
	frame->end = false;
	if (row == TFH_ROW_tf_iterator_resource && outer_of(frame) && is_consumer(outer_of(frame)))
		return real; /* tfh_tf_leave passes `this` on */

	struct tfh_self *self = tfh_enter(fn_of[row], 0);
	if (!self)
		return real;
	frame->self = self;
	frame->generation = self->generation;
	frame->depth = self->depth - 1;
	calls.open[frame->level].depth = frame->depth;
	calls.open[frame->level].stage = self->stage;
	calls.open[frame->level].recorded = 1;
	frame->begin = tfh_begin_time(self);
	if (tfh_unlikely(!frame->begin)) /* deeper than the recorder keeps times */
		frame->begin = tfh_ticks();
	if (tfh_likely(row == TFH_ROW_tf_stage_getnext)) {
		enter_stage(self, frame);
	} else if (row == TFH_ROW_TFE_Execute) {
		frame->iterator = tfh_tf_op_name(self, frame->arg);
		announce(self, frame->iterator, self->stage);
	} else if (row == TFH_ROW_TF_SessionRun) {
		frame->iterator = tfh_tf_session_name(self, frame->arg, stack_of(frame));
		announce(self, frame->iterator, self->stage);
	}
	return real;
}

/* ---- leave ---- */

/* The iterator's id: which IteratorResource, on which pipeline. A resource's address comes back
 * with the next epoch's iterator, but its root stage does not. */
static uint32_t iterator_id(struct tfh_self *self, const struct tfh_tf_frame *frame)
{
	static uint32_t loaders;
	uint64_t resource = frame->row == TFH_ROW_user_getnext ? frame->arg[0] : frame->iterator;
	uint64_t handle = (resource ^ (uint64_t)frame->stage << 40 ^ (uint64_t)frame->stage >> 24) &
			  (UINT64_MAX >> 4);
	uint32_t id = tfh_handle_known(self, TFT_NAME_ITERATOR, handle);

	if (!id && handle) {
		int saved_errno = errno;
		/* A loader's own first argument may be anything, a batch number for one. */
		if (frame->row == TFH_ROW_user_getnext &&
		    __atomic_fetch_add(&loaders, 1, __ATOMIC_RELAXED) >= LOADERS)
			handle = 1;
		id = tfh_handle_new(self, TFT_NAME_ITERATOR, handle, frame->stage, NULL, 0);
		errno = saved_errno;
	}
	return id;
}

/* Like tfh_leave(), for a call that tfh_leave_quiet() has closed. */
static void publish(struct tfh_self *self, const struct tfh_tf_frame *frame, uint64_t end,
		    const uint64_t w[3], bool failed)
{
	struct tfh_rec *rec = tfh_reserve(self, 1);

	if (!rec)
		return;
	tfh_fill(self, rec, 0, fn_of[frame->row], TFT_CALL, frame->begin, end);
	rec->stream = frame->stage;
	rec->flags = (uint8_t)((frame->end ? TFT_F_OPTIONAL : 0) | (failed ? TFT_F_FAILED : 0));
	rec->w[0] = w[0];
	rec->w[1] = w[1];
	rec->w[2] = w[2];
	tfh_publish(self, 1);
}

/* bool *end_of_sequence is the last argument of a stage's get-next; it is virtual, so the caller
 * did pass it. */
static inline bool said_end(const struct tfh_tf_frame *frame)
{
	const volatile unsigned char *end = (const unsigned char *)frame->arg[tfh_tf_this + 3];

	return tfh_tf_this >= 0 && end && *end == 1;
}

static inline void leave_stage(struct tfh_self *self, struct tfh_tf_frame *frame, bool failed)
{
	struct tfh_tf_frame *outer = outer_of(frame);
	/* named before the end is taken: a thread's records are in the order of their ends */
	uint64_t iterator = frame->place == TFH_PLACE_LOOP_SOURCE ? iterator_id(self, frame) : 0;
	uint64_t end = tfh_leave_quiet(self);
	uint64_t total = end - frame->begin;
	uint64_t own = total > frame->children ? total - frame->children : 0;

	self->stage = frame->outer_stage;
	frame->end = !failed && said_end(frame);
	if (outer) {
		outer->children += total;
		if (is_consumer(outer)) {
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

static void leave_other(struct tfh_self *self, struct tfh_tf_frame *frame, bool failed)
{
	struct tfh_tf_frame *outer = outer_of(frame);
	if (frame->row == TFH_ROW_tf_iterator_resource && tfh_tf_this >= 0)
		frame->iterator = frame->arg[tfh_tf_this];
	uint64_t w[3] = {is_consumer(frame) ? iterator_id(self, frame) : frame->iterator, 0, 0};
	uint64_t end = tfh_leave_quiet(self);
	uint64_t total = end - frame->begin;

	if (is_consumer(frame)) {
		if (outer)
			outer->children += total;
		w[1] = frame->stage;
		w[2] = total > frame->children ? total - frame->children : 0;
		tfh_agg_flush(self);
	} else if (frame->row == TFH_ROW_TFE_Execute && frame->arg[2]) {
		w[2] = (uint64_t) * (const int *)frame->arg[2]; /* num_retvals */
	} else if (frame->row == TFH_ROW_TF_SessionRun) {
		w[1] = (uint32_t)frame->arg[4];	     /* ninputs */
		w[2] = (uint32_t)stack_of(frame)[1]; /* noutputs */
	}
	publish(self, frame, end, w, failed);
}

static void finish(struct tfh_tf_frame *frame, bool failed)
{
	struct tfh_tf_frame *outer = outer_of(frame);
	struct tfh_self *self = frame->self;

	calls.count = frame->level;
	if (tfh_likely(self != NULL)) {
		if (tfh_unlikely(!same_journal(frame))) { /* a child forked inside the call */
			if (self->ring && self->depth)
				tfh_leave_quiet(self);
			return;
		}
		unwind_to(self, frame->depth + 1);
		if (tfh_likely(frame->row == TFH_ROW_tf_stage_getnext))
			leave_stage(self, frame, failed);
		else
			leave_other(self, frame, failed);
	} else if (frame->row == TFH_ROW_tf_iterator_resource && outer && is_consumer(outer)) {
		if (tfh_tf_this >= 0)
			outer->iterator = frame->arg[tfh_tf_this];
		outer->stage = frame->stage;
		outer->children += frame->children;
		outer->end = frame->end;
	}
}

void tfh_tf_leave(struct tfh_tf_frame *frame)
{
	if (tfh_likely(frame->level < calls.count && calls.open[frame->level].frame == frame))
		finish(frame, false);
}

void *tfh_tf_destroyed(void *object)
{
	int saved_errno = errno;
	void *real = tfh_tf_resolve(TFH_TF_HOOKS);

	tfh_tf_stage_gone(object);
	errno = saved_errno;
	return real;
}

/* The open call whose wrapper has its stack pointer there: below its frame lie copied arguments. */
static struct tfh_tf_frame *frame_at(uintptr_t stack)
{
	for (uint32_t i = calls.count; i-- > 0;)
		if ((uintptr_t)calls.open[i].frame - stack < TFH_TF_FRAME)
			return calls.open[i].frame;
	return NULL;
}

/*
 * Personality routine of the wrappers' frames (Itanium C++ ABI, exception handling, 2.5.2). It has
 * nothing to catch and no landing pad: when the stack is being unwound (phase 2, also pthread_exit)
 * it closes the call and lets the unwinder go on. Which one is at hand only the unwinder tells (its
 * "CFA" is the frame's stack pointer): the thread's top frame may have been left by a longjmp and
 * be something else by now.
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
