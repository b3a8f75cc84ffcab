/*
 * TensorFlow hooks: shared by the assembly wrappers, the call logic and the stage tables.
 *
 * A wrapper (wrappers.S) preserves every argument and result register, because the same mangled
 * name returns its Status through a hidden pointer in one TensorFlow release and in registers in
 * another. It builds a frame on its own stack and calls tfh_tf_enter and tfh_tf_leave around the
 * real function.
 */
#ifndef TFH_HOOK_TF_TF_H
#define TFH_HOOK_TF_TF_H

#include "base/arch.h"

/* Size of struct tfh_tf_frame; a multiple of 16. */
#define TFH_TF_FRAME (96 + 8 * TFH_ARCH_ARGS)

#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record.h"

/* Row of base/tf_api.def among those with a symbol. */
enum tfh_tf_row {
#define TF_FN(id, ...) TFH_ROW_##id,
#include "base/tf_api.def"
#undef TF_FN
	TFH_ROW_COUNT
};
#define TFH_TF_HOOKS TFH_ROW_mark_step /* first row without a symbol */

/* One wrapped call in progress, on the wrapper's stack. The fields that the wrapper accesses come
 * first. */
struct tfh_tf_frame {
	uint64_t arg[TFH_ARCH_ARGS]; /* registers as passed by the caller; read-only */
	uint64_t kept[2];	     /* the two registers with the real function's result */
	struct tfh_self *self;	     /* NULL: not recorded */
	/* Distinguishes a live frame from one abandoned by longjmp; 0: the thread does not track
	 * it. */
	uint64_t mark;
	uint64_t begin;	      /* ticks */
	uint64_t children;    /* ticks spent in wrapped calls directly inside */
	uint64_t iterator;    /* consumer: its IteratorResource; execute: id of the name */
	uint32_t stage;	      /* stage: its id; consumer: the root stage's id */
	uint32_t outer_stage; /* previous tfh_self.stage */
	uint16_t row;
	uint16_t level; /* wrapped calls of this thread that enclose this one */
	uint8_t place;	/* stages: enum tfh_tf_place */
	bool end;	/* the iterator reported its end */
	bool makes_stage;
};
_Static_assert(sizeof(struct tfh_tf_frame) <= TFH_TF_FRAME, "the wrapper's frame");
_Static_assert(offsetof(struct tfh_tf_frame, kept) == 8 * TFH_ARCH_ARGS, "hook/entries.h");

/* An integer argument of the call: the first are in registers, the others on the stack, after the
 * frame and the caller's frame pointer and return address. */
static inline uint64_t tfh_tf_argument(const struct tfh_tf_frame *frame, unsigned n)
{
	const uint64_t *stack = (const uint64_t *)((const char *)frame + TFH_TF_FRAME) + 2;

	return n < TFH_ARCH_ARGS ? frame->arg[n] : stack[n - TFH_ARCH_ARGS];
}

/* ---- returning.S ---- */

/* Calls a member function of C++ without arguments that returns an object in memory. */
void tfh_tf_returning(void *result, const void *object, const void *function);

/* ---- wrappers.S ---- */

/* Our exported wrappers, by row; the destructor's comes last. */
extern void *const tfh_tf_wrapper[TFH_TF_HOOKS + 1];

/* ---- call.c, called by the wrappers ---- */

/* Begins a call; returns the real function, or NULL if no loaded object defines it. */
void *tfh_tf_enter(unsigned row, struct tfh_tf_frame *frame);
/* Ends the call. */
void tfh_tf_leave(struct tfh_tf_frame *frame);
/* The real ~DatasetBaseIterator, after `object` was removed from our tables. */
void *tfh_tf_destroyed(void *object);

/* ---- resolve.c ---- */

/*
 * The definition of `symbol` that the job would use without tfhook: the next one in global scope,
 * else the first in any loaded object (Python loads TensorFlow locally, so RTLD_NEXT does not find
 * it). Never `self`; NULL if there is none. Takes the loader's lock and may allocate, so only once
 * per symbol. Preserves errno.
 */
void *tfh_tf_lookup(const char *symbol, const void *self);
/* The real functions behind the wrappers, by row; NULL until looked up. Read by the wrappers. */
extern void *tfh_tf_real[TFH_TF_HOOKS + 1];
/* Looks up a real function and stores it there. `own`: our wrapper of it. */
void *tfh_tf_resolve(unsigned row, const void *own);
/* Reads memory that may be unmapped; returns the bytes read. Never faults. Preserves errno. */
size_t tfh_tf_peek(const void *address, void *out, size_t size);

/* ---- tf_settings.c ---- */

/* Once TensorFlow is loaded: finds where it keeps its settings, so that the recorder can read
 * them. */
void tfh_tf_settings(void);

/* ---- stages.c ---- */

/*
 * Which argument of a C++ member function that returns a Status is `this`: 0 (Status in registers),
 * 1 (after the hidden result pointer), or -1 (not yet known). Learned from `frame`, a call of a
 * stage's get-next whose wrapper is `own`.
 */
int tfh_tf_this_index(const struct tfh_tf_frame *frame, const void *own);
extern int tfh_tf_this; /* the result; -1: unknown */

/*
 * A stage's role. `for x in dataset` inside a tf.function becomes a ReduceDatasetOp over a Scan
 * stage that runs the loop's body, often on a thread of its own below a Prefetch. The training loop
 * then waits for that Scan's child, where it otherwise waits for IteratorGetNext.
 */
enum tfh_tf_place {
	TFH_PLACE_PIPELINE = 0,
	TFH_PLACE_LOOP = 1,	   /* the Scan: each call contains one step */
	TFH_PLACE_LOOP_SOURCE = 2, /* its child: each call is the get-next of one step */
};

/* A stage as calls need it. Part of a thread's cache: copy what must last. */
struct tfh_tf_stage {
	uint32_t id;
	uint8_t place;
};

/*
 * The stage of `object`, a live DatasetBaseIterator, named when first seen. Short-lived objects at
 * one place in a pipeline (the inner iterators of an interleave) share an id. The root of every new
 * iterator gets a new id, and so do all stages below it. 3 ns for a stage that the thread has seen.
 */
struct tfh_tf_stage tfh_tf_stage(struct tfh_self *self, const void *object);
/* The stage that represents everything without a name. */
struct tfh_tf_stage tfh_tf_stage_unnamed(struct tfh_self *self);
void tfh_tf_stage_gone(const void *object);

/* ---- op_names.c ---- */

/* An eager op. */
struct tfh_tf_op {
	uint32_t id;	  /* of its name (TFT_NAME_OP); 0: unknown */
	bool makes_stage; /* of a pipeline */
};

/* The op of an eager call, and the name's id of a session run (0: unknown), from the arguments. */
struct tfh_tf_op tfh_tf_op(struct tfh_self *self, const uint64_t *arg);
uint32_t tfh_tf_session_name(struct tfh_self *self, const struct tfh_tf_frame *frame);

#endif
#endif
