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

struct tfh_page;

struct tfh_style {
	bool color;	  /* never the only sign: coloured text also says it */
	bool utf8;	  /* bars of block characters */
	bool wide;	  /* names in full */
	bool every;	  /* tables with all their rows */
	unsigned columns; /* of a line, 0: 80 */
	unsigned lines;	  /* of a row of the first screen, 0: as many as it takes */
};

/* The first screen: verdict, what is to blame, what to do next, how sure that is; at most
 * TFH_SCREEN_LINES lines of 80 columns or more (on narrower ones it takes what it takes). */
#define TFH_SCREEN_LINES 23 /* and the prompt behind them */
void tfh_report_screen(FILE *out, const struct tfh_wording *words, const struct tfh_style *style);

/* The whole report. */
void tfh_report_text(FILE *out, const struct tfh_wording *words, const struct tfh_style *style);

/* The parts of the whole report that can be asked for by name: all rows of one, or what says that there is nothing
 * to show. */
struct tfh_section {
	const char *name; /* of the option */
	const char *none;
	void (*print)(const struct tfh_page *page);
};
extern const struct tfh_section tfh_sections[];
extern const size_t tfh_section_count;
void tfh_report_section(FILE *out, const struct tfh_wording *words, const struct tfh_style *style,
			const struct tfh_section *section);

/* The head of the first screen, each line starting with `prefix`: how the job ended if not well, verdict, gain,
 * what to do first. */
void tfh_report_verdict(FILE *out, const struct tfh_wording *words, const struct tfh_style *style,
			const char *prefix);

/* One document of schema tfhook.report/1. Returns 0 or -errno. */
int tfh_report_json(FILE *out, const struct tfh_wording *words);

/* The step of that number, NULL: there is none; where it went, beside a usual one. */
const struct tfh_step *tfh_report_step(const struct tfh_result *r, uint64_t index);
void tfh_report_step_text(FILE *out, const struct tfh_result *r, const struct tfh_step *step);

/* A step of the verdict's class that takes as long as the median, NULL: there is none. */
const struct tfh_step *tfh_report_median_step(const struct tfh_result *r);
/* What a step waited for, as a chain with times; style->every: without putting short links together. 0 or -ENOMEM. */
struct tfh_chain;
int tfh_report_chain(FILE *out, struct tfh_wording *words, const struct tfh_style *style,
		     const struct tfh_step *step, const struct tfh_chain *chain);

/* Whether tfh_report_why() knows a topic: gain, verdict, tier, a cause; how that figure came about. */
bool tfh_report_topic(const char *name);
void tfh_report_why(FILE *out, const struct tfh_wording *words, const struct tfh_style *style,
		    const char *topic);

/* One line per step. */
void tfh_report_steps_text(FILE *out, const struct tfh_result *r);
void tfh_report_steps_csv(FILE *out, const struct tfh_result *r);
int tfh_report_steps_json(FILE *out, const struct tfh_result *r);

/* Python lines sampled between the threads' calls: as a tree by time, and as folded stacks
 * ("outer;inner microseconds per step") for flame graphs. Worker processes come behind the
 * job's own threads, folded below "(workers)". */
void tfh_report_where_text(FILE *out, const struct tfh_result *r, const struct tfh_style *style);
void tfh_report_where_folded(FILE *out, const struct tfh_result *r);

/* The name of a job, by its command of at least one word: its script or module, else its program. */
const char *tfh_report_job(const char *const *argv, uint32_t argc);

/* The rank of a process; -1 if it has none or there is only one. */
int32_t tfh_report_rank(const struct tfh_result *r, uint32_t process);

/* What a call in flight may be waiting for: if it waits for a stream, that stream's last kernel.
 * NULL if unknown. */
const struct tfh_last_launch *tfh_report_last(const struct tfh_result *r,
					      const struct tfh_in_flight *open);

#endif
