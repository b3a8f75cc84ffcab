/* The part of a result (result.h) about steps and loops: their classes, times,
 * changes and possible gains. */
#ifndef TFH_JUDGE_RESULT_STEPS_H
#define TFH_JUDGE_RESULT_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vocabulary.h"
#include "judge/numbers.h"

struct tfh_verdict {
	enum tfh_class cls;
	enum tfh_cause cause; /* TFH_CAUSE_NONE if the class has none */
	enum tfh_class also[TFH_ALSO];
	uint32_t n_also;
	double share; /* of training wall time */
	enum tfh_confidence confidence;
	char tier; /* 'A' 'B' 'C' */
};

/* What a run does again and again: its steps (kind TRAIN), evaluations, checkpoints,
 * work between loops. */
struct tfh_recurring {
	enum tfh_segment kind;
	uint64_t count;
	/* checkpoints and compilations count only with the time beyond a usual step */
	double total_s;
	double blocked_s; /* the part of it that belongs to the class */
	/* between loops: evaluations that are part of it, since one line of a callback does both */
	double evaluates_s;
	enum tfh_class cls;
	enum tfh_cause cause;
};

/* A point at which steps became slower or faster,
 * or a part of the run in which they did so steadily. */
struct tfh_change {
	uint64_t step;			     /* the first step after the change, or of that part */
	uint64_t until;			     /* the step after that part; 0: a sudden change */
	uint64_t evaluates, until_evaluates; /* steps of evaluations before these */
	double at_s;			     /* when `step` began, since the run's start */
	double from_s, to_s;		     /* mean step before and after */
	enum tfh_part part;		     /* the part that changed most */
	const char *file, *function; /* the line that has most of the change; NULL: not known */
	uint32_t line;
};

struct tfh_class_count {
	uint32_t count;
	double time_share;
	double median_s, p95_s;
	double breakdown[TFH_PART_COUNT]; /* shares within these steps */
};

struct tfh_steps {
	uint64_t count; /* training steps judged: warm-up and other segments not counted */
	uint64_t warmup, unclassified, total;
	double median_s, p95_s, total_s;
	enum tfh_step_clock clock;
	const char *clock_name; /* iterator or function name */
	double per_execution;	/* steps per executed call, 1 if one */
	/* Iterations of the program's loop that have `per_round` steps each, one of them longer
	 * because of other work in the iteration (an epoch's begin). 0: none. */
	uint64_t rounds, per_round;
	struct tfh_class_count classes[TFH_CLASS_COUNT];
};

struct tfh_share {
	double s_per_step, share;
};

struct tfh_job_stage {
	double exposed_s, hidden_s; /* per step */
};

/* One step, for --steps; kept for every step of the critical process. */
struct tfh_step {
	uint64_t index;
	double start_s, dur_s;
	/* The step on the host, which runs ahead of the device; 0: read from a digest. */
	int64_t host_t0, host_t1;
	int8_t segment, cls, cause;	 /* enum tfh_segment, tfh_class, tfh_cause; -1 none */
	char tier;			 /* 'A' 'B' 'C' */
	float breakdown[TFH_PART_COUNT]; /* seconds */
};

struct tfh_segment_sum {
	enum tfh_segment kind;
	uint32_t count;
	double total_s, every_steps;
};

/* A part of the run's tree. The parts of one parent do not overlap,
 * and together they are the whole parent. */
struct tfh_part_of_run {
	enum tfh_branch kind;
	uint32_t parent;  /* a smaller index; the root is its own parent */
	bool ends;	  /* between loops: no loop follows it */
	const char *name; /* the executed function, "": unknown */
	uint64_t count;	  /* iterations of a loop; otherwise the number of such parts */
	uint64_t runs;	  /* loops: how many times they were entered */
	double begin_s;	  /* when the first one began, since the first record */
	double wall_s;	  /* total of all of them */
	/* The steps in it, including those of its parts, and their time by cause, in seconds;
	 * only after tfh_analyze_ranks(). */
	uint64_t steps;
	double steps_s, compute_s, cause_s[TFH_CAUSE_COUNT];
};

/* Phases of start-up, in their usual order: the first time that each was reached. */
enum tfh_phase {
	TFH_PHASE_DRIVER,  /* the driver was initialised */
	TFH_PHASE_CONTEXT, /* a context was created */
	TFH_PHASE_MODULE,  /* a module of kernels was loaded */
	TFH_PHASE_BATCH,   /* a batch was delivered */
	TFH_PHASE_STEP,	   /* a step was finished */
	TFH_PHASE_STEADY,  /* steps reached their usual duration */
	TFH_PHASE_COUNT
};

/* Steps that launch the same number of ops. */
struct tfh_kind {
	uint32_t launches;
	uint64_t count;
	double median_s, time_share;
};

/* How the steps differ from each other, and what repeats inside them. */
struct tfh_pattern {
	/* Most frequent first; n_kind < 2: all steps are of one kind, or there are too many
	 * kinds. */
	struct tfh_kind kind[TFH_KINDS];
	uint32_t n_kind;
	uint32_t per_update; /* batches until the sequence of kinds repeats, 1: every batch */
	uint32_t inner;	     /* repetitions of the launches inside one step, 1: none */
	uint64_t recompiles, unloads; /* modules that training steps load, and unload */
	double recompile_s;
	uint64_t graph_steps; /* training steps in which a graph was instantiated */
};

/* One rank of several, in short. */
struct tfh_rank {
	int32_t rank;
	uint32_t process;
	const char *host;
	enum tfh_class cls;
	enum tfh_cause cause;
	char tier;
	double share, step_s; /* the verdict's share; mean step */
	uint64_t steps;
	uint64_t all_steps;		  /* including those that are not judged */
	uint64_t exchanges;		  /* collectives and messages that it called NCCL for */
	double breakdown[TFH_PART_COUNT]; /* seconds per step */
	double jitter_s;		  /* the part of communication that waits for other ranks */
	double late_s;	 /* mean delay behind the first rank at collectives, NAN unknown */
	double held_s;	 /* the part in which all others waited for this one alone */
	double silent_s; /* from its last record to that of the rank that lived longest */
	bool closed;	 /* it ended by itself and recorded everything */
	bool straggler;	 /* the others wait for it */
};

/* The ranks of a job from one start of all of them to the next (judge/generations.h). */
struct tfh_generation {
	uint32_t ranks, seen; /* that there should be; that recorded */
	double begin_s,
		end_s; /* first record and last sign of life, since the run's first record */
	bool judged;
	/* The first one that did not end well: its process, rank and host, and where it was last
	 * seen, `seen_s` before its last sign of life. file NULL: not known. */
	bool failed;
	uint32_t process;
	int32_t rank;	  /* -1: none failed */
	const char *host; /* "": none failed */
	double died_s, seen_s;
	const char *file, *function;
	uint32_t line;
};

/* How well a gain is known. */
enum tfh_gain {
	TFH_GAIN_PREDICTED, /* the step without that time: step_s */
	TFH_GAIN_ESTIMATED, /* about: that step if everything else stays as it was: about_s */
	TFH_GAIN_BOUND,	    /* at best: ceiling_speedup */
	TFH_GAIN_LEAST,	    /* at most about_s: the rest of the step gets faster, too */
};

struct tfh_whatif {
	enum tfh_remove remove;
	double step_s, low_s, high_s, floor_s, speedup, ceiling_speedup;
	double saved_s;	      /* in the whole run; an upper bound if the gain is (tfh_gain_of()) */
	const char *no_bound; /* why no bound is known, as a part of a sentence; NULL: one is */
	double about_s;	      /* 0: not known; not used where step_s is known */
};
enum tfh_gain tfh_gain_of(const struct tfh_whatif *w);

/* A place of the program between calls, removed by itself. */
struct tfh_place_gain {
	const char *file, *function;
	uint32_t line;			/* the line with the most samples */
	uint32_t first_line, last_line; /* the stretch of lines around it that is removed */
	bool whole; /* the function, or only these lines, each with everything it calls */
	double s_per_step, off_s; /* the host's own time; off_s: two standard errors */
	struct tfh_whatif gain;	  /* `remove` is not used */
};

#endif
