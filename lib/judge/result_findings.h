/* The part of a result (result.h) from which a report makes its sentences: evidence,
 * lines of the program, the machine. */
#ifndef TFH_JUDGE_RESULT_FINDINGS_H
#define TFH_JUDGE_RESULT_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fn.h"
#include "base/vocabulary.h"
#include "format/layout.h"
#include "judge/numbers.h"
#include "judge/result_tables.h"

/* The evidence for how fast the input pipeline can deliver. */
enum tfh_supply_basis {
	TFH_SUPPLY_UNKNOWN,
	TFH_SUPPLY_ON_REQUEST, /* it works only when a batch is requested */
	/* Batches were waited for in succession, so the producer never stopped: no step can be
	 * shorter on average. */
	TFH_SUPPLY_WAITED,
	TFH_SUPPLY_BURSTS /* bursts, each from one empty buffer to the next */
};

/* What the input pipeline could deliver; NAN: not known. */
struct tfh_supply {
	double period_s; /* time per batch if no consumer holds it up */
	double headroom; /* it could deliver at least this many times the steps' rate */
	uint64_t buffer; /* at least this many batches were ready; 0: unknown */
	enum tfh_supply_basis basis;
	uint64_t seen; /* batches waited for, or bursts */
};

/* The function and the place in the program of most calls of a cause; "": unknown. */
struct tfh_call_site {
	const char *fn, *where;
	uint32_t stack; /* `where` as frames (tfh_run_stack, tfh_run_python) */
};

/* Functions of the program in which pauses or waiting calls were spent,
 * by the ranges of an imported trace. */
struct tfh_code_time {
	struct {
		const char *name;
		double s_per_step;
	} function[TFH_CODE_FUNCTIONS]; /* those with the most time */
	uint32_t n;
	double s_per_step; /* sum over all functions */
};

/* What threads do between their calls, by samples: enum tft_state; writing a log or similar file,
 * which is not a checkpoint; waiting in an event loop for a timer; and of the waits for a lock,
 * where that is known, for one that another thread holds, for another thread's signal, for its
 * end. */
enum {
	TFH_SEEN_LOG = TFT_STATE_COUNT,
	TFH_SEEN_TIMER,
	TFH_SEEN_MUTEX,
	TFH_SEEN_SIGNAL,
	TFH_SEEN_END,
	TFH_SEEN_COUNT
};
struct tfh_seen_sum {
	double part[TFH_SEEN_COUNT]; /* shares of the time that the samples represent */
	uint64_t samples;	     /* 0: none */
};

/* Steps that are slow at regular intervals; if there are none, a few that are much longer than the
 * others. */
struct tfh_slow_found {
	double every, longer_s, share; /* share: of training time; every 0: they are not regular */
	uint64_t n;		       /* 0: none */
	enum tfh_part part;
	const char *file, *function; /* the line that has most of their time; NULL: not known */
	uint32_t line;
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
		/* Shares of the readings: power, heat, a setting, other reasons. */
		double lowered[4];
		/* W: the highest while the clock was lowered for power; the limit; NAN: not
		 * read. */
		double power, limit;
		int xid_device;	       /* the device with the most errors reported by the driver */
		double xids, last_xid; /* their number; the number of the last one */
		double processes;      /* on the device with the most, on average; NAN: not known */
		int ecc_device;	       /* the device with the most errors not corrected by ECC */
		double ecc;
	} gpu;
};

/* What a line is to the verdict's cause. */
enum tfh_line_kind {
	TFH_LINE_IS,
	TFH_LINE_ASKS,	 /* where batches are asked for; what makes them has no line */
	TFH_LINE_MAKES,	 /* where the slow stage is made */
	TFH_LINE_AWAITS, /* where the program waits for its devices */
	TFH_LINE_KINDS
};

/* A line that calls another one, with its share of the calls' time. */
struct tfh_caller_line {
	const char *file, *function; /* NULL: none */
	uint32_t line;
	double share;
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
	enum tfh_line_kind kind;
	const char *given; /* function of the program that the stage calls; NULL: none is known */
	/* The program's wrapper around the driver that the line calls; else, if the line itself is
	 * in a wrapper that no line calls most, those that do. */
	struct tfh_caller_line through, caller[TFH_VERDICT_CALLERS];
	uint32_t n_caller;
	/* All steps run through it, or it is in the library that has the loop. */
	bool not_own;
};

/* The parts of what a job computes on a CPU. Recorded calls and ranges tell the time of backward
 * passes, optimizers and functions, samples the rest. */
enum tfh_computes {
	TFH_COMPUTES_BACKWARD,	 /* PyTorch's backward passes */
	TFH_COMPUTES_FORWARD,	 /* calls of PyTorch's modules, except in a backward pass */
	TFH_COMPUTES_UPDATE,	 /* PyTorch's optimizers */
	TFH_COMPUTES_FUNCTION,	 /* functions that TensorFlow executes */
	TFH_COMPUTES_EVALUATION, /* calls of modules from lines that run in few steps */
	TFH_COMPUTES_OTHER,
	TFH_COMPUTES_COUNT
};
struct tfh_computed_line {
	const char *file, *function; /* file NULL: none */
	uint32_t line;
	double s_per_step;
	uint64_t samples; /* 0: it was measured */
	uint64_t steps;	  /* of evaluation: in which it was seen */
};
struct tfh_computed {
	struct {
		double s_per_step, off_s; /* off_s: two standard errors */
		uint64_t samples;	  /* 0: it was measured */
	} part[TFH_COMPUTES_COUNT];
	/* Where the program calls modules to train and to evaluate, and where backward passes; the
	 * functions in which most of the time of modules was spent, without those that they
	 * call. */
	struct tfh_computed_line forward[TFH_COMPUTED_LINES], evaluate[TFH_COMPUTED_LINES],
		backward[TFH_COMPUTED_LINES], layer[TFH_COMPUTED_LINES];
	const char *function; /* that TensorFlow executed, with the most time; NULL: none */
};

/* Copies that account for most of the verdict's bytes and repeat: from or to the same memory in
 * `steps` steps. */
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

/* The smallest number of worker processes with which steps wait as little for their batch as the
 * CPUs allow, and the step with it. */
struct tfh_more_workers {
	uint32_t from;	      /* 0: the training thread makes batches */
	uint32_t to;	      /* 0: unknown, or no gain */
	double low_s, high_s; /* high_s NAN: the cost of handing over a batch was not seen */
	/* the loader may iterate a data set, of which each worker has to read its own part */
	bool splits;
};

/* Child processes or, if there are none, other Python threads that were at work in the judged steps
 * (threads: while a driving thread waited). */
struct tfh_seen_workers {
	uint32_t processes, threads; /* seen at work; one of the two is 0 */
	uint64_t samples;
	double busy; /* share of their time in which they did not wait for work */
	double runs; /* share of it in which they ran, or waited for a processor */
	bool holds; /* these threads hold the mutex that the steps wait for; line: where they began */
	struct {
		const char *file, *function; /* NULL: none is known */
		uint32_t line;
		double share, off;  /* share of their busy time; off: two standard errors */
	} line;			    /* the line with most of their time */
	struct tfh_seen_node *node; /* times: sum over all of them */
	uint32_t n_node;
	struct tfh_more_workers more;
};

/* Seconds of a step in which TensorFlow's threads ran functions of Python (py_function). */
double tfh_called_python_s(const struct tfh_seen_workers *k);

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

/* result.c: whether they are of one function, or the same; a line that imports is on its own. */
bool tfh_start_together(const struct tfh_start_line *a, const struct tfh_start_line *b);

/* What samples show in a part of the run outside its steps. */
enum {
	TFH_SEEN_BEFORE,
	TFH_SEEN_STARTUP,
	TFH_SEEN_BETWEEN,
	TFH_SEEN_EVALUATE,
	TFH_SEEN_AFTER,
	TFH_SEEN_STARTS
};
struct tfh_seen_start {
	enum tfh_branch kind; /* NONE, or RUN in older digests: no such part */
	double wall_s;
	uint64_t samples;
	/* Shares of the part's wall time; less than 1 without samples. */
	double state[TFT_STATE_COUNT];
	struct tfh_start_line line[TFH_VERDICT_START_LINES]; /* the largest shares first */
	uint32_t n_line;
	const char *why; /* why samples or their lines are missing; NULL: they are not */
};

/* A line of Python in the samples of a run in which no call was recorded. */
struct tfh_sampled_line {
	const char *file, *function;
	uint32_t line;
	const char *callee; /* library function that it mostly calls; NULL: none */
	const char *callee_file;
	uint32_t callee_line;
	double share; /* of the main thread's time without `start_s` */
	uint64_t samples;
	enum tfh_cause cause; /* of most of its time */
	int state;	      /* enum tft_state, likewise */
};

/* The loop of Python whose iterations are the steps. file NULL: none was found. */
struct tfh_step_loop {
	const char *file, *function;
	uint32_t first, last; /* lines that were seen in it */
	uint64_t times;	      /* how often it was entered */
	bool exact;	      /* its iterations were counted, rather than estimated by time */
	bool counter;	      /* by a variable of the program, rather than by its iterator */
};

/* Where a main thread waits for the threads or processes that do the work, and for how much of its
 * time without imports. file NULL: it does not, the work is its own. */
struct tfh_pool_wait {
	const char *file, *function;
	uint32_t line;
	double share;
};

/* A run in which no call was recorded: what samples of its main thread show, taken from outside by
 * `tfhook run`; if that only waits for `workers`, what samples of these show. Shares are of this
 * time without `start_s`. */
struct tfh_sampled {
	uint64_t samples; /* 0: calls were recorded */
	uint32_t pid;
	double wall_s; /* of the process, as far as it was sampled */
	/* Starting and ending the interpreter, importing modules, what is before and after the loop
	 * over steps, and compiling that is over in its first iterations or in the first half. */
	double start_s;
	bool compiles_first; /* some of it is compiling */
	double state[TFT_STATE_COUNT];
	double released; /* running without Python's lock: native code that computes */
	double cause[TFH_CAUSE_COUNT];
	double traced; /* share of host.compile later in the run that only traces JAX */
	struct tfh_sampled_line line[TFH_VERDICT_START_LINES]; /* the largest shares first */
	uint32_t n_line;
	/* The innermost function of the program with most of the time, and the lines of it that
	 * were seen, where a loop may be; NULL: none. Of no use if `loop` is known. */
	const char *file, *function;
	uint32_t first, last;
	struct tfh_step_loop loop;
	struct tfh_pool_wait pool;
	bool jax;	 /* JAX was seen at work */
	const char *why; /* why lines are missing; NULL: they are not */
};

/* Compiling that samples show in the whole run; if the verdict is about compiling in every step,
 * outside of the judged steps. */
struct tfh_compiling {
	double s[TFH_SEGMENT_COUNT]; /* by where it happened; STARTUP: before the first step */
	uint64_t samples;
	uint64_t times;		     /* steps, and intervals between them, in which it was seen */
	const char *file, *function; /* the line that caused most of it; NULL: none is known */
	uint32_t line;
	const char *callee_file; /* of the compiler's function that it called; NULL: unknown */
};

/* Whether the steps of the verdict wait for requests. */
enum tfh_serves { TFH_SERVES_NOT, TFH_SERVES_MAYBE, TFH_SERVES };

/* Time for which threads of the job were ready to run without a CPU. */
struct tfh_contended {
	double share, s_per_step; /* of the judged steps; 0: none */
	/* Mean number of CPUs: those of the machine that were busy, and those that the job's
	 * processes used; NAN: not known */
	double busy, own;
};

/* Further findings for the sentences of a report (report/words). Times are seconds of a judged step
 * unless stated otherwise; NAN: not known. */
struct tfh_findings {
	bool cpu_only;	       /* no device was used */
	bool torch;	       /* PyTorch's ranges were recorded */
	bool graphs;	       /* TensorFlow executes functions, and hardly any op by itself */
	bool imported;	       /* the trace of another profiler */
	bool device_times;     /* there are some, maybe not of the judged steps */
	bool input_visible;    /* calls of an input pipeline were seen */
	bool mixed_copies;     /* waits for queued copies and kernels together take 5 % */
	bool queued_functions; /* most of host.callback is functions that streams ran */
	bool replays;	       /* most launches are of graphs that were captured */
	uint32_t threads_turn; /* tfh_threads_in_turn() */
	uint32_t devices_turn; /* devices that take turns: most of host.sync; 0: they do not */
	/* Most copies from pinned memory that block began only when the kernels before them had
	 * ended, because their stream waits for an event. */
	bool copies_held;
	/* the program waits for functions of its own that a library's threads call */
	bool calls_back;
	/* A child process answers the program at the same lines: that work of both, s per
	 * step. 0: no. */
	double both_s;
	double cause_s[TFH_CAUSE_COUNT];
	struct tfh_retraced retraced;
	double kernel_share; /* part of the job's CPU time spent in the kernel; 0: not much */
	enum tfh_cause input_cause;
	/* The thread that asks a loader's workers for batches does most of what they take. */
	bool asker_works;
	uint32_t made_anew; /* kernels of one name that replaced each other; 0: none */
	/* Each step starts the input pipeline anew: an iterator is made for its batch. */
	bool restarts;
	/* The input pipeline's work before a cache that keeps nothing, per step; 0: none. */
	double uncached_s;
	bool supposed;	  /* that the thread which the steps wait for makes batches */
	double graph_ran; /* share of the graph's execution in which the process had a CPU */
	double code_ran;  /* the same of the pauses between calls */
	struct tfh_seen_sum seen;  /* samples of the judged steps */
	struct tfh_seen_line line; /* the line with most of the verdict's cause */
	/* The line that makes a pool of processes or threads anew in many steps, with what starting
	 * and ending it takes; file NULL: none. */
	struct tfh_seen_line new_pool;
	struct tfh_seen_node *node; /* a parent before its children */
	uint32_t n_node;
	struct tfh_computed computed; /* all 0: not known */
	bool host_guessed;	      /* too few samples show what the host's time of steps is */
	struct tfh_seen_workers workers;
	struct tfh_copied_again again;
	enum tfh_serves serves;
	struct tfh_seen_start start[TFH_SEEN_STARTS];
	struct tfh_compiling compiling;
	struct tfh_sampled sampled;
	struct tfh_call_site wait, alloc, load;
	/* Where pauses between calls end: a line of Python, without fn. If `around`, in a program
	 * without Python, it is the call that ends most of the verdict's pauses, if known;
	 * `before`: the one in front of them. */
	struct tfh_call_site pause, before;
	bool around;
	/* for host.python or host.code; for causes without a sum of their own;
	 * for the verdict's cause */
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
	struct tfh_slow_found slow;
	struct {
		double pages, cost_s; /* pages 0: too few to report */
	} fault;		      /* memory taken from the kernel again and again */
	struct tfh_machine_findings machine;
	struct tfh_contended contended;
	uint64_t priced;	 /* settings that cost time: base/priced.def, as bits */
	double others_compute_s; /* compute time: the median of the other ranks */
	uint32_t pid;		 /* of the judged process */
	uint32_t unnumbered;	 /* ranks that no launcher numbers, found by their exchanges */
	uint32_t unjudged;	 /* other processes without a rank that made about as many calls */
	uint32_t in_turn;	 /* of these, those that ran before or after it */
	uint32_t alike; /* of these, those that run the same program and made as many calls */
};

#endif
