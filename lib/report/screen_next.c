/* The first screen: what to do next, each with the run's time after that change alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "base/print.h"
#include "report/text_parts.h"

#define INDENT "    "

void tfh_next_becomes(const struct tfh_result *r, const struct tfh_advice *a, char *out,
		      size_t size)
{
	double whole = tfh_run_s(r), saved = tfh_run_saves(r, a->saved_s);
	char time[TFH_TEXT], factor[TFH_TEXT];

	out[0] = '\0';
	if (isnan(whole)) {
		whole = r->steps.total_s / (double)(r->steps.count ? r->steps.count : 1);
		saved = a->saved_s / (double)(r->steps.total ? r->steps.total : 1);
	}
	if (!(whole > saved) || !(saved >= TFH_REPORT_RUN_SHARE * whole))
		return;
	snprintf(out, size, "%s%s %s", a->how, tfh_fmt_time(time, whole - saved),
		 tfh_fmt_factor(factor, whole / (whole - saved)));
}

static bool has_gain(const struct tfh_result *r, const struct tfh_advice *a)
{
	char gain[80];

	tfh_next_becomes(r, a, gain, sizeof(gain));
	return *gain;
}

/* Whether the verdict's own advice comes first even if its gain is unknown. Not if the steps are
 * compute-bound and other advice saves more time than they compute; nor if the run was killed so
 * early that what it did before the steps is what matters. */
static bool leads(const struct tfh_wording *w)
{
	const struct tfh_result *r = w->r;
	double computing = r->breakdown[TFH_PART_COMPUTE].share * r->steps.total_s;
	bool less = true;

	if (r->end == TFH_END_SIGNAL && tfh_run_tells(r))
		return false;
	for (uint32_t i = 1; i < w->n_advice; i++)
		less &= !(w->advice[i].saved_s > computing && has_gain(r, &w->advice[i]));
	return less || r->steady.cls != TFH_CLASS_COMPUTE_BOUND ||
	       r->steady.cause == TFH_CAUSE_COMPUTE_CONTENTION;
}

/* Whether advice beside the verdict's is known to gain so little of the run that it is worth no row
 * of the first screen. */
static bool gains_little(const struct tfh_wording *w, const struct tfh_advice *a)
{
	double saved = tfh_run_saves(w->r, a->saved_s);

	return a != w->advice && saved > 0 && saved < TFH_BLOCKING_SHARE * tfh_run_s(w->r);
}

size_t tfh_next_order(const struct tfh_wording *w, const struct tfh_advice **order)
{
	enum { WITH_GAIN, UNKNOWN, LITTLE, RANKS } rank[TFH_REPORT_ADVICE];
	size_t n = 0;

	for (uint32_t i = 0; i < w->n_advice; i++)
		rank[i] = gains_little(w, &w->advice[i])		      ? LITTLE
			  : (!i && leads(w)) || has_gain(w->r, &w->advice[i]) ? WITH_GAIN
									      : UNKNOWN;
	for (int k = 0; k < RANKS; k++)
		for (uint32_t i = 0; i < w->n_advice; i++)
			if ((int)rank[i] == k)
				order[n++] = &w->advice[i];
	return n;
}

/* Text at the end of a line must not be far from what it refers to. */
static size_t last_column(const struct tfh_page *page)
{
	size_t columns = tfh_page_columns(page);

	return columns < TFH_PAGE_COLUMNS ? columns : TFH_PAGE_COLUMNS;
}

static void heading(const struct tfh_page *page, bool gains)
{
	static const char left[] = "DO NEXT";
	const char *right = !gains			? ""
			    : isnan(tfh_run_s(page->r)) ? "alone a step becomes"
							: "alone the run becomes";
	size_t columns = last_column(page);

	tfh_heading(page, "%s%*s", left, *right ? (int)(columns - strlen(left)) : 0, right);
}

static void put(const struct tfh_page *page, const void *text)
{
	tfh_wrap_most(page, strlen(INDENT), INDENT, text);
}

/* Prints a text, with its gain at the end of the first line. */
static void beside(const struct tfh_page *page, const char *text, const char *gain)
{
	struct tfh_page left = *page;

	left.style.columns = (unsigned)(TFH_PAGE_COLUMNS - strlen(gain) - 2);
	char *wrapped = tfh_in_memory(&left, put, text),
	     *end = wrapped ? strchr(wrapped, '\n') : NULL;
	if (end) {
		*end = '\0';
		tfh_pass_on(page, wrapped);
		tfh_print(page->out, "%*s\n",
			  (int)(TFH_PAGE_COLUMNS - strlen(INDENT) -
				tfh_columns(wrapped, strlen(wrapped))),
			  gain);
		tfh_pass_on(page, end + 1);
	}
	free(wrapped);
}

/* Prints the finding with its gain beside it, and instructions on the following lines. */
static void item(const struct tfh_page *page, size_t number, const struct tfh_advice *a, bool how)
{
	char first[32], gain[80], line[512];

	tfh_next_becomes(page->r, a, gain, sizeof(gain));
	snprintf(first, sizeof(first), "  %zu ", number);
	tfh_print(page->out, "%s", first);
	if (*gain && last_column(page) == TFH_PAGE_COLUMNS) {
		beside(page, a->finding, gain);
	} else {
		snprintf(line, sizeof(line), "%s%s%s", a->finding, *gain ? ": " : "", gain);
		tfh_wrap_most(page, strlen(first), INDENT, line);
	}
	if (!how || !a->todo || !*a->todo)
		return;
	tfh_print(page->out, INDENT);
	tfh_wrap_most(page, strlen(INDENT), INDENT, a->todo);
}

void tfh_screen_next(const struct tfh_page *page, size_t items, size_t told)
{
	const struct tfh_wording *w = page->words;
	const struct tfh_advice *order[TFH_REPORT_ADVICE];
	size_t n = tfh_next_order(w, order);
	bool gains = false;

	size_t before = w->missing_do != NULL; /* without a verdict: first what one needs */

	while (n && gains_little(w, order[n - 1]))
		n--;
	n = n + before < items ? n : items - before;
	for (size_t i = 0; i < n; i++)
		gains |= has_gain(page->r, order[i]);
	if (n || before)
		heading(page, gains);
	if (before) {
		tfh_put("  1 ", page->out);
		tfh_wrap_most(page, strlen(INDENT), INDENT, w->missing_do);
	}
	for (size_t i = 0; i < n; i++)
		item(page, i + 1 + before, order[i], i + before < told);
}
