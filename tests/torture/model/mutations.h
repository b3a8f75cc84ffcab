/* The ways in which ring.c makes the protocol wrong. */
#ifndef TESTS_TORTURE_MODEL_MUTATIONS_H
#define TESTS_TORTURE_MODEL_MUTATIONS_H

/* What a mutation takes away. */
enum {
	NONE,
	PUBLISH_RELAXED,
	HEAD_RELAXED,
	COUNT_RELAXED,
	RETIRE_RELAXED,
	HEAD_BEFORE_RECORD,
	TAIL_BEFORE_COPY,
	COUNT_AFTER_TAIL,
	CLEAR_BEFORE_WRITE,
	FREE_BEFORE_EMPTY,
	ANY_ORDER,
	ONE_ROUND,
	MUTATIONS
};
static const char *const names[MUTATIONS] = {
	[PUBLISH_RELAXED] = "head is stored relaxed",
	[HEAD_RELAXED] = "head is loaded relaxed",
	[COUNT_RELAXED] = "a batch's count is stored relaxed",
	[RETIRE_RELAXED] = "a ring's state is stored relaxed",
	[HEAD_BEFORE_RECORD] = "head before the record's second word",
	[TAIL_BEFORE_COPY] = "tail before the copy",
	[COUNT_AFTER_TAIL] = "the batch's count after tail",
	[CLEAR_BEFORE_WRITE] = "staging is cleared before the write",
	[FREE_BEFORE_EMPTY] = "a place is given back with records in it",
	[ANY_ORDER] = "a thread's rings in any order",
	[ONE_ROUND] = "one round at the end",
};

#endif
