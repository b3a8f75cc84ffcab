/*
 * What changed from one run, or group of runs, to another, and how sure that is. Both are read from
 * digests. Seconds are per step unless stated otherwise; NAN: unknown.
 *
 * A run's steps are cut into consecutive blocks. Each block counts with the mean of the middle half
 * of its steps by length, which a crowded machine or a rare event hardly changes. Block means are
 * nearly independent, although neighbouring steps are not (batch means: Schmeiser 1982, Batch size
 * effects in the analysis of simulation output). The estimate is the mean of the blocks without the
 * fastest and slowest fifth, with its standard error (Yuen 1974, The two-sample trimmed t for
 * unequal population variances). The correlation that neighbouring blocks still have widens the
 * error by the factor for a first-order process.
 *
 * Two runs of the same program differ by more than their steps show (Kalibera and Jones 2013,
 * Rigorous benchmarking in reasonable time). So if a side has one or two runs, DIFF_RUN_SHARE is
 * added to its error, or the effect of other work on the machine, if that is larger. That effect is
 * the time that its steps waited for processors, half of which may be in the usual steps; in short
 * runs, it is the time that long steps take beyond usual ones.
 *
 * The mean of all steps is compared, too, for changes that only a few steps have. There, the whole
 * waiting time counts.
 */
#ifndef TFH_DIFF_DIFF_H
#define TFH_DIFF_DIFF_H

#include <stdbool.h>
#include <stdio.h>

#include "digest/digest.h"

/* Parts of a step: the causes, then these. */
enum {
	TFH_DIFF_COMPUTE = TFH_CAUSE_COUNT,
	TFH_DIFF_REST, /* unattributed */
	TFH_DIFF_STEP, /* the whole step */
	TFH_DIFF_PARTS
};
/* "input.map", "compute", "unattributed", "step". */
const char *tfh_diff_part_name(int part);

/* Mean of each part in seconds, with its variance (NAN: too few steps) and degrees of freedom. */
struct tfh_diff_means {
	double mean_s[TFH_DIFF_PARTS], var[TFH_DIFF_PARTS];
	double df;
};

/* One side: runs of the same kind, and the interval to compare, in seconds since the run's
 * start. */
struct tfh_diff_side {
	struct tfh_run_digest **digest;
	uint32_t n;
	double from_s, to_s; /* to_s INFINITY: to the end */
	const char *name;
	/* filled by tfh_diff_make() */
	uint64_t steps;
	bool crowded;			  /* other work on the machine widens its interval */
	struct tfh_diff_means usual, all; /* usual steps; all of them */
};

struct tfh_diff_part {
	int part;
	double a_s, b_s, delta_s;
	double off_s; /* half the width of the 95 % confidence interval */
	bool found;   /* significant, allowing for the number of parts compared */
};

enum tfh_diff_how { TFH_DIFF_CAME, TFH_DIFF_WENT, TFH_DIFF_CHANGED };

/* A Python function, with the line that takes the most time, or a kernel. */
struct tfh_diff_item {
	enum tfh_diff_how how;
	const char *name, *file; /* file: NULL for a kernel */
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
	bool same_run;		   /* both sides are intervals of one run */
	struct tfh_diff_part step; /* usual steps */
	struct tfh_diff_part mean; /* all steps, and the part that changed most */
	int mean_part;
	struct tfh_diff_part part[TFH_DIFF_STEP]; /* the largest change first */
	uint32_t n_part;
	struct tfh_diff_item line[TFH_DIFF_ITEMS], kernel[TFH_DIFF_ITEMS];
	uint32_t n_line, n_kernel;
	struct tfh_diff_fact fact[TFH_DIFF_FACTS];
	uint32_t n_fact;
	/* Time before the usual steps, and of the whole run; means of the side's runs. */
	double before_s[2], run_s[2];
	bool other_judge; /* the digests come from different judges */
};

/* Fills everything after `side`. The caller keeps the digests, which must outlive the result. 0, or
 * -errno with `err`; -ENODATA: a side has no steps. */
int tfh_diff_make(struct tfh_run_diff *d, struct tfh_err *err);

/* Whether there are enough steps to say how sure a change is. */
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
	bool share; /* a share of side A's step, else seconds */
	double value;
};
/* 0, or -EINVAL with `err`. */
int tfh_diff_limit_parse(const char *text, struct tfh_diff_limit *out, struct tfh_err *err);
enum tfh_diff_answer { TFH_DIFF_WITHIN, TFH_DIFF_BEYOND, TFH_DIFF_UNSURE };
/* BEYOND: a change was found and is beyond the limit. UNSURE: its interval is too wide to tell. */
enum tfh_diff_answer tfh_diff_limit_check(const struct tfh_run_diff *d,
					  const struct tfh_diff_limit *l);

#endif
