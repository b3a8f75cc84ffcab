/*
 * The loops of a run in which no call was recorded, from how far they had come at each sample
 * (facts/loop_entries.h). sampled_steps.c chooses the loop over steps, and counts and times its
 * iterations.
 */
#ifndef TFH_JUDGE_VERDICT_SAMPLED_LOOPS_H
#define TFH_JUDGE_VERDICT_SAMPLED_LOOPS_H

#include "judge/facts/loop_entries.h"
#include "judge/verdict/verdict.h"

/* The loop over steps. */
struct tfh_sampled_steps {
	struct tfh_model_line line; /* its function; line: the first one seen in the loop */
	uint32_t last_line;
	uint64_t steps;	      /* 0: no such loop was found */
	bool exact;	      /* every iteration is known of, rather than estimated by time */
	bool counter;	      /* by a variable of the program */
	uint64_t times;	      /* how often the loop was entered */
	double step_s;	      /* mean of the iterations but exceptional ones; NAN: not known */
	uint32_t first, last; /* its first and last sample */
	/* Between its entries and after the last one, the loop around it does something else, until
	 * a sample. */
	double between_ns;
	uint32_t until;
	/* Of each sample, the iteration since the run's start that it is in; 0: outside of the
	 * loop. */
	uint32_t *step;
};

/* sampled_steps.c; 0 or -ENOMEM. `weight`: of each sample;
 * `end_ns`: the process' end, run time. `step` is freed with free(). */
int tfh_sampled_steps(const struct tfh_start *s, const struct tfh_loop_weight *weight,
		      double end_ns, struct tfh_sampled_steps *out);

/* sampled_pool.c: makes the steps' samples those of other threads, by time. 0 or -ENOMEM. */
int tfh_sampled_carry(const struct tfh_start *from, const struct tfh_start *to,
		      struct tfh_sampled_steps *steps);

/* What the gain is of: the verdict's line, or its whole function. */
struct tfh_sampled_place {
	struct tfh_model_line line; /* the largest, or the only one */
	double line_ns, ns;	    /* of the main thread's time; ns: of what is removed */
	uint32_t first, last;
	bool whole; /* the function, which takes much more than its largest line */
	/* It computes in a library that does not train, in addition to other computing. */
	bool aside;
};

/* sampled_gains.c: divides the run into what is before the steps, the steps, and what is after
 * them. 0 or -ENOMEM. */
int tfh_sampled_tree(const struct tfh_start *s, const struct tfh_sampled_steps *steps, int64_t born,
		     struct tfh_result *r);
/* sampled_compiling.c: how long the samples' thread compiles, besides what the verdict is about
 * (in_verdict: in the steps), and in the run's tree what steps take longer for that. `scale`: run
 * time by samples' time. 0 or -ENOMEM. */
int tfh_sampled_compiling(const struct tfh_start *s, const struct tfh_sampled_steps *steps,
			  bool in_verdict, double scale, struct tfh_result *r);
/* sampled_gains.c: fills the result's steps, breakdown and gains. `part`: what the verdict is
 * about, the main thread's time by part, ns; `place`: that of the verdict's line, and the next one
 * (ns 0: there is none); `in_loop`: that of the loop over steps; `samples`: their number. */
void tfh_sampled_gains(const struct tfh_sampled_steps *s, const double part[TFH_PART_COUNT],
		       const struct tfh_sampled_place place[2], double in_loop, double samples,
		       struct tfh_result *r);

#endif
