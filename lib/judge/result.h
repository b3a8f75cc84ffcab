/*
 * What the analysis found in a run: the one structure that every report prints. Mirrors the JSON schema tfhook.report/1
 * field by field. Seconds and shares are doubles; NAN means "not measured" and is printed as null or n/a, never as 0.
 * Strings belong to the result.
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
	enum tfh_cause cause; /* TFH_CAUSE_NONE if the class has none */
	enum tfh_class also[TFH_ALSO];
	uint32_t n_also;
	double share; /* of training wall time */
	enum tfh_confidence confidence;
	char tier; /* 'A' 'B' 'C' */
};

/* What a run does again and again: its steps (kind TRAIN), evaluations, checkpoints, work between loops. */
struct tfh_recurring {
	enum tfh_segment kind;
	uint64_t count;
	double total_s; /* checkpoints and compilations count only with the time beyond a usual step */
	double blocked_s; /* the part of it that belongs to the class */
	enum tfh_class cls;
	enum tfh_cause cause;
};

/* A point at which steps became slower or faster, or a part of the run in which they did so steadily. */
struct tfh_change {
	uint64_t step;	     /* the first step after the change, or of that part */
	uint64_t until;	     /* the step after that part; 0: a sudden change */
	double at_s;	     /* when `step` began, since the run's start */
	double from_s, to_s; /* mean step before and after */
	enum tfh_part part;  /* the part that changed most */
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
	double saved_s;	      /* in the whole run; an upper bound if step_s is not known */
	const char *no_bound; /* why no bound is known, as a part of a sentence; NULL: one is */
};

/* A place of the program between calls, removed by itself. */
struct tfh_place_gain {
	const char *file, *function;
	uint32_t line;			/* the line with the most samples */
	uint32_t first_line, last_line; /* the stretch of lines around it that is removed */
	bool whole; /* the function, or only these lines, each with everything it calls */
	double s_per_step, off_s; /* the host's own time; off_s: two standard errors */
	struct tfh_whatif gain;	  /* `remove` is not used */
};

struct tfh_segment_sum {
	enum tfh_segment kind;
	uint32_t count;
	double total_s, every_steps;
};

/* A part of the run's tree. The parts of one parent do not overlap, and together they are the whole parent. */
struct tfh_part_of_run {
	enum tfh_branch kind;
	uint32_t parent;  /* a smaller index; the root is its own parent */
	const char *name; /* the executed function, "": unknown */
	uint64_t count;	  /* iterations of a loop; otherwise the number of such parts */
	uint64_t runs;	  /* loops: how many times they were entered */
	double begin_s;	  /* when the first one began, since the first record */
	double wall_s;	  /* total of all of them */
	/* The steps in it, including those of its parts, and their time by cause, in seconds; only after
	 * tfh_analyze_ranks(). */
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
	uint32_t kernels; /* different names */
	double s_per_step, share_of_busy;
};

struct tfh_transfer {
	const char *fn;
	enum tfh_dir dir;
	int pageable; /* 1, 0, -1 unknown */
	double calls_per_step, bytes_per_step, bytes_per_s;
	uint64_t blocking_calls, calls;
	const char *where; /* call site, "": unknown */
	uint32_t stack;	   /* the call site as frames (tfh_run_stack, tfh_run_python) */
};

struct tfh_quality {
	uint64_t events, dropped, unhooked;
	uint64_t unnamed; /* uses of names without an id of their own */
	double unattributed_share, overhead_share;
	/* What device times cost, as shares of the run: CUPTI's own work as it reports it, and processor time of the
	 * recorder's thread. NAN: there are none, or it is not known. */
	double cupti_share, device_times_share;
	/* Seconds per second that the job's threads together waited for processors (may exceed 1); NAN: not sampled.
	 * crowded: the wait is long enough to distort times. */
	double run_delay_share;
	bool crowded;
	bool clean_end;
	const char *gpu_times; /* "cupti" "none" "imported" */
	const char *
		graphs; /* why device times were taken in windows from some moment on, NULL: they were not */
	const char *clock; /* "tsc" "clock_gettime" */
	double clock_residual_s;
	uint32_t files, files_complete, holes;
	const char *const *unhooked_names;
};

/* The last kernel of a stream: what a hung wait waits for. */
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

/* Device memory requested from the driver. */
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
	uint64_t line[TFH_HEAP_POINTS]; /* maximum use in equal parts of the run */
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
	double need_s[TFH_REMOVE_COUNT]; /* step without that class and without waits for others */
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

struct tfh_discarded_call {
	const char *fn;
	uint64_t count;
	double total_s;
};
struct tfh_discarded_anchor { /* copies in one direction, or waits */
	uint64_t count, bytes;
	double total_s;
};
/* A span whose records were discarded to save space, as described by the sketches of its chunks. Its steps are not
 * among the others. */
struct tfh_discarded {
	double start_s, end_s;
	uint64_t events, launches;
	uint64_t steps;
	bool estimated;		 /* steps by the number of launches, not by the step clock */
	double mean_s, median_s; /* a step's mean; the median of the chunks' means; NAN: unknown */
	struct tfh_discarded_call *call; /* the most frequent first */
	uint32_t n_call;
	bool knows_anchors; /* the anchors of all chunks are known */
	struct tfh_discarded_anchor anchor[TFT_SKETCH_ANCHORS];
};

/* How the steps differ from each other, and what repeats inside them. */
struct tfh_pattern {
	/* Most frequent first; n_kind < 2: all steps are of one kind, or there are too many kinds. */
	struct tfh_kind kind[TFH_KINDS];
	uint32_t n_kind;
	uint32_t per_update; /* batches until the sequence of kinds repeats, 1: every batch */
	uint32_t inner;	     /* repetitions of the launches inside one step, 1: none */
	uint64_t recompiles; /* modules loaded by training steps */
	double recompile_s;
};

/* The evidence for how fast the input pipeline can deliver. */
enum tfh_supply_basis {
	TFH_SUPPLY_UNKNOWN,
	TFH_SUPPLY_ON_REQUEST, /* it works only when a batch is requested */
	TFH_SUPPLY_WAITED,     /* batches were waited for in succession */
	TFH_SUPPLY_BURSTS      /* bursts, each from one empty buffer to the next */
};

/* What the input pipeline could deliver; NAN: not known. */
struct tfh_supply {
	double period_s; /* time per batch if no consumer holds it up */
	double headroom; /* it could deliver at least this many times the steps' rate */
	uint64_t buffer; /* at least this many batches were ready; 0: unknown */
	bool exact;	 /* the producer never stopped: no step can be shorter on average */
	enum tfh_supply_basis basis;
	uint64_t seen; /* batches waited for, or bursts */
};

/* The function and the place in the program of most calls of a cause; "": unknown. */
struct tfh_call_site {
	const char *fn, *where;
	uint32_t stack; /* `where` as frames (tfh_run_stack, tfh_run_python) */
};

/* Functions of the program in which pauses or waiting calls were spent, by the ranges of an imported trace. */
struct tfh_code_time {
	struct {
		const char *name;
		double s_per_step;
	} function[TFH_CODE_FUNCTIONS]; /* those with the most time */
	uint32_t n;
	double s_per_step; /* sum over all functions */
};

/* What threads do between their calls, by samples: enum tft_state, and writing a log or similar file, which is not a
 * checkpoint. */
#define TFH_SEEN_LOG TFT_STATE_COUNT
#define TFH_SEEN_COUNT (TFT_STATE_COUNT + 1)
struct tfh_seen_sum {
	double part[TFH_SEEN_COUNT]; /* shares */
	double ns;		     /* thread time that the samples represent */
	uint64_t samples;	     /* samples; 0: none */
};

/* What is worth a sentence about the machine, as means of the whole run; 0: nothing. */
struct tfh_machine_findings {
	double processors;  /* of the machine, NAN: not read */
	double limit;	    /* processors that the container may use, 0: all */
	double busy, steal; /* processors */
	double throttled;   /* the container had used up its limit: share, summed over processors */
	double io;	    /* share of the time in which all work waited for disks */
	double memory;	    /* share of the time in which something waited for memory */
	double swap;	    /* bytes per second */
	double far; /* share of its threads' CPU time on other memory nodes than its devices' */
	int device_node; /* that of its first device whose node is known */
	struct tfh_gpu_findings {
		int lowered_device; /* the device whose clock was lowered most */
		double lowered
			[4]; /* shares of the readings: power, heat, a setting, other reasons */
		double power,
			limit; /* W: the highest while the clock was lowered for power; the limit; NAN: not read */
		int xid_device;	       /* the device with the most errors reported by the driver */
		double xids, last_xid; /* their number; the number of the last one */
		double processes;      /* on the device with the most, on average; NAN: not known */
		int ecc_device;	       /* the device with the most errors not corrected by ECC */
		double ecc;
	} gpu;
};

/* A line of Python at which threads were sampled between their calls. */
struct tfh_seen_line {
	const char *file, *function; /* NULL: none is known */
	uint32_t line;
	const char *callee, *callee_file; /* library function that it mostly calls; NULL: none */
	uint32_t callee_line;
	double s_per_step, off_s; /* off_s: two standard errors */
	double of_s; /* time per step of the verdict's cause, of which s_per_step is a part */
	uint64_t samples;
	bool asks; /* where batches are asked for; what makes them has no line */
};

/* Copies that account for most of the verdict's bytes and repeat: from or to the same memory in `steps` steps. */
struct tfh_copied_again {
	enum tfh_dir dir;
	double bytes;
	uint64_t steps, back; /* steps 0: none; back: steps that send back what was fetched */
};

/* The calls that led to the seen lines, as a tree: a node's time includes that of its children. */
struct tfh_seen_node {
	const char *file, *function;
	uint32_t line, parent; /* parent: index; a root is its own parent */
	double s_per_step, own_s;
	uint64_t samples;
};

/* The smallest number of worker processes with which steps wait as little for their batch as the CPUs allow, and the step with it. */
struct tfh_more_workers {
	uint32_t from,
		to; /* from 0: the training thread makes batches; to 0: unknown, or no gain */
	double low_s, high_s; /* high_s NAN: the cost of handing over a batch was not seen */
	bool splits; /* the loader may iterate a data set, of which each worker has to read its own part */
};

/* Child processes or, if there are none, other Python threads that were at work in the judged steps (threads: while a
 * driving thread waited). */
struct tfh_seen_workers {
	uint32_t processes, threads; /* seen at work; one of the two is 0 */
	uint64_t samples;
	double busy; /* share of their time in which they did not wait for work */
	struct {
		const char *file, *function; /* NULL: none is known */
		uint32_t line;
		double share, off;  /* share of their busy time; off: two standard errors */
	} line;			    /* the line with most of their time */
	struct tfh_seen_node *node; /* times: sum over all of them */
	uint32_t n_node;
	struct tfh_more_workers more;
};

/* A function that is compiled again for other shapes or values. */
struct tfh_retraced {
	const char *name;
	uint64_t variants, calls; /* in the whole run; variants 0: there is none */
};

/* A line of Python at which the main thread was sampled outside of the steps. */
struct tfh_start_line {
	const char *file, *function;
	uint32_t line;
	const char *imports; /* the module that it imports, "": name unknown; NULL: none */
	double share;	     /* of the part's wall time */
	uint64_t samples;
};

/* What samples show in a part of the run besides its steps: before the first call, in start-up, or between loops, where
 * that took longest. */
enum { TFH_SEEN_BEFORE, TFH_SEEN_STARTUP, TFH_SEEN_BETWEEN, TFH_SEEN_STARTS };
struct tfh_seen_start {
	enum tfh_branch kind; /* NONE, or RUN in older digests: no such part */
	double wall_s;
	uint64_t samples;
	double state
		[TFT_STATE_COUNT]; /* shares of the part's wall time; less than 1 without samples */
	struct tfh_start_line line[TFH_VERDICT_START_LINES]; /* the largest shares first */
	uint32_t n_line;
	const char *why; /* why samples or their lines are missing; NULL: they are not */
};

/* Compiling that samples show in the whole run; if the verdict is about compiling in every step, outside of the judged
 * steps. */
struct tfh_compiling {
	double s[TFH_SEGMENT_COUNT]; /* by where it happened; STARTUP: before the first step */
	uint64_t samples,
		times; /* times: steps, and intervals between them, in which it was seen */
	const char *file, *function; /* the line that caused most of it; NULL: none is known */
	uint32_t line;
	const char *callee_file; /* of the compiler's function that it called; NULL: unknown */
};

/* Whether the steps of the verdict wait for requests. */
enum tfh_serves { TFH_SERVES_NOT, TFH_SERVES_MAYBE, TFH_SERVES };

/* Time for which threads of the job were ready to run without a CPU. */
struct tfh_contended {
	double share, s_per_step; /* of the judged steps; 0: none */
	/* Mean number of CPUs: those of the machine that were busy, and those that the job's processes used; NAN: not
	 * known */
	double busy, own;
};

/* Further findings for the sentences of a report (report/words). Times are seconds of a judged step unless stated
 * otherwise; NAN: not known. */
struct tfh_findings {
	bool cpu_only;	       /* no device was used */
	bool torch;	       /* PyTorch's ranges were recorded */
	bool graphs;	       /* TensorFlow executes functions, and hardly any op by itself */
	bool imported;	       /* the trace of another profiler */
	bool device_times;     /* there are some, maybe not of the judged steps */
	bool input_visible;    /* calls of an input pipeline were seen */
	bool mixed_copies;     /* waits for queued copies and kernels together take 5 % */
	bool queued_functions; /* most of host.callback is functions that streams ran */
	bool calls_back; /* the program waits for functions of its own that a library's threads call */
	double cause_s[TFH_CAUSE_COUNT];
	struct tfh_retraced retraced;
	double kernel_share; /* part of the job's CPU time spent in the operating system; 0: not much */
	enum tfh_cause input_cause;
	double graph_ran; /* share of the graph's execution in which the process had a CPU */
	double code_ran;  /* the same of the pauses between calls */
	struct tfh_seen_sum seen;   /* samples of the judged steps */
	struct tfh_seen_line line;  /* the line with most of the verdict's cause */
	struct tfh_seen_node *node; /* a parent before its children */
	uint32_t n_node;
	struct tfh_seen_workers workers;
	struct tfh_copied_again again;
	enum tfh_serves serves;
	struct tfh_seen_start start[TFH_SEEN_STARTS];
	struct tfh_compiling compiling;
	struct tfh_call_site wait, alloc, load;
	struct tfh_call_site pause; /* where pauses between calls end; no fn */
	/* for host.python; for causes without a sum of their own; for the verdict's cause */
	struct tfh_code_time python, other, verdict;
	bool functions; /* the imported trace names functions of Python */
	uint64_t windows, windows_timed, holed_steps; /* timed: with device times */
	double lead_s;	 /* the host's lead over the device at a step's end */
	double before_s; /* total: the device was busy with work from before the trace */
	const char *no_device_times; /* why there are none; NULL: there are some */
	const char *no_python;	     /* why Python's lines are missing; NULL: they are not */
	uint64_t lost_ops;
	uint32_t alike_loops; /* loops with functions of one name, judged together; 0: one */
	struct {
		uint32_t n;
		double total_s;
		enum tfh_part most;
	} stall; /* steps that stalled */
	struct {
		double every, longer_s, share; /* share: of training time; every 0: none */
		enum tfh_part part;
	} slow; /* steps that are slow at regular intervals */
	struct {
		double pages, cost_s; /* pages 0: too few to report */
	} fault;		      /* memory taken from the kernel again and again */
	struct tfh_machine_findings machine;
	struct tfh_contended contended;
	uint64_t priced;	 /* settings that cost time: base/priced.def, as bits */
	double others_compute_s; /* compute time: the median of the other ranks */
	uint32_t pid;		 /* of the judged process */
	uint32_t unjudged;	 /* other processes without a rank that did about as much work */
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
	struct tfh_heap_sum heap;      /* allocations 0: none seen */
	struct tfh_rank *rank;	       /* in order of their numbers; NULL if there is only one */
	uint32_t n_rank;
	/* The verdict of everything that recurs: that of the steps (steady) unless something else costs more. */
	struct tfh_verdict verdict, steady;
	struct tfh_recurring recurring[TFH_SEGMENT_COUNT]; /* the most blocking first */
	uint32_t n_recurring;
	uint32_t lead; /* index + 1 in `recurring`: the verdict's subject; 0: the steps */
	struct tfh_change change[TFH_CHANGES]; /* in order of time */
	uint32_t n_change;
	double recurs_s; /* time of everything that recurs */
	struct tfh_steps steps;
	struct tfh_share breakdown[TFH_PART_COUNT]; /* of the mean training step */
	struct tfh_job_stage stages[TFH_STAGE_COUNT];
	struct tfh_whatif whatif[TFH_REMOVE_COUNT];
	uint32_t n_whatif;
	struct tfh_place_gain place[TFH_PREDICT_PLACES];
	uint32_t n_place;
	uint32_t line_place;	      /* index + 1 in `place`: the one that contains found.line */
	struct tfh_part_of_run *tree; /* a parent before its parts; the run itself first */
	uint32_t n_tree;
	struct tfh_segment_sum segments[TFH_SEGMENT_COUNT];
	uint32_t n_segments;
	struct tfh_input_stage *input;
	uint32_t n_input;
	struct tfh_kernel *kernels;
	uint32_t n_kernels;
	struct tfh_family_time
		families[TFH_FAMILY_COUNT]; /* the most time first; empty without device times */
	uint32_t n_families;
	struct tfh_transfer *transfers;
	uint32_t n_transfers;
	struct tfh_findings found;
	struct tfh_quality quality;
	struct tfh_discarded *discarded;
	uint32_t n_discarded;
	struct tfh_step *step;
	uint64_t n_step;
	/* Seconds of each step by cause; only after tfh_analyze_ranks(). */
	float (*step_cause)[TFH_CAUSE_COUNT];
	uint64_t exchanges; /* as in struct tfh_rank */
	double jitter_s;    /* per step: communication that waits for other ranks */
	/* As in struct tfh_rank, from device times; NAN: unknown. */
	double need_s[TFH_REMOVE_COUNT];
};

/* copy_causes.c: the cause of a copy's time; and whether a transfer cause covers such copies: those of its direction
 * and memory, or all if it names none. `dir`: enum tfh_dir; pageable: 1, 0, -1 unknown. */
enum tfh_cause tfh_copy_cause(unsigned dir, bool pageable);
bool tfh_cause_names_copy(enum tfh_cause cause, unsigned dir, int pageable);
/* The copies that a cause is about: of that kind, those that move most; for small copies, the most frequent ones. NULL:
 * none. */
const struct tfh_transfer *tfh_copies_of(const struct tfh_result *r, enum tfh_cause cause);

/* Judges a run. 0, -ENODATA if data is missing (`err` says what; exit code 5), or another negative errno. */
int tfh_analyze(struct tfh_run *run, struct tfh_result **out, struct tfh_err *err);
/* Like tfh_analyze(). `fn` is called for each judged process (every rank, or the critical process), in the order of
 * the run's processes, while results still have each step's seconds by cause. A result is valid until `fn` returns;
 * an error of `fn` ends the analysis. Data about the whole run (`run`, ranks, quality, end, machine) is only in
 * *out. */
typedef int (*tfh_rank_fn)(void *arg, const struct tfh_result *r, struct tfh_err *err);
int tfh_analyze_ranks(struct tfh_run *run, tfh_rank_fn fn, void *arg, struct tfh_result **out,
		      struct tfh_err *err);
/* Like tfh_analyze_ranks(), with `fn` optional (NULL), and with what some steps waited for: those of the chains
 * (judge/chain.h) that `choose` creates once all steps are judged. It returns the first of several linked chains, or
 * NULL. `likely`: a step that it will choose, TFH_NO_STEP: unknown. */
struct tfh_chain;
struct tfh_wish {
	struct tfh_chain *(*choose)(void *arg, const struct tfh_result *r);
	void *arg;
	uint64_t likely;
};
int tfh_analyze_steps(struct tfh_run *run, const struct tfh_wish *wish, tfh_rank_fn fn, void *arg,
		      struct tfh_result **out, struct tfh_err *err);
/* Seconds since the start of the judged process, of a time since the first record. */
double tfh_into_run(const struct tfh_result *r, double s);
void tfh_result_free(struct tfh_result *r);

#endif
