/* The run as a tree: the time before the first call, loops with their contents, the time after the
 * last call. */
#ifndef TFH_JUDGE_LOOPS_TREE_H
#define TFH_JUDGE_LOOPS_TREE_H

#include "judge/loops/loops.h"

/* Fills loops->tree from the events of the main thread. 0 or -ENOMEM. */
int tfh_find_tree(const struct tfh_facts *facts, struct tfh_loops *loops);

#endif
