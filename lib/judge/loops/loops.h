/*
 * The second phase: which clock marks the steps, and the windows of time that they occupy. Constant
 * for all later phases.
 */
#ifndef TFH_JUDGE_LOOPS_LOOPS_H
#define TFH_JUDGE_LOOPS_LOOPS_H

#include "judge/facts/facts.h"

/* Iterators from the same place in the program: the same pipeline feeding the same function. */
struct tfh_group {
	uint64_t key, count, runs;
	uint64_t like;	  /* equal for functions whose names differ only in their number */
	int64_t owned_ns; /* time from its batches to the next batch of any group */
	uint64_t inner;	  /* batches followed by another one of the same iterator */
	int64_t inner_ns, longest, longest_inner;
	size_t first;	 /* its first batch, as an index into the batches */
	uint32_t series; /* a member */
	const char *tag; /* function text, "" eager */
};

/* One window: `steps` steps that are judged together (1, or the steps of one executed call). */
struct tfh_window {
	int64_t t0, t1;
	uint32_t steps;
	uint8_t segment;       /* enum tfh_segment */
	bool hole, group, cut; /* cut: not ended by the next batch */
	int64_t x1;	       /* group: end of the executing call that begins in the window */
	int64_t last;	       /* group: return of the last get-next in that call */
	int64_t gets;	       /* group: time in get-next between t0 and x1 */
};

/* From t0 until the next entry, the iterations belong to one part of the tree: a loop that contains
 * no other loop. */
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
	uint32_t *group_of;		   /* by series */
	int32_t train_group;		   /* -1 none */
	uint32_t alike_loops;		   /* loops joined in the training group; 0: one */
	TFH_VEC(struct tfh_boundary) mark; /* events of the clock, unless it is an iterator */
	bool mark_ends;			   /* each mark is at the end of its step */
	bool apart;			   /* the marks' numbers show gaps between steps */
	bool several;			   /* several steps precede each wait */
	TFH_VEC(struct tfh_window) window; /* in order; they tile the judged time */
	uint32_t micro;	  /* parts of a step that the clock took for steps; 0: none */
	uint32_t divided; /* steps of a window, which share its time equally; 0: none */
	/* Iterations of a loop of the program, if each has equally many windows; 0: none. */
	uint64_t rounds, per_round;
	int64_t segment_ns[TFH_SEGMENT_COUNT];
	uint32_t segment_n[TFH_SEGMENT_COUNT];
	int64_t lead_in;	      /* a trace as one step: time of earlier work */
	int64_t median;		      /* of a step */
	struct tfh_part_of_run *tree; /* in the arena; see struct tfh_result */
	uint32_t n_tree;
	/* In order of time; empty unless causes of loops are requested. */
	struct tfh_iteration *iteration;
	size_t n_round;
};

/* segment.c: finds clock and windows. The caller frees the result, also after an error. */
int tfh_find_loops(const struct tfh_facts *facts, struct tfh_loops *out, struct tfh_err *err);
void tfh_loops_free(struct tfh_loops *loops);

/* role_of_name.c: what a function of this name does: TRAIN, EVALUATE or PREDICT; STEP: unknown. */
enum tfh_branch tfh_role_of_name(const char *name);
/* Whether a kernel's or function's name says that it applies gradients; that it also computes them.
 * NULL: no. */
bool tfh_name_updates(const char *name);
bool tfh_name_trains(const char *name);

/* window.c: index of the window that contains t, SIZE_MAX if none does. `hint`: a guess; that
 * window or the next one. */
size_t tfh_window_of(const struct tfh_loops *loops, int64_t t, size_t hint);

/* The group of a batch. */
static inline uint32_t tfh_group_of(const struct tfh_loops *loops, const struct tfh_boundary *t)
{
	return loops->group_of[t->series];
}

#endif
