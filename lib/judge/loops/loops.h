/*
 * The second phase: which clock tells the steps, and the windows of time that they are. Constant
 * for all later phases.
 */
#ifndef TFH_JUDGE_LOOPS_H
#define TFH_JUDGE_LOOPS_H

#include "judge/facts/facts.h"

/* Iterators of the same program place: the same pipeline feeding the same function. */
struct tfh_group {
	uint64_t key, count, runs;
	uint64_t like;	  /* the same for functions whose names differ in their number only */
	int64_t owned_ns; /* time from its batches to the next batch of any group */
	int64_t wait_ns;
	uint64_t inner; /* batches with another of their iterator behind them */
	int64_t inner_ns, longest, longest_inner;
	size_t first;	 /* batch, among the ticks */
	uint32_t series; /* a member */
	const char *tag; /* function text, "" eager */
};

/* One window: `steps` steps that are judged together (1, or the steps of one executed call). */
struct tfh_window {
	int64_t t0, t1;
	uint32_t steps;
	uint8_t segment;       /* enum tfh_segment */
	bool hole, group, cut; /* cut: ended by something else than the next batch */
	int64_t x1;	       /* group: end of the executing call that begins in the window */
	int64_t last;	       /* group: return of the last get-next in that call */
	int64_t gets;	       /* group: time in get-next between t0 and x1 */
};

/* From t0 until the next one the iterations are those of a part of the tree, a loop that holds no other one. */
struct tfh_iteration {
	int64_t t0;
	uint32_t part;
};

struct tfh_loops {
	enum tfh_step_clock clock;
	const char *clock_name;
	uint32_t exec_name; /* op that is the clock */
	double per_execution;
	bool grouped;
	TFH_VEC(struct tfh_group) group;
	uint32_t *group_of;	       /* by series */
	int32_t train_group;	       /* -1 none */
	uint32_t alike_loops;	       /* that are in it, 0: one */
	TFH_VEC(struct tfh_tick) mark; /* events of the clock, where it is none of the iterators */
	bool mark_ends;		       /* they end with the step */
	bool several;		       /* several steps come before a wait */
	TFH_VEC(struct tfh_window) window; /* tiles what is judged, in order */
	uint32_t micro; /* parts of a step that the clock took for steps; 0: none */
	int64_t segment_ns[TFH_SEGMENT_COUNT];
	uint32_t segment_n[TFH_SEGMENT_COUNT];
	int64_t lead_in;	      /* of the whole trace as one step: not its own work */
	int64_t median;		      /* of a step */
	struct tfh_part_of_run *tree; /* the arena's; struct tfh_result says what it is */
	uint32_t n_tree;
	struct tfh_iteration
		*iteration; /* in order of time; none unless causes of loops are asked for */
	size_t n_round;
};

/* segment.c: finds clock and windows. The caller frees what was found, also after an error. */
int tfh_find_loops(const struct tfh_facts *facts, struct tfh_loops *out, struct tfh_err *err);
void tfh_loops_free(struct tfh_loops *loops);

/* window.c: the window in which t lies, SIZE_MAX: none; `hint`: it may be that one or the next. */
size_t tfh_window_of(const struct tfh_loops *loops, int64_t t, size_t hint);

/* Number of the group that a batch belongs to. */
static inline uint32_t tfh_group_of(const struct tfh_loops *loops, const struct tfh_tick *t)
{
	return loops->group_of[t->series];
}

#endif
