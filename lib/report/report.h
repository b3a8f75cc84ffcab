/*
 * Prints a result (judge/result.h) and its sentences (report/words/words.h) as text, as JSON
 * (schema tfhook.report/1), and step by step. The stream belongs to the caller, who checks it for
 * errors afterwards.
 */
#ifndef TFH_REPORT_H
#define TFH_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "judge/result.h"
#include "report/words/words.h"

struct tfh_style {
	bool color; /* never the only sign: coloured text also says it */
	bool utf8;  /* bars of block characters */
	bool wide;  /* names in full */
};

/* The report as text; the first screen fits 80 columns. */
void tfh_report_text(FILE *out, const struct tfh_wording *words, const struct tfh_style *style);

/* Two to five lines, each starting with `prefix`: verdict, evidence, gain. If the job did not end
 * well, first how it ended and which calls were in flight. */
void tfh_report_verdict(FILE *out, const struct tfh_wording *words, const struct tfh_style *style,
			const char *prefix);

/* One document of schema tfhook.report/1. Returns 0 or -errno. */
int tfh_report_json(FILE *out, const struct tfh_wording *words);

/* One line per step. */
void tfh_report_steps_text(FILE *out, const struct tfh_result *r);
void tfh_report_steps_csv(FILE *out, const struct tfh_result *r);
int tfh_report_steps_json(FILE *out, const struct tfh_result *r);

/* Python lines sampled between the threads' calls: as a tree by time, and as folded stacks
 * ("outer;inner microseconds per step") for flame graphs. Worker processes come behind the
 * job's own threads, folded below "(workers)". */
void tfh_report_where_text(FILE *out, const struct tfh_result *r, const struct tfh_style *style);
void tfh_report_where_folded(FILE *out, const struct tfh_result *r);

/* The rank of a process; -1 if it has none or there is only one. */
int32_t tfh_report_rank(const struct tfh_result *r, uint32_t process);

/* What a call in flight may be waiting for: if it waits for a stream, that stream's last kernel.
 * NULL if unknown. */
const struct tfh_last_launch *tfh_report_last(const struct tfh_result *r,
					      const struct tfh_in_flight *open);

#endif
