/*
 * The report as one page of HTML that needs nothing else: no request, no script to be read. Everything that `--json` tells
 * stands in tables, in the words of the first screen; the script draws what the tables hold, and the timelines of a few steps.
 *
 *	html.c		escapes, tables, cells
 *	sheet.c		the page around the sections, their order
 *	sheet_*.c	the sections; sheet_drawing.c: what the script draws
 *	along.c	steps sorted and in points; courses.c	steps of each rank along the run
 *	page.css page.js timeline.js	what it looks like, and what it does
 */
#ifndef TFH_REPORT_SHEET_H
#define TFH_REPORT_SHEET_H

#include <stdio.h>

#include "judge/chain.h"
#include "judge/drawn.h"
#include "report/report.h"

/* A step whose timeline the page shows. */
struct tfh_shown_step {
	const char *kind; /* "slow", "median", "fast" */
	const struct tfh_step *step;
	struct tfh_chain chain;
	struct tfh_drawn drawn;
};
#define TFH_SHOWN_STEPS 3u

struct tfh_shown {
	struct tfh_shown_step step[TFH_SHOWN_STEPS];
	uint32_t n;
};

/* Chooses a slow, a median and a fast step for a struct tfh_shown, as tfh_wish.choose does, their drawings to be filled likewise. Free
 * them with tfh_shown_free(). */
struct tfh_chain *tfh_shown_choose(void *shown, const struct tfh_result *r);
void tfh_shown_free(struct tfh_shown *shown);

/* Writes the page; `courses`: of several ranks, else NULL. 0 or a negative errno; the stream belongs to the caller, who checks it
 * for errors afterwards. */
struct tfh_courses;
int tfh_report_page(FILE *out, struct tfh_wording *words, const struct tfh_shown *shown,
		    const struct tfh_courses *courses);

/* Whether a file that begins so is such a page. */
bool tfh_is_page(const char *begin);

#endif
