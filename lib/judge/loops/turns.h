/* Steps that are parts of one iteration of the program, by their backward passes. */
#ifndef TFH_JUDGE_LOOPS_TURNS_H
#define TFH_JUDGE_LOOPS_TURNS_H

#include "judge/loops/loops.h"

/* The backward passes, or other functions, inside a mark. */
struct tfh_passes {
	size_t n, launches;
	int64_t ns;
	uint32_t caller; /* stack of the last one; 0: unknown */
};
/* *at: the first one that may be inside. */
struct tfh_passes tfh_passes_in(const struct tfh_facts *facts, const struct tfh_boundary *mark,
				size_t *at);

enum tfh_turns {
	TFH_TURNS_OF_CALLERS, /* only the lines that call the passes count */
	TFH_TURNS_OF_SIZES,   /* the sizes of the passes do, too */
	TFH_TURNS_OF_RANKS,   /* but not their lengths: they exchange gradients with other ranks */
};
/* Joins marks in loops->mark that belong to one iteration. 0 or -ENOMEM. */
int tfh_join_turns(const struct tfh_facts *facts, struct tfh_loops *loops, enum tfh_turns how);

#endif
