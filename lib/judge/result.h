/*
 * What the analysis found in a run: the one structure that every report prints. Mirrors the JSON
 * schema tfhook.report/1 field by field. Seconds and shares are doubles; NAN means "not measured"
 * and is printed as null or n/a, never as 0. Strings belong to the result.
 */
#ifndef TFH_JUDGE_RESULT_H
#define TFH_JUDGE_RESULT_H

#include "judge/result_findings.h"
#include "judge/result_steps.h"
#include "judge/result_tables.h"
#include "model/model.h"

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
	/* In order of time; NULL if the ranks were started once. */
	struct tfh_generation *generation;
	uint32_t n_generation;
	/* The verdict of everything that recurs: that of the steps (steady) unless something else
	 * costs more. */
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
	/* The step on a machine with a CPU for every thread; `remove` is not used. ceiling_speedup
	 * NAN: no thread waits for a CPU. */
	struct tfh_whatif uncrowded;
	struct tfh_place_gain place[TFH_PREDICT_PLACES];
	uint32_t n_place;
	uint32_t line_place;	      /* index + 1 in `place`: the one that contains found.line */
	struct tfh_part_of_run *tree; /* a parent before its parts; the run itself first */
	uint32_t n_tree;
	struct tfh_segment_sum segments[TFH_SEGMENT_COUNT];
	uint32_t n_segments;
	struct tfh_input_stage *input;
	uint32_t n_input;
	struct tfh_device_time *devices; /* in order of their numbers; empty without device times */
	uint32_t n_devices;
	struct tfh_kernel *kernels;
	uint32_t n_kernels;
	/* The most time first; empty without device times. */
	struct tfh_family_time families[TFH_FAMILY_COUNT];
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
	/* Read where several ranks are judged (ranks.c), and by no report: the step without that
	 * class and without waits for other ranks, from device times, NAN: unknown; and the line
	 * with most of the time in which all other ranks wait for this one alone. */
	double need_s[TFH_REMOVE_COUNT];
	struct tfh_seen_line late;
};

/* If the judged rank mostly waits for another one, which makes all others wait: that one. */
const struct tfh_rank *tfh_rank_waited_for(const struct tfh_result *r);
/* Seconds since the start of the judged process, of a time since the first record. */
double tfh_into_run(const struct tfh_result *r, double s);
/* The index of that kind in `recurring`, plus 1, as in `lead`; 0: it does not recur. */
uint32_t tfh_recurring_of(const struct tfh_result *r, enum tfh_segment kind);
/* Seconds a step that the busiest device of the process computes longer than its devices do on
 * average. */
double tfh_uneven_devices_s(const struct tfh_result *r);
/* The step if all devices of the process computed for the same time; NAN: they do, or they compute
 * in succession, or there is only one. */
double tfh_even_devices_s(const struct tfh_result *r);
/* Whether most steps instantiate a graph, rather than launch the one they have. */
bool tfh_makes_graphs(const struct tfh_result *r);
void tfh_result_free(struct tfh_result *r);

#endif
