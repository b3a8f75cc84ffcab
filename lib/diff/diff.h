/*
 * What changed from one run, or group of runs, to another, read from their digests, and how sure that is. Seconds are per step
 * unless they say otherwise; NAN: not known.
 *
 * A run's steps are cut into consecutive blocks; of each the mean of the middle half of its steps is taken, by their length: what a
 * crowded machine or a rare event does to single steps hardly moves it. Means of blocks hardly depend on each other though
 * neighbouring steps do (batch means: Schmeiser 1982, Batch size effects in the analysis of simulation output). Of them the mean
 * without the fastest and slowest fifth is taken, with its error (Yuen 1974, The two-sample trimmed t for unequal population
 * variances). What blocks still have in common with their neighbours widens the error by the ratio for a first-order process; and two
 * runs of the same program differ by more than their steps tell (Kalibera and Jones 2013, Rigorous benchmarking in reasonable
 * time), so that where a side has one run or two, DIFF_RUN_SHARE is added to it, or what other work on the machine did to its
 * steps, if that is more: their waiting for processors, half of which may be in the usual ones; in short runs what long steps take beyond
 * usual ones. The mean of all steps is compared beside it, for what only few steps do; there, all of that waiting counts.
 */
#ifndef TFH_DIFF_H
#define TFH_DIFF_H

#include <stdbool.h>
#include <stdio.h>

#include "digest/digest.h"

/* Parts of a step: the causes, then these. */
enum {
	TFH_DIFF_COMPUTE = TFH_CAUSE_COUNT,
	TFH_DIFF_REST, /* unattributed */
	TFH_DIFF_STEP, /* all of them */
	TFH_DIFF_PARTS
};
/* "input.map", "compute", "unattributed", "step". */
const char *tfh_diff_part_name(int part);

/* Means of a part in seconds, and how sure: variance (NAN with too few steps) and degrees of freedom. */
struct tfh_diff_means {
	double mean_s[TFH_DIFF_PARTS], var[TFH_DIFF_PARTS];
	double df;
};

/* One side: runs of the same kind, and the interval of them to look at, seconds since the run's start. */
struct tfh_diff_side {
	struct tfh_run_digest **digest;
	uint32_t n;
	double from_s, to_s; /* to_s INFINITY: to the end */
	const char *name;
	/* filled by tfh_diff_make() */
	uint64_t steps;
	bool crowded;			  /* other work on the machine makes its interval wide */
	struct tfh_diff_means usual, all; /* usual steps; all of them */
};

struct tfh_diff_part {
	int part;
	double a_s, b_s, delta_s;
	double off_s; /* half of the interval that holds the change with 95 % */
	bool found;   /* chance does not explain it, though all parts were looked at */
};

enum tfh_diff_how { TFH_DIFF_CAME, TFH_DIFF_WENT, TFH_DIFF_CHANGED };

/* A function of Python, at the line of it that takes most, or a kernel. */
struct tfh_diff_item {
	enum tfh_diff_how how;
	const char *name, *file; /* file: NULL of a kernel */
	uint32_t line;
	double a_s, b_s, off_s;	 /* NAN: no times; off_s as above, NAN: not known */
	double a_calls, b_calls; /* kernels */
};

/* A fact that differs; NULL: absent. */
struct tfh_diff_fact {
	const char *name, *a, *b;
};

#define TFH_DIFF_ITEMS 64u
#define TFH_DIFF_FACTS 256u

struct tfh_run_diff {
	struct tfh_diff_side side[2];
	bool same_run;		   /* two intervals of it */
	struct tfh_diff_part step; /* usual ones */
	struct tfh_diff_part mean; /* of all steps, and the part of it that changed most */
	int mean_part;
	struct tfh_diff_part part[TFH_DIFF_STEP]; /* the largest change first */
	uint32_t n_part;
	struct tfh_diff_item line[TFH_DIFF_ITEMS], kernel[TFH_DIFF_ITEMS];
	uint32_t n_line, n_kernel;
	struct tfh_diff_fact fact[TFH_DIFF_FACTS];
	uint32_t n_fact;
	double before_s[2],
		run_s[2]; /* before the usual steps, and all of the run; in all, means of the runs */
	bool other_judge; /* the digests were made by different ones */
};

/* Fills what follows `side`, whose digests stay the caller's and must outlive it. 0, or -errno with `err`; -ENODATA: a side has no
 * steps. */
int tfh_diff_make(struct tfh_run_diff *d, struct tfh_err *err);

/* Whether the steps are long enough in number to say how sure a change is. */
bool tfh_diff_is_measured(const struct tfh_run_diff *d);

/* ---- text and JSON ---- */

/* One screen of `columns` (0: 80); `all`: every row. */
void tfh_diff_text(FILE *out, const struct tfh_run_diff *d, unsigned columns, bool all);
/* One document of schema tfhook.diff/1 (docs/diff.schema.json). 0 or -errno. */
int tfh_diff_json(FILE *out, const struct tfh_run_diff *d);

/* ---- limits: 'step>+5%', 'mean>+5%' (of all steps), 'input.map>1ms', 'step<-2%' ---- */

struct tfh_diff_limit {
	int part;   /* TFH_DIFF_PARTS: the mean of all steps */
	bool above; /* '>', else '<' */
	bool share; /* of side A's step, else seconds */
	double value;
};
/* 0, or -EINVAL with `err`. */
int tfh_diff_limit_parse(const char *text, struct tfh_diff_limit *out, struct tfh_err *err);
enum tfh_diff_answer { TFH_DIFF_WITHIN, TFH_DIFF_BEYOND, TFH_DIFF_UNSURE };
/* BEYOND: a change was found and is beyond the limit. UNSURE: its interval is too wide to tell. */
enum tfh_diff_answer tfh_diff_limit_check(const struct tfh_run_diff *d,
					  const struct tfh_diff_limit *l);

#endif
