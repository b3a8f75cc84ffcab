/* What the parts of this phase hand to each other; nobody else includes this. */
#ifndef TFH_JUDGE_STEP_CLOCK_H
#define TFH_JUDGE_STEP_CLOCK_H

#include "judge/loops/loops.h"

/* step_clock.c: iterators into groups, choice of the training group. 0 or -ENOMEM. */
int tfh_choose_iterator(const struct tfh_facts *facts, struct tfh_loops *loops);
/* loops->mark in order of their begin. */
void tfh_sort_marks(struct tfh_loops *loops);
/* As many batches, but for a few. */
bool tfh_as_many(const struct tfh_group *a, const struct tfh_group *b);

/* period.c: leaves in loops->mark one entry per step, as if the job had marked them; none: nothing
 * repeats. 0 or a negative errno. */
int tfh_find_period(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err);

/* named.c: steps of an imported trace by its ranges; 0 or a negative errno. Leaves in loops->mark
 * the steps that PyTorch's optimizer ends, if there are three or more. */
int tfh_find_updates(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err);
/* Looks whether the period in loops->mark is one of steps; if not, puts the calls that it lies in
 * in its place, or nothing, and loops->clock accordingly. */
int tfh_check_period(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err);

#endif
