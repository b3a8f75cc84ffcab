/*
 * The fifth phase: class and cause of the run, what else its steps show, the comparison of several
 * ranks, and the tables of the report.
 */
#ifndef TFH_JUDGE_VERDICT_VERDICT_H
#define TFH_JUDGE_VERDICT_VERDICT_H

#include "judge/predict/predict.h"

/* borne_out.c: how well samples of the threads support the cause of a host-bound verdict */
enum tfh_borne_out {
	TFH_BORNE_OUT,
	TFH_BORNE_OUT_AS_OPS, /* samples may as well show ops with which the program computes */
	TFH_BORNE_OUT_HARDLY, /* samples show another cause of the class nearly as often */
	TFH_BORNE_OUT_NOT,    /* too few samples show the cause, or it is host.unknown */
};
enum tfh_borne_out tfh_borne_out(const struct tfh_accounts *accounts, enum tfh_cause cause);
/* Whether the cause is waiting for batches although samples mostly show a wait for another thread
 * of the process, and no thread or process that makes batches. That thread may as well take
 * results, and hand back memory for the next ones. */
bool tfh_is_supposed(const struct tfh_accounts *accounts, enum tfh_cause cause);

/* classify.c: the class and the cause of the steps. 0 or -ENOMEM. */
int tfh_classify(const struct tfh_accounts *accounts, struct tfh_result *r);
/* reclassify.c: runs after the what-ifs and needs device times and calls. Removing the class that
 * blocks most may gain nothing, as with code that runs while another thread or process makes the
 * next batch. Then another class becomes the verdict, also of the steps that it blocks, if it
 * blocks at least 5 % and at least half as much, and its removal gains at least 5 %. A class that
 * blocks less than half as much does not: the replay may not know everything that waits for the
 * first. Otherwise a class that blocks little, and whose removal likely gains too little, gives way
 * to computing that takes most of the step. 0 or -ENOMEM. */
int tfh_prefer_gain(const struct tfh_accounts *accounts, struct tfh_result *r);
/* class_cause.c: the cause of computing of which nothing more specific is known. */
enum tfh_cause tfh_plain_computing(const struct tfh_facts *facts);

/* changes.c: when steps became slower or faster. 0 or -ENOMEM. */
int tfh_find_changes(const struct tfh_accounts *accounts, struct tfh_result *r);
/* recurring.c: what recurs in the run, and the verdict of all of it.
 * Runs after the verdict of the steps is final. */
void tfh_find_recurring(const struct tfh_accounts *accounts, double last_gap_s,
			struct tfh_result *r);
/* Once it is known how the run ended: lowers the confidence if the verdict is on hardly any of a
 * run that was killed. */
void tfh_doubt_killed(struct tfh_result *r);
/* last_gap.c: seconds after the last step that are one more of the gaps between loops. */
double tfh_last_gap_s(const struct tfh_accounts *accounts);
/* run_parts.c: makes r->tree agree with the steps. Runs after the causes of loops are known.
 * 0 or -ENOMEM. */
int tfh_settle_tree(const struct tfh_accounts *accounts, double last_gap_s, struct tfh_result *r);
/* step_counts.c: how many segments of each kind there are, and their times. Runs after what recurs
 * is known. */
void tfh_fill_segments(const struct tfh_accounts *accounts, double last_gap_s,
		       struct tfh_result *r);

/* machine_findings.c: what samples of the machine show for the whole run */
void tfh_find_machine(const struct tfh_run *run, struct tfh_result *r);

/* seen_lines.c: lines of Python. `all_steps`: the one through which all steps run, if none tells
 * more. 0 or -ENOMEM. */
int tfh_find_lines(const struct tfh_accounts *accounts, struct tfh_result *r,
		   struct tfh_seen_line *all_steps);
/* call_lines.c: the line of the calls that the verdict is about, where no sample gave one. Runs
 * after tfh_find_lines(). 0 or -ENOMEM. */
int tfh_find_call_lines(const struct tfh_accounts *accounts, struct tfh_result *r);
/* late_lines.c: what this rank does while all others wait for it alone. */
void tfh_find_late_line(const struct tfh_accounts *accounts, struct tfh_result *r);
/* callers.c: the line that calls a wrapper around the driver, instead of that in the wrapper. Runs
 * after what needs the innermost line. 0 or -ENOMEM. */
int tfh_find_callers(const struct tfh_accounts *accounts, struct tfh_result *r);
/* computed.c: the parts of what is computed on the CPU. Needs r->breakdown. 0 or -ENOMEM. */
int tfh_find_computed(const struct tfh_accounts *accounts, struct tfh_result *r);
/* stage_lines.c: the lines that make the stages of the pipeline; that of the slow one leads where
 * what it runs has none. Runs after tfh_find_workers(). */
void tfh_find_stage_lines(const struct tfh_accounts *accounts, struct tfh_result *r);
/* The line at which batches are asked for, where nothing else of a verdict about input has one.
 * Runs after tfh_find_workers(). */
int tfh_find_asked_line(const struct tfh_accounts *accounts, struct tfh_result *r);
/* worker_lines.c: lines of the child processes that make batches. 0 or -ENOMEM. */
int tfh_find_workers(const struct tfh_accounts *accounts, struct tfh_result *r);
/* uneven_devices.c: computing for unequal times is a cause of its own. Needs the tables. */
void tfh_find_uneven_devices(struct tfh_result *r);
/* new_pools.c: a pool that is made anew in many steps. 0 or -ENOMEM. */
int tfh_find_new_pools(const struct tfh_accounts *accounts, struct tfh_result *r);
/* lock_holder.c: who holds the mutex that the steps wait for, and the line that asks for it. Runs
 * after tfh_find_workers(). */
void tfh_find_lock_holder(const struct tfh_accounts *accounts, struct tfh_result *r);
/* more_workers.c: how many workers would keep up. Needs the steps, breakdown and verdict of r. */
struct tfh_making {
	uint32_t workers; /* that work at the same time; 0: the training thread makes its batches */
	double work_s;	  /* of one worker for the batches of a step; NAN: not known */
	double running;	  /* share of work_s in which the worker runs on a processor */
};
/* Mean duration of a judged step in seconds. */
double tfh_mean_step_s(const struct tfh_result *r);
void tfh_more_workers(const struct tfh_accounts *accounts, const struct tfh_making *seen,
		      struct tfh_result *r);
/* start_lines.c: what samples show outside the steps. Needs r->tree. 0 or -ENOMEM. */
int tfh_find_start(const struct tfh_accounts *accounts, struct tfh_result *r);
/* The innermost frame of the program's own code, else the outermost one with a file. What the
 * interpreter does before it runs the program starts in its site module and counts for that. */
uint32_t tfh_start_lead(const struct tfh_model_line *frame, uint32_t n);
/* Whether the line of frame `lead` imports something, itself or in a library that imports what it
 * needs when it is first used. *file: the outermost module being imported, if the sample shows
 * it. */
bool tfh_line_imports(const struct tfh_model_line *frame, uint32_t lead, const char **file);
/* sampled.c: for a run in which no call was recorded, the process to judge by its samples;
 * UINT32_MAX: none was sampled. Fills its verdict into a result without steps. 0 or -ENOMEM. */
uint32_t tfh_sampled_process(const struct tfh_feed *feed);
int tfh_find_sampled(const struct tfh_feed *feed, struct tfh_result *r);
/* compiled_lines.c: compiling besides what the verdict is about. Runs after the verdict is final.
 * 0 or -ENOMEM. */
int tfh_find_compiling(const struct tfh_accounts *accounts, struct tfh_result *r);
/* called_work.c: evaluations and time between loops that one line of a callback causes become one
 * cause. Runs before tfh_find_lines(). 0 or -ENOMEM. */
int tfh_find_called_work(const struct tfh_accounts *accounts, struct tfh_result *r);
/* serving.c: whether the job serves requests. Runs after verdict, tree and kernels are final. */
enum tfh_serves tfh_find_serving(const struct tfh_accounts *accounts, const struct tfh_result *r);
/* findings.c: facts that belong to no table. Runs after steps, segments and accounts are final. */
void tfh_find_rest(const struct tfh_accounts *accounts, struct tfh_result *r);

/* loop_causes.c: adds the causes of the steps to the tree, if they were requested */
void tfh_find_loop_causes(const struct tfh_accounts *accounts, struct tfh_result *r);

/* periodic.c: steps that are slow at regular intervals; if there are none, a few long ones */
void tfh_find_slow_steps(const struct tfh_accounts *accounts, struct tfh_result *r);

/* long_steps.c: the line of the program that these n steps, in order, spend their time at. */
struct tfh_slow_step_at {
	uint64_t index;
	double extra; /* seconds more than usual */
};
void tfh_find_slow_line(const struct tfh_accounts *accounts, const struct tfh_slow_step_at *slow,
			size_t n, struct tfh_result *r);
/* The line that has most of what steps take longer in one of two ranges. */
struct tfh_steps_at {
	size_t begin, end; /* indices */
	size_t n;	   /* training steps of these */
	double mean_s;	   /* of them */
};
void tfh_find_changed_line(const struct tfh_accounts *accounts, const struct tfh_result *r,
			   const struct tfh_steps_at *before, const struct tfh_steps_at *after,
			   struct tfh_change *out);

/* pattern.c: kinds of steps, and micro-steps */
void tfh_find_patterns(const struct tfh_accounts *accounts, struct tfh_result *r);

/* uncached.c: seconds per step that the input pipeline works before a cache that keeps nothing;
 * 0: there is none */
double tfh_uncached_s(const struct tfh_accounts *accounts);

/* discarded.c: spans whose records were discarded */
int tfh_fill_discarded(const struct tfh_accounts *accounts, struct tfh_result *r);

/* tables.c: copies, kernels, pipeline stages, start-up, the last launch of each stream */
int tfh_fill_tables(const struct tfh_accounts *accounts, struct tfh_result *r);
/* device_tables.c: rates of copies, kernels and their families, devices. 0 or -ENOMEM. */
int tfh_device_tables(const struct tfh_device *d, struct tfh_result *r);
/* Hidden time of copies and collectives: the busy time of their engines minus their blocking
 * time. */
void tfh_device_stages(const struct tfh_device *d, struct tfh_result *r);
int tfh_fill_input(const struct tfh_accounts *accounts, struct tfh_result *r);
void tfh_fill_startup(const struct tfh_accounts *accounts, struct tfh_result *r);
void tfh_fill_last(const struct tfh_accounts *accounts, struct tfh_result *r);

/* ranks.c */
uint32_t tfh_ranks_of(const struct tfh_feed *f, uint32_t process[TFH_VERDICT_RANKS]);
/* Returns the result of the critical rank, completed with what concerns all ranks; processes
 * without a number get their place in `r`. The caller keeps the others. */
int tfh_join_ranks(const struct tfh_feed *f, const struct tfh_matches *matches,
		   struct tfh_result **r, uint32_t n, struct tfh_result **out);

#endif
