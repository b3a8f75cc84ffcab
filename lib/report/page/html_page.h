/*
 * The report as one HTML page that needs nothing else: it makes no requests, and it can be read
 * without scripts. It has everything that `--json` has, as tables, with the words of the first
 * screen. The script draws the contents of the tables and the timelines of a few steps.
 *
 *	html.c		escapes, tables, cells
 *	html_page.c	the page around the sections, their order
 *	page_*.c	the sections; page_drawing.c: data for the script
 *	along.c		steps sorted and as points
 *	curves.c	steps of each rank along the run
 *	page.css page.js timeline.js	the page's style and scripts
 */
#ifndef TFH_REPORT_PAGE_HTML_PAGE_H
#define TFH_REPORT_PAGE_HTML_PAGE_H

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

/* Chooses a slow, a median and a fast step for a struct tfh_shown, as a callback for
 * tfh_steps_wanted.choose; their drawings are filled in the same pass. Free them with
 * tfh_shown_free(). */
struct tfh_chain *tfh_shown_choose(void *shown, const struct tfh_result *r);
void tfh_shown_free(struct tfh_shown *shown);

/* Writes the page. `curves`: NULL unless there are several ranks. 0 or a negative errno. The stream
 * belongs to the caller, who checks it for errors afterwards. */
struct tfh_curves;
int tfh_report_page(FILE *out, struct tfh_wording *words, const struct tfh_shown *shown,
		    const struct tfh_curves *curves);

/* Writes the begin of a page, up to and with <body>. */
void tfh_page_top(FILE *out, const char *title);

/* Whether a file that begins with this text is such a page. */
bool tfh_is_page(const char *begin);

#endif
