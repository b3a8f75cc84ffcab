/*
 * What users count as one step. The step clock may find only parts of a step: the two models that a
 * step trains in turn, or the batches whose gradients are accumulated before one update. The run's
 * tree shows which.
 */
#ifndef TFH_JUDGE_LOOPS_UNIT_H
#define TFH_JUDGE_LOOPS_UNIT_H

#include "judge/loops/fold.h"
#include "judge/loops/loops.h"

/* Whether the tree has to record when each iteration of its loops began. */
bool tfh_counts_units(const struct tfh_facts *facts, const struct tfh_loops *loops);
/* Joins the windows that are parts of one step. 0 or -ENOMEM. */
int tfh_find_units(const struct tfh_facts *facts, struct tfh_loops *loops,
		   const struct tfh_node *root);
/* Joins each window that is nearest to none of these times, in order, with the one before it. */
void tfh_join_windows(struct tfh_loops *loops, const int64_t *step, size_t n);
/* waited.c: joins windows that are parts of a step, each of which is waited for at its end. 0 or
 * -ENOMEM. */
int tfh_join_waited(const struct tfh_facts *facts, struct tfh_loops *loops);

/* inner.c: steps in which something repeats become iterations without an inner loop. 0 or
 * -ENOMEM. */
int tfh_open_steps(const struct tfh_loops *loops, struct tfh_node *root);

#endif
