/*
 * What the analysis says about a run: the one structure that every report prints. Mirrors the JSON
 * schema tfhook.report/1 field by field. Seconds and shares are doubles; NAN means "not measured"
 * and is printed as null or n/a, never as 0. Strings belong to the result.
 */
#ifndef TFH_RESULT_H
#define TFH_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vocabulary.h"
#include "judge/numbers.h"
#include "model/model.h"
#include "model/symbols/kernel_family.h"

struct tfh_verdict {
	enum tfh_class cls;
	enum tfh_cause cause; /* TFH_CAUSE_NONE where the class has none */
	enum tfh_class also[TFH_ALSO];
	uint32_t n_also;
	double share; /* of training wall time */
	enum tfh_confidence confidence;
	char tier; /* 'A' 'B' 'C' */
};

/* What comes again and again in a run: its steps (kind TRAIN), evaluations, checkpoints, what lies between loops. */
struct tfh_recurring {
	enum tfh_segment kind;
	uint64_t count;
	double total_s;	  /* of a checkpoint or a compilation what it takes beyond a usual step */
	double blocked_s; /* of it: of its class */
	enum tfh_class cls;
	enum tfh_cause cause;
};

/* Steps became slower or faster. */
struct tfh_change {
	uint64_t step;		   /* the first that is as those behind it */
	double at_s, from_s, to_s; /* since the run's start; mean steps before and after it */
	enum tfh_part part;	   /* that changed most */
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
	struct tfh_class_count classes[TFH_CLASS_COUNT];
};

struct tfh_share {
	double s_per_step, share;
};

struct tfh_job_stage {
	double exposed_s, hidden_s; /* per step */
};

struct tfh_whatif {
	enum tfh_remove remove;
	double step_s, low_s, high_s, floor_s, speedup, ceiling_speedup;
	double saved_s; /* of the run, by step_s or, where that is not known, at best */
	const char *
		no_bound; /* why nothing is known of it, as a part of a sentence; NULL: something is */
};

/* A place of the program between calls, removed by itself. */
struct tfh_place_gain {
	const char *file, *function;
	uint32_t line;		  /* most looked at */
	bool whole;		  /* the function with all that it calls, or that line alone */
	double s_per_step, off_s; /* of the host's own time; two standard errors */
	struct tfh_whatif gain;	  /* remove: none of the list */
};

struct tfh_segment_sum {
	enum tfh_segment kind;
	uint32_t count;
	double total_s, every_steps;
};

/* A part of the run's tree. The parts of one parent do not overlap, and together they are all of it. */
struct tfh_part_of_run {
	enum tfh_branch kind;
	uint32_t parent;  /* index, before its own; the root's is its own */
	const char *name; /* of what is executed, "" unknown */
	uint64_t count;	  /* iterations of a loop; else how often there was such a part */
	uint64_t runs;	  /* loops: how often they were entered */
	double begin_s;	  /* of the first, since the run's start */
	double wall_s;	  /* of all */
	/* The steps within it, those of its parts too, and where their time went, seconds; only of tfh_analyze_ranks(). */
	uint64_t steps;
	double steps_s, compute_s, cause_s[TFH_CAUSE_COUNT];
};

struct tfh_input_stage {
	const char *name;   /* ParallelMapV2 */
	const char *prefix; /* Iterator::Root::Prefetch::ParallelMapV2 */
	double self_s_per_step, calls_per_step, capacity_per_s;
	uint32_t parallelism; /* 0 unknown */
	bool async, guilty;
};

struct tfh_kernel {
	const char *name;
	double calls_per_step, median_s, s_per_step, share_of_busy;
};

/* What kernels of one kind take together. */
struct tfh_family_time {
	enum tfh_kernel_family family;
	uint32_t kernels; /* names */
	double s_per_step, share_of_busy;
};

struct tfh_transfer {
	const char *fn;
	enum tfh_dir dir;
	int pageable; /* 1, 0, -1 unknown */
	double calls_per_step, bytes_per_step, bytes_per_s;
	uint64_t blocking_calls, calls;
	const char *where; /* call site, "" unknown */
	uint32_t stack;	   /* the same as frames (tfh_run_stack, tfh_run_python) */
};

struct tfh_quality {
	uint64_t events, dropped, unhooked;
	uint64_t unnamed; /* uses of names that found no id of their own */
	double unattributed_share, overhead_share;
	/* What the job's threads together waited for processors, seconds a second (may exceed 1);
	 * NAN: not sampled. Crowded: enough to distort times. */
	double run_delay_share;
	bool crowded;
	bool clean_end;
	const char *gpu_times; /* "cupti" "none" "imported" */
	const char *graphs; /* why only whole graph launches were timed, NULL: their nodes were */
	const char *clock;  /* "tsc" "clock_gettime" */
	double clock_residual_s;
	uint32_t files, files_complete, holes;
	const char *const *unhooked_names;
};

/* What a stream was given last: what a hung wait waits for. */
struct tfh_last_launch {
	uint32_t stream;
	uint64_t handle;
	const char *kernel;
	int64_t t;
};

/* Shares of the step by XProf's rules, the most important kind first. */
enum tfh_xprof_part {
	TFH_XPROF_COMPUTE,
	TFH_XPROF_OUTPUT,
	TFH_XPROF_DEVICE,
	TFH_XPROF_COLLECTIVES,
	TFH_XPROF_INPUT,
	TFH_XPROF_OTHER,
	TFH_XPROF_COUNT
};

/* Device memory asked of the driver. */
struct tfh_allocation {
	const char *fn;
	int64_t t;
	uint64_t bytes;
};
struct tfh_failure {
	struct tfh_allocation at, before[TFH_HEAP_LAST]; /* before: latest first */
	uint32_t n_before;
	uint64_t in_use;
};
struct tfh_heap_sum {
	uint64_t in_use, peak, allocations, failed, before;
	uint64_t capacity; /* of the devices that ran ops, 0 unknown */
	int64_t peak_t;
	uint64_t line[TFH_HEAP_POINTS]; /* highest use in equal parts of the run */
	uint32_t drawn, n_failure;
	struct tfh_failure failure[TFH_HEAP_FAILURES];
};

/* One rank of several, in short. */
struct tfh_rank {
	int32_t rank;
	uint32_t process;
	const char *host;
	enum tfh_class cls;
	enum tfh_cause cause;
	char tier;
	double share, step_s; /* as of the verdict; mean step */
	uint64_t steps;
	uint64_t all_steps;		  /* not only judged ones */
	uint64_t exchanges;		  /* collectives and messages that it has called NCCL for */
	double breakdown[TFH_PART_COUNT]; /* seconds per step */
	double jitter_s;		  /* of it: waiting for other ranks */
	double late_s;	 /* mean delay behind the first rank at collectives, NAN unknown */
	double held_s;	 /* of it: all others were there and waited for this one alone */
	double silent_s; /* from its last sign of life to that of the rank that lived longest */
	bool closed;	 /* it ended by itself, with all that it had recorded */
	bool straggler;	 /* the others wait for it */
	double need_s[TFH_REMOVE_COUNT]; /* step without that class and without waiting for others
					  */
};

/* One step, for --steps; kept for every step of the critical process. */
struct tfh_step {
	uint64_t index;
	double start_s, dur_s;
	int8_t segment, cls, cause;	 /* enum tfh_segment, tfh_class, tfh_cause; -1 none */
	char tier;			 /* 'A' 'B' 'C' */
	float breakdown[TFH_PART_COUNT]; /* seconds */
};

/* Start-up: what was there for the first time, in the usual order. */
enum tfh_phase {
	TFH_PHASE_DRIVER,  /* the driver had been initialised */
	TFH_PHASE_CONTEXT, /* a context was there */
	TFH_PHASE_MODULE,  /* a module of kernels was loaded */
	TFH_PHASE_BATCH,   /* a batch was delivered */
	TFH_PHASE_STEP,	   /* a step was done */
	TFH_PHASE_STEADY,  /* steps were as long as usual */
	TFH_PHASE_COUNT
};

/* Steps that launch the same number of ops. */
struct tfh_kind {
	uint32_t launches;
	uint64_t count;
	double median_s, time_share;
};

/* A span whose records were discarded to save room: what the sketches of its chunks tell. None of
 * it is among the steps. */
struct tfh_discarded_call {
	const char *fn;
	uint64_t count;
	double total_s;
};
struct tfh_discarded_anchor { /* copies in one direction, or waits */
	uint64_t count, bytes;
	double total_s;
};
struct tfh_discarded {
	double start_s, end_s;
	uint64_t events, launches;
	uint64_t steps;
	bool estimated;		 /* steps by the number of launches, not by the step clock */
	double mean_s, median_s; /* of a step; median of the chunks' means; NAN unknown */
	struct tfh_discarded_call *call; /* by count */
	uint32_t n_call;
	bool knows_anchors; /* in all chunks */
	struct tfh_discarded_anchor anchor[TFT_SKETCH_ANCHORS];
};

/* How the steps differ from each other, and what is inside them. */
struct tfh_pattern {
	struct tfh_kind kind[TFH_KINDS]; /* by count; fewer than two: all are of one kind */
	uint32_t n_kind;
	uint32_t per_update; /* batches until the sequence of kinds begins again, 1: every one */
	uint32_t inner;	     /* times that the launches inside one step repeat, 1: not */
	uint64_t recompiles; /* modules loaded by training steps */
	double recompile_s;
};

/* What tells how fast the input pipeline can deliver. */
enum tfh_supply_basis {
	TFH_SUPPLY_UNKNOWN,
	TFH_SUPPLY_ON_REQUEST, /* it works only while it is asked */
	TFH_SUPPLY_WAITED,     /* batches were waited for one after the other */
	TFH_SUPPLY_BURSTS      /* bursts, each from one empty buffer to the next */
};

/* What the input pipeline could deliver; NAN: not known. */
struct tfh_supply {
	double period_s; /* time per batch when nobody holds it up */
	double headroom; /* it could deliver at least so many times what the steps take */
	uint64_t buffer; /* batches that lay ready, at least; 0 unknown */
	bool exact;	 /* the producer never stopped: no step can be shorter on the average */
	enum tfh_supply_basis basis;
	uint64_t seen; /* batches waited for, or bursts */
};

/* Where most of a cause's calls are made: the function called, and the place in the program, "" not
 * known. */
struct tfh_call_site {
	const char *fn, *where;
	uint32_t stack; /* the same as frames (tfh_run_stack, tfh_run_python) */
};

/* Functions of the program that pauses were spent in, by the ranges of an imported trace. */
struct tfh_code_time {
	struct {
		const char *name;
		double s_per_step;
	} function[TFH_CODE_FUNCTIONS]; /* those with the largest parts */
	uint32_t n;
	double s_per_step; /* of all functions */
};

/* What threads were seen to be at between their calls: enum tft_look, and a log or its like being
 * written, which is no checkpoint. */
#define TFH_SEEN_LOG TFT_LOOK_COUNT
#define TFH_SEEN_COUNT (TFT_LOOK_COUNT + 1)
struct tfh_seen_sum {
	double part[TFH_SEEN_COUNT]; /* shares */
	double ns;		     /* of the thread's time that they stand for */
	uint64_t looks;		     /* 0: nobody looked */
};

/* What of the machine is worth a sentence, mean of the whole run; 0: nothing. */
struct tfh_machine_findings {
	double processors;  /* of the machine, NAN: not read */
	double limit;	    /* processors that the container may use, 0: all */
	double busy, steal; /* processors */
	double throttled; /* the container had used up its limit: share, added up over processors */
	double io;	  /* share of the time: nothing went on for disks */
	double memory;	  /* share of the time: something waited for memory */
	double swap;	  /* bytes a second */
	struct tfh_gpu_findings {
		int lowered_device; /* the one whose clock was lowered most */
		double lowered
			[4]; /* share of the readings: for power, heat, a setting, other reasons */
		double power, limit;   /* W, its mean and its limit; NAN: not read */
		int xid_device;	       /* the one with most errors that the driver reported */
		double xids, last_xid; /* how many; the number of the last one */
		int ecc_device;	       /* the one with most errors that ECC did not correct */
		double ecc;
	} gpu;
};

/* A line of Python that threads were seen at between their calls. */
struct tfh_seen_line {
	const char *file, *function; /* NULL: none is known */
	uint32_t line;
	const char *callee, *callee_file; /* of a library, which it mostly calls; NULL: none */
	uint32_t callee_line;
	double s_per_step, off_s; /* off: two standard errors */
	double of_s;		  /* of so much of the verdict's cause */
	uint64_t looks;
};

/* The copies of most of the verdict's bytes come again: from or to the same memory in so many steps. */
struct tfh_copied_again {
	enum tfh_dir dir;
	double bytes;
	uint64_t steps,
		back; /* 0: none does; back: it sends what was fetched to that memory before */
};

/* The calls that led there, as a tree: a node's time is its children's and its own. */
struct tfh_seen_node {
	const char *file, *function;
	uint32_t line, parent; /* parent: index, its own: none */
	double s_per_step, own_s;
	uint64_t looks;
};

/* The fewest worker processes with which steps no longer wait for their batch, and a step then. */
struct tfh_more_workers {
	uint32_t from,
		to; /* from 0: the training thread makes its batches; to 0: not known, or no more would help */
	double low_s, high_s; /* NAN: not known */
};

/* Child processes, or else other threads of Python, that were at work in the judged steps: threads while a driving one
 * waited. */
struct tfh_seen_workers {
	uint32_t processes, threads; /* that were seen at work; one of both is 0 */
	uint64_t looks;
	double busy; /* share of their time that they were not waiting for work */
	struct {
		const char *file, *function; /* NULL: none is known */
		uint32_t line;
		double share, off;  /* of the time that they were busy; off: two standard errors */
	} line;			    /* where they are most */
	struct tfh_seen_node *node; /* times: of all of them together */
	uint32_t n_node;
	struct tfh_more_workers more;
};

/* A function that is compiled again for other shapes or values. */
struct tfh_retraced {
	const char *name;
	uint64_t variants, calls; /* of the whole run; variants 0: there is none */
};

/* A line of Python that the main thread was seen at before the first step. */
struct tfh_start_line {
	const char *file, *function;
	uint32_t line;
	const char *
		imports; /* the module that it imports, "" of unknown name; NULL: it imports none */
	double share;	 /* of the part's wall time */
	uint64_t looks;
};

/* What was seen of a part of the run before its first step: before the first call, or start-up. */
struct tfh_seen_start {
	enum tfh_branch kind;
	double wall_s;
	uint64_t looks;
	double state
		[TFT_LOOK_COUNT]; /* shares of the part's wall time; less than 1 where nobody looked */
	struct tfh_start_line line[TFH_VERDICT_START_LINES]; /* the largest shares first */
	uint32_t n_line;
	const char
		*why; /* why looks have no lines, or there are none; NULL: nothing kept them away */
};

/* Whether what the verdict's steps wait for are requests. */
enum tfh_serves { TFH_SERVES_NOT, TFH_SERVES_MAYBE, TFH_SERVES };

/* What else was found of a run, for the sentences of a report (report/words). Times are seconds of
 * a judged step unless they say otherwise; NAN: not known. */
/* Time for which threads of the job were ready to run without a CPU. */
struct tfh_contended {
	double share, s_per_step; /* of the judged steps; 0: none to tell of */
	/* CPUs, on average: busy ones of the machine, and those that the job's processes used; NAN: not known */
	double busy, own;
};

struct tfh_findings {
	bool cpu_only;	       /* no device was used */
	bool torch;	       /* PyTorch's ranges were recorded */
	bool imported;	       /* the trace of another profiler */
	bool device_times;     /* there are some, if not of the judged steps */
	bool input_visible;    /* calls of an input pipeline were seen */
	bool mixed_copies;     /* waits for queued copies and kernels together take 5 % */
	bool queued_functions; /* most of host.callback: functions that streams ran */
	double cause_s[TFH_CAUSE_COUNT];
	struct tfh_retraced retraced;
	double kernel_share; /* of the processor time; 0: usual */
	enum tfh_cause input_cause;
	double graph_ran;	    /* share of executing for which the process had a processor */
	double code_ran;	    /* share of pauses between calls for which the thread had one */
	struct tfh_seen_sum seen;   /* in the judged steps */
	struct tfh_seen_line line;  /* where most of the verdict's cause is */
	struct tfh_seen_node *node; /* a parent before its children */
	uint32_t n_node;
	struct tfh_seen_workers workers;
	struct tfh_copied_again again;
	enum tfh_serves serves;
	struct tfh_seen_start start[2]; /* kind TFH_BRANCH_NONE: there is no such part */
	struct tfh_call_site wait, alloc, load;
	struct tfh_call_site pause;		      /* where pauses between calls end; no fn */
	struct tfh_code_time python, other;	      /* of host.python; of other causes */
	uint64_t windows, windows_timed, holed_steps; /* timed: with device times */
	double lead_s;	 /* how far the host is ahead of the device at a step's end */
	double before_s; /* in all: the device was busy with work from before the trace */
	const char *no_device_times; /* why there are none, NULL */
	const char *no_python;	     /* why Python's lines are missing, NULL */
	uint64_t lost_ops;
	uint32_t alike_loops; /* of functions of the same name, judged together; 0: one */
	struct {
		uint32_t n;
		double total_s;
		enum tfh_part most;
	} stall; /* steps that stood still */
	struct {
		double every, longer_s, share; /* share: of training time; every 0: none */
		enum tfh_part part;
	} slow; /* steps that are slow in turn */
	struct {
		double pages, cost_s; /* pages 0: too few to tell */
	} fault;		      /* memory taken anew from the kernel */
	struct tfh_machine_findings machine;
	struct tfh_contended contended;
	uint64_t priced;	 /* settings that cost time: rows of base/priced.def, as bits */
	double others_compute_s; /* median of the other ranks */
	uint32_t pid, unjudged;	 /* other processes that did about as much and are no ranks */
};

struct tfh_result {
	struct tfh_run *run;		 /* borrowed */
	double startup[TFH_PHASE_COUNT]; /* seconds since the run's start, NAN: not seen */
	struct tfh_pattern pattern;
	struct tfh_supply supply;
	uint32_t process; /* the critical one */
	uint32_t ranks, ranks_seen, hosts;
	enum tfh_end end;
	int end_code;
	struct tfh_last_launch last[TFH_LAST_SHOWN]; /* the latest first */
	uint32_t n_last;
	double xprof[TFH_XPROF_COUNT]; /* NAN: no device times */
	struct tfh_heap_sum heap;      /* allocations 0: none was seen */
	struct tfh_rank *rank;	       /* by rank; NULL where there is one */
	uint32_t n_rank;
	/* Of all that recurs. It is the steps' unless something else costs more. */
	struct tfh_verdict verdict, steady;
	struct tfh_recurring recurring[TFH_SEGMENT_COUNT]; /* the most blocking first */
	uint32_t n_recurring;
	uint32_t lead; /* of these, from 1: what the verdict is about where it is not the steps */
	struct tfh_change change[TFH_CHANGES]; /* in order of time */
	uint32_t n_change;
	double recurs_s; /* all of them together */
	struct tfh_steps steps;
	struct tfh_share breakdown[TFH_PART_COUNT];   /* of a training step, on average */
	struct tfh_job_stage stages[TFH_STAGE_COUNT]; /* raw-input .. storage */
	struct tfh_whatif whatif[TFH_REMOVE_COUNT];
	uint32_t n_whatif;
	struct tfh_place_gain place[TFH_PREDICT_PLACES];
	uint32_t n_place;
	uint32_t line_place;	      /* of these, from 1: the one that found.line is in */
	struct tfh_part_of_run *tree; /* a parent before its parts; the run itself first */
	uint32_t n_tree;
	struct tfh_segment_sum segments[TFH_SEGMENT_COUNT];
	uint32_t n_segments;
	struct tfh_input_stage *input;
	uint32_t n_input;
	struct tfh_kernel *kernels;
	uint32_t n_kernels;
	struct tfh_family_time
		families[TFH_FAMILY_COUNT]; /* the most time first; none without device times */
	uint32_t n_families;
	struct tfh_transfer *transfers;
	uint32_t n_transfers;
	struct tfh_findings found;
	struct tfh_quality quality;
	struct tfh_discarded *discarded;
	uint32_t n_discarded;
	struct tfh_step *step;
	uint64_t n_step;
	float (*step_cause)
		[TFH_CAUSE_COUNT];	 /* by step, seconds; NULL: not of tfh_analyze_ranks() */
	uint64_t exchanges;		 /* as struct tfh_rank */
	double jitter_s;		 /* per step, of communication: waiting for other ranks */
	double need_s[TFH_REMOVE_COUNT]; /* as struct tfh_rank, without a point or limits */
};

/* copy_causes.c: cause of the time that a copy takes, and whether a transfer cause is about such copies: those of its
 * direction and memory, or all where it names none. `dir`: enum tfh_dir; pageable: 1, 0, -1 unknown. */
enum tfh_cause tfh_copy_cause(unsigned dir, bool pageable);
bool tfh_cause_names_copy(enum tfh_cause cause, unsigned dir, int pageable);

/* Judges a run. 0, or -ENODATA with `err` saying what is missing (exit code 5), or -errno. */
int tfh_analyze(struct tfh_run *run, struct tfh_result **out, struct tfh_err *err);
/* The same. `fn` is called for each process that was judged (every rank, or the critical process), in the order of the run's
 * processes, while results still have each step's seconds by cause. Results are valid until it returns; an error of it ends
 * the analysis. What concerns the whole run (`run`, ranks, quality, end, machine) is only in *out. */
typedef int (*tfh_rank_fn)(void *arg, const struct tfh_result *r, struct tfh_err *err);
int tfh_analyze_ranks(struct tfh_run *run, tfh_rank_fn fn, void *arg, struct tfh_result **out,
		      struct tfh_err *err);
/* The same, `fn` being NULL if nobody asks, and what some steps waited for: those of the chains (judge/chain.h) that `choose` makes
 * when all are judged, the first of several joined ones, or NULL. `likely`: one that it will choose, TFH_NO_STEP: any. */
struct tfh_chain;
struct tfh_wish {
	struct tfh_chain *(*choose)(void *arg, const struct tfh_result *r);
	void *arg;
	uint64_t likely;
};
int tfh_analyze_steps(struct tfh_run *run, const struct tfh_wish *wish, tfh_rank_fn fn, void *arg,
		      struct tfh_result **out, struct tfh_err *err);
void tfh_result_free(struct tfh_result *r);

#endif
