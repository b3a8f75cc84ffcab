/*
 * TensorFlow hooks: what the assembly wrappers, the call logic and the stage tables share.
 *
 * A wrapper (wrappers.S) keeps every argument and result register as it is, because the same
 * mangled name returns its Status through a hidden pointer in one TensorFlow release and in
 * registers in another. It lays a frame on its own stack and calls tfh_tf_enter and tfh_tf_leave
 * around the real function.
 */
#ifndef TFH_HOOK_TF_H
#define TFH_HOOK_TF_H

/* Size of struct tfh_tf_frame; a multiple of 16. */
#define TFH_TF_FRAME 144

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

/* One wrapped call in progress, on the wrapper's stack. The first eight words are the wrapper's. */
struct tfh_tf_frame {
	uint64_t arg[6];       /* rdi rsi rdx rcx r8 r9 as the caller passed them: to be read, never
				  changed */
	uint64_t kept[2];      /* rax and rdx of the real function */
	struct tfh_self *self; /* NULL: not recorded */
	uint64_t mark;	   /* tells a live frame from one that a longjmp left behind; 0: unknown to
			      the thread */
	uint64_t begin;	   /* ticks */
	uint64_t children; /* ticks spent in wrapped calls directly inside */
	uint64_t iterator; /* consumer: its IteratorResource; execute: id of the name */
	uint32_t stage;	   /* stage: its id; consumer: the root stage's id */
	uint32_t outer_stage; /* tfh_self.stage before */
	uint16_t row;
	uint16_t level; /* wrapped calls open on this thread around this one */
	uint8_t place;	/* stages: enum tfh_tf_place */
	bool end;	/* the iterator said that it has no more elements */
};
_Static_assert(sizeof(struct tfh_tf_frame) <= TFH_TF_FRAME, "the wrapper's frame");
_Static_assert(offsetof(struct tfh_tf_frame, kept) == 48, "wrappers.S");

/* ---- wrappers.S ---- */

/* Addresses of our own exported wrappers, by row; the destructor's comes last. */
extern void *const tfh_tf_wrapper[TFH_TF_HOOKS + 1];

/* ---- call.c, called by the wrappers ---- */

/* Begins a call; returns the real function, or NULL when no loaded object defines it. */
void *tfh_tf_enter(unsigned row, struct tfh_tf_frame *frame);
/* Ends it. */
void tfh_tf_leave(struct tfh_tf_frame *frame);
/* Real ~DatasetBaseIterator, after our tables forgot `object`. */
void *tfh_tf_destroyed(void *object);

/* ---- resolve.c ---- */

/*
 * The definition of `symbol` that the job would have used without us: the next one in global scope,
 * else the first in any loaded object (Python loads TensorFlow locally, so RTLD_NEXT does not see
 * it). Never `self`. NULL if none. Takes the loader's lock and may allocate: once per symbol only.
 * errno is kept.
 */
void *tfh_tf_lookup(const char *symbol, const void *self);
/* The real functions behind the wrappers, by row; NULL until looked up. Read by the wrappers. */
extern void *tfh_tf_real[TFH_TF_HOOKS + 1];
/* Looks one up and keeps it there; `own`: our wrapper of it. */
void *tfh_tf_resolve(unsigned row, const void *own);
/* Reads memory that may not be there; returns the bytes read. Never faults. errno is kept. */
size_t tfh_tf_peek(const void *address, void *out, size_t size);

/* ---- stages.c ---- */

/*
 * Which argument of a C++ member function that returns a Status is `this`: 0 (Status in registers),
 * 1 (behind the hidden result pointer), or -1 (not yet known). Learned from `frame`, the frame of a
 * stage's get-next, whose wrapper is `own`.
 */
int tfh_tf_this_index(const struct tfh_tf_frame *frame, const void *own);
extern int tfh_tf_this; /* the answer, -1 unknown */

/*
 * Where a stage lies, as far as recording goes. `for x in dataset` inside a tf.function becomes a
 * ReduceDatasetOp over a Scan stage that runs the loop's body, often on a thread of its own below a
 * Prefetch. So the child of that Scan is what the training loop waits for, as IteratorGetNext is
 * elsewhere.
 */
enum tfh_tf_place {
	TFH_PLACE_PIPELINE = 0,
	TFH_PLACE_LOOP = 1,	   /* the Scan: each call contains one step */
	TFH_PLACE_LOOP_SOURCE = 2, /* its child: each call is the get-next of one step */
};

/* A stage as the calls need it. Part of a thread's cache: copy what must last. */
struct tfh_tf_stage {
	uint32_t id;
	uint8_t place;
};

/*
 * The stage that `object` (a live DatasetBaseIterator) is, named on first sight. Objects of one
 * place in one pipeline that come and go (the inner iterators of an interleave) share an id; the
 * root of every new iterator gets a new one, and so do all stages below it. 3 ns for a stage that
 * the thread has seen.
 */
struct tfh_tf_stage tfh_tf_stage(struct tfh_self *self, const void *object);
/* The stage that stands for all that cannot be named. */
struct tfh_tf_stage tfh_tf_stage_unnamed(struct tfh_self *self);
void tfh_tf_stage_gone(const void *object);

/* ---- op_names.c ---- */

/* Name ids (TFT_NAME_OP) of an eager call and of a session run, from their arguments; 0 if unknown.
 */
uint32_t tfh_tf_op_name(struct tfh_self *self, const uint64_t *arg);
uint32_t tfh_tf_session_name(struct tfh_self *self, const uint64_t *arg, const uint64_t *stack);

#endif
#endif
