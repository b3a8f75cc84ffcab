/* Private interface between the parts of this phase. */
#ifndef TFH_JUDGE_LOOPS_STEP_CLOCK_H
#define TFH_JUDGE_LOOPS_STEP_CLOCK_H

#include "judge/loops/loops.h"

/* step_clock.c: groups iterators and chooses the training group. 0 or -ENOMEM. */
int tfh_choose_iterator(const struct tfh_facts *facts, struct tfh_loops *loops);
/* Sorts loops->mark by begin. */
void tfh_sort_marks(struct tfh_loops *loops);
/* Whether both have about the same number of batches. */
bool tfh_as_many(const struct tfh_group *a, const struct tfh_group *b);

/* Launches that follow the batches of a group, by function. */
struct tfh_launched {
	uint64_t batches, all;
	uint32_t n[TFH_LOOPS_LAUNCHED_BUCKETS];
};

/* launched_alike.c: *out: of each group; the caller frees it with tfh_big_free(). 0 or -ENOMEM. */
int tfh_count_launched(const struct tfh_facts *facts, const struct tfh_loops *loops,
		       struct tfh_launched **out);
/* Whether both launch the same functions equally often, or mostly the same of those whose names say
 * that they train. */
bool tfh_launched_alike(const struct tfh_launched *a, const struct tfh_launched *b);

/* period.c: fills loops->mark with one entry per step, as if the job had marked its steps; leaves
 * it empty if nothing repeats. 0 or a negative errno. */
int tfh_find_period(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err);

/* edges.c: adds the step whose begin and end are at those of the run. 0 or -ENOMEM. */
int tfh_mark_edges(const struct tfh_facts *facts, struct tfh_loops *loops);

/* rounds.c: the same for an imported trace, one entry per round of two threads. 0 or -ENOMEM. */
int tfh_mark_rounds(const struct tfh_facts *facts, struct tfh_loops *loops);

/* programs.c: fills loops->mark with the executions of the program of XLA that takes most time, if
 * it is executed often enough. 0 or -ENOMEM. */
int tfh_find_programs(const struct tfh_facts *facts, struct tfh_loops *loops);

/* windows.c: fills loops->window from the batches of the training iterator and of evaluations; from
 * loops->mark; with a single window. 0 or -ENOMEM. */
int tfh_windows_at_batches(const struct tfh_facts *facts, struct tfh_loops *loops);
int tfh_windows_at_marks(const struct tfh_facts *facts, struct tfh_loops *loops);
int tfh_one_window(const struct tfh_facts *facts, struct tfh_loops *loops, int64_t t0, int64_t t1);

/* iterated.c: where a loop of Python over the steps has a few iterations more or less than the
 * clock found, or several in each window, its iterations are the steps. 0 or -ENOMEM. */
int tfh_take_iterations(const struct tfh_facts *facts, struct tfh_loops *loops);

/* divided.c: divides windows into `per` iterations each, `total` in all, if these launch the same.
 * `flat`: of a loop in no other. 0 or -ENOMEM. */
int tfh_divide_windows(const struct tfh_facts *facts, struct tfh_loops *loops, uint64_t per,
		       uint64_t total, bool flat);

/* phases.c: median length of a training step, ns; 0: there is none. */
int64_t tfh_median_step(const struct tfh_loops *loops);
/* phases.c: separates warm-up from training, adds windows for the time between loops, and marks
 * incomplete windows. Fills in the sums by segment and, if it is not known, loops->median. 0 or
 * -ENOMEM. */
int tfh_finish_windows(const struct tfh_facts *facts, struct tfh_loops *loops);

/* taken_ahead.c: if a thread that only fetches batches ran ahead of the training, the surplus
 * batches were never trained with; joins as many windows to the first one. 0 or a negative
 * errno. */
int tfh_join_ahead(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err);

/* named.c: finds the steps of an imported trace by its ranges. Fills loops->mark with the steps
 * that end with PyTorch's optimizer, if there are at least three. 0 or a negative errno. */
int tfh_find_updates(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err);
/* Checks whether the period in loops->mark is one of steps; if not, replaces it with the enclosing
 * calls or with nothing, and sets loops->clock. */
int tfh_find_annotated(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err);
int tfh_check_period(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err);

#endif
