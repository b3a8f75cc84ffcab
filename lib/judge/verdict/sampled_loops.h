/*
 * The loops of a run in which no call was recorded, from how far Python's iterators, or the
 * program's own counters, had come at each sample (sampling/iterators.h). sampled_entries.c collects when each loop was entered and how
 * far it went, sampled_steps.c chooses the loop over steps, and counts and times its iterations.
 */
#ifndef TFH_JUDGE_VERDICT_SAMPLED_LOOPS_H
#define TFH_JUDGE_VERDICT_SAMPLED_LOOPS_H

#include "judge/verdict/verdict.h"
#include "model/start.h"
#include "model/vec.h"

/* A loop as the stack shows it: which loop of which function, inside of which other one. Loops that
 * follow each other in a function look the same here, and are told apart by their lines. */
struct tfh_loop_path {
	uint32_t parent; /* number of the loop around it, from 1; 0: none */
	struct tfh_model_line line;
	uint32_t ordinal; /* among the loops that the frame is in, from the outermost one, 0 */
	bool called_back; /* a library is between it and the loop around it, or the program */
	uint32_t open;	  /* its newest entry, from 1 */
	uint32_t depth;	  /* of its frame, at first */
	uint32_t twin;	  /* the loop over this generator, from 1; 0: none */
	uint32_t twins;	  /* how often samples showed it to be that one */
};

/* One time that a loop was entered, as far as samples show it. */
struct tfh_loop_entry {
	uint32_t path, loop;  /* indices; loop: set by tfh_sampled_steps() */
	uint32_t parent;      /* entry of the loop around it, from 1; 0: none */
	uint64_t parent_done; /* the iteration of that one */
	uint64_t done;	      /* at its last sample, without `base` */
	uint64_t base;	      /* what its counter was before it was entered */
	bool base_guessed;
	bool counter, goes_on, followed; /* it has a counter; that goes on; in another entry */
	int64_t left;			 /* likewise; -1: unknown */
	uint32_t first, last, lo, hi;	 /* samples; lines of the loop's frame */
	double ns, waits;		 /* waits: the part that waits for computing elsewhere */
	double iterations;		 /* when it was left; set by tfh_sampled_steps() */
};

/* From one change of an entry's iteration to the next: that many iterations took this long. */
struct tfh_loop_span {
	uint32_t entry;
	double iterations, ns;
};

/* A sample in a loop. */
struct tfh_loop_sample {
	uint32_t sample, entry; /* indices */
	uint64_t done;
};

struct tfh_loop_samples {
	TFH_VEC(struct tfh_loop_path) path;
	TFH_VEC(struct tfh_loop_sample) at; /* in order of samples */
	TFH_VEC(struct tfh_loop_entry) entry;
	TFH_VEC(struct tfh_loop_span) span;
};

/* What a sample counts when loops are compared. */
struct tfh_loop_weight {
	double ns;
	bool waits; /* for what is computed elsewhere, having been queued before */
};

/* sampled_entries.c; 0 or -ENOMEM. `weight`: of each sample. Freed with tfh_loop_samples_free(), also
 * after an error. */
int tfh_loop_entries(const struct tfh_start *s, const struct tfh_loop_weight *weight,
		     struct tfh_loop_samples *out);
void tfh_loop_samples_free(struct tfh_loop_samples *l);

/* sampled_generators.c: notes that an entry of the path, from 1, goes on after samples outside of
 * its loop; then joins loops over generators with those inside of these, 0 or -ENOMEM. */
void tfh_note_resumed(struct tfh_loop_samples *l, uint32_t path);
int tfh_join_generators(struct tfh_loop_samples *l);

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
	double line_ns, ns; /* of the main thread's time; ns: of what is removed */
	uint32_t first, last;
	bool whole; /* the function, which takes much more than its largest line */
};

/* sampled_gains.c: divides the run into what is before the steps, the steps, and what is after them. 0
 * or -ENOMEM. */
int tfh_sampled_tree(const struct tfh_start *s, const struct tfh_sampled_steps *steps, int64_t born,
		     struct tfh_result *r);
/* sampled_gains.c: fills the result's steps, breakdown and gains. `part`: what the verdict is about,
 * the main thread's time by part, ns; `place`: that of the verdict's line; `in_loop`: that of the
 * loop over steps; `samples`: their number. */
void tfh_sampled_gains(const struct tfh_sampled_steps *s, const double part[TFH_PART_COUNT],
		       const struct tfh_sampled_place *place, double in_loop, double samples,
		       struct tfh_result *r);

#endif
