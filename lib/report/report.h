/*
 * Prints a result (judge/result.h) and its sentences (report/words/words.h) as text, as JSON
 * (schema tfhook.report/1), and step by step. The stream belongs to the caller, who checks it for
 * errors afterwards.
 */
#ifndef TFH_REPORT_REPORT_H
#define TFH_REPORT_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "judge/result.h"
#include "report/words/words.h"

struct tfh_page;

struct tfh_style {
	bool color;	  /* never the only sign: the text says the same */
	bool utf8;	  /* bars of block characters */
	bool wide;	  /* names in full */
	bool every;	  /* all rows of tables */
	unsigned columns; /* width of a line, 0: 80 */
	unsigned rows;	/* of the first screen at most, if more than TFH_SCREEN_LINES; 0: unknown */
	unsigned lines; /* lines per row of the first screen, 0: as many as needed */
};

/* The first screen: the verdict, what is to blame, what to do next, and the confidence. At most
 * TFH_SCREEN_LINES lines of 80 columns or more, or style->rows if these are more; on narrower
 * screens it may take more. */
#define TFH_SCREEN_LINES 23 /* plus the prompt */
void tfh_report_screen(FILE *out, const struct tfh_wording *words, const struct tfh_style *style);

/* The whole report. */
void tfh_report_text(FILE *out, const struct tfh_wording *words, const struct tfh_style *style);

/* The parts of the whole report that can be requested by name. Each prints all of its rows, or says
 * that there is nothing to show. */
struct tfh_section {
	const char *name; /* of the option */
	const char *none;
	void (*print)(const struct tfh_page *page);
};
extern const struct tfh_section tfh_sections[];
extern const size_t tfh_section_count;
void tfh_report_section(FILE *out, const struct tfh_wording *words, const struct tfh_style *style,
			const struct tfh_section *section);

/* The start of the first screen, each line starting with `prefix`: how the job ended if not
 * normally, the verdict, the gain, and what to do first. */
void tfh_report_verdict(FILE *out, const struct tfh_wording *words, const struct tfh_style *style,
			const char *prefix);

/* One document of schema tfhook.report/1. Returns 0 or -errno. */
int tfh_report_json(FILE *out, const struct tfh_wording *words);

/* The step of that number (NULL: there is none); where its time went, beside a usual step. */
const struct tfh_step *tfh_report_step(const struct tfh_result *r, uint64_t index);
void tfh_report_step_text(FILE *out, const struct tfh_result *r, const struct tfh_step *step);

/* A step of the verdict's class with the median length; NULL: there is none. */
const struct tfh_step *tfh_report_median_step(const struct tfh_result *r);
/* What a step waited for, as a chain with times. style->every: every link gets its own row. 0 or
 * -ENOMEM. */
struct tfh_chain;
int tfh_report_chain(FILE *out, struct tfh_wording *words, const struct tfh_style *style,
		     const struct tfh_step *step, const struct tfh_chain *chain);

/* Whether tfh_report_why() knows a topic (gain, verdict, tier, or a cause); explains how that
 * figure was computed. */
bool tfh_report_topic(const char *name);
void tfh_report_why(FILE *out, const struct tfh_wording *words, const struct tfh_style *style,
		    const char *topic);

/* One line per step. */
void tfh_report_steps_text(FILE *out, const struct tfh_result *r);
void tfh_report_steps_csv(FILE *out, const struct tfh_result *r);
int tfh_report_steps_json(FILE *out, const struct tfh_result *r);

/* Python lines sampled between the threads' calls: as a tree by time, and as folded stacks
 * ("outer;inner microseconds per step") for flame graphs. Worker processes come after the job's own
 * threads, folded below "(workers)". */
void tfh_report_where_text(FILE *out, const struct tfh_result *r, const struct tfh_style *style);
void tfh_report_where_folded(FILE *out, const struct tfh_result *r);

/* The name of a job, from its command of at least one word: its script or module, else its program,
 * after programs that only start it (`timeout`, `nice`, `env`). Valid until the thread's next
 * call. */
const char *tfh_report_job(const char *const *argv, uint32_t argc);
/* Whether the command runs the job under `timeout`. */
bool tfh_report_timed(const char *const *argv, uint32_t argc);

/* The rank of a process; -1 if it has none or there is only one. */
int32_t tfh_report_rank(const struct tfh_result *r, uint32_t process);

/* What a call in flight may be waiting for: if it waits for a stream, that stream's last kernel.
 * NULL if unknown. */
const struct tfh_last_launch *tfh_report_last(const struct tfh_result *r,
					      const struct tfh_in_flight *open);

#endif
