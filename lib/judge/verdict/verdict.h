/*
 * The fifth phase: class and cause of the run, what else its steps show, several ranks, and the
 * tables of the report.
 */
#ifndef TFH_JUDGE_VERDICT_H
#define TFH_JUDGE_VERDICT_H

#include "judge/predict/predict.h"

/* borne_out.c: how well samples of the threads bear out what the cause of a host-bound verdict says */
enum tfh_borne_out {
	TFH_BORNE_OUT,
	TFH_BORNE_OUT_HARDLY, /* another cause of the class was seen nearly as often */
	TFH_BORNE_OUT_NOT,    /* too few samples saw it, or it is host.unknown */
};
enum tfh_borne_out tfh_borne_out(const struct tfh_accounts *accounts, enum tfh_cause cause);

/* classify.c */
int tfh_classify(const struct tfh_accounts *accounts, struct tfh_result *r);
/* After the what-ifs, with device times and calls: the class that blocks most may gain nothing by
 * being removed (code that runs while the next batch is made elsewhere); one that blocks 5 %, and
 * half as much, and gains 5 % is the verdict then, and of the steps that it blocks so. Less than
 * half speaks against the replay: it may not know all that waits for the first. -ENOMEM. */
int tfh_prefer_gain(const struct tfh_accounts *accounts, struct tfh_result *r);

/* changes.c: when steps became slower or faster. 0 or -ENOMEM. */
int tfh_find_changes(struct tfh_result *r);
/* recurring.c: what recurs, and the verdict of all of it. After the steps' verdict is final. */
void tfh_find_recurring(const struct tfh_accounts *accounts, struct tfh_result *r);

/* machine_findings.c: what samples say of the whole run */
void tfh_find_machine(const struct tfh_run *run, struct tfh_result *r);

/* findings.c: what belongs to no table. After steps, segments and accounts are final. */
/* seen_lines.c: lines of Python. 0 or -ENOMEM. */
int tfh_find_lines(const struct tfh_accounts *accounts, struct tfh_result *r);
/* call_lines.c: where no sample told the line, that of the calls which the verdict is about. After tfh_find_lines(). 0 or -ENOMEM. */
int tfh_find_call_lines(const struct tfh_accounts *accounts, struct tfh_result *r);
/* worker_lines.c: lines of child processes that make batches. 0 or -ENOMEM. */
int tfh_find_workers(const struct tfh_accounts *accounts, struct tfh_result *r);
/* more_workers.c: how many workers would keep up; r has its steps, breakdown and verdict. */
struct tfh_making {
	uint32_t workers; /* that work at a time, 0: the training thread makes its batches */
	double work_s;	  /* of one worker for a step's batches, NAN: not known */
	double running;	  /* share of that for which it runs on a processor */
};
/* Seconds of a judged step on average. */
double tfh_mean_step_s(const struct tfh_result *r);
void tfh_more_workers(const struct tfh_accounts *accounts, const struct tfh_making *seen,
		      struct tfh_result *r);
/* start_lines.c: what was seen before the first step; r->tree is there. 0 or -ENOMEM. */
int tfh_find_start(const struct tfh_accounts *accounts, struct tfh_result *r);
/* serving.c: after verdict, tree and kernels are final. */
enum tfh_serves tfh_find_serving(const struct tfh_accounts *accounts, const struct tfh_result *r);
void tfh_find_rest(const struct tfh_accounts *accounts, struct tfh_result *r);

/* loop_causes.c: fills in the tree what its steps' causes are, where they are asked for */
void tfh_find_loop_causes(const struct tfh_accounts *accounts, struct tfh_result *r);

/* periodic.c: steps that are slow in turn */
void tfh_find_periodic(struct tfh_result *r);

/* pattern.c: steps of several kinds, micro-steps */
void tfh_find_patterns(const struct tfh_accounts *accounts, struct tfh_result *r);

/* discarded.c: spans whose records were given up */
int tfh_fill_discarded(const struct tfh_accounts *accounts, struct tfh_result *r);

/* tables.c: copies, kernels, pipeline stages, start-up, what each stream was given last */
int tfh_fill_tables(const struct tfh_accounts *accounts, struct tfh_result *r);
int tfh_fill_input(const struct tfh_accounts *accounts, struct tfh_result *r);
void tfh_fill_startup(const struct tfh_accounts *accounts, struct tfh_result *r);
void tfh_fill_last(const struct tfh_accounts *accounts, struct tfh_result *r);

/* ranks.c */
uint32_t tfh_ranks_of(const struct tfh_feed *f, uint32_t process[TFH_VERDICT_RANKS]);
/* The critical rank's result, with what concerns all; others stay the caller's. */
int tfh_join_ranks(const struct tfh_feed *f, const struct tfh_matches *matches,
		   struct tfh_result **r, uint32_t n, struct tfh_result **out);

#endif
