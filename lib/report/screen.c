/*
 * The first screen: title, how the job ended if not normally, verdict, where the time went, what to
 * do next, and confidence. It uses the largest of several layouts that fits the screen, from all
 * rows of everything down to one row of each.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "report/text_parts.h"

/* Layouts, the largest first: notes below the verdict (in addition to the most important ones,
 * which are always shown), lines of evidence below its reason, rows of the tables, things to do
 * next, how many of these have instructions, rows of ranks that did not end normally, lines of a
 * row, and flags. FOOT: there is a last line. MERGED: large rows of the run's table are merged like
 * small ones, since the first instruction is worth more than a fifth row or a second thing to
 * do. */
#define ALL SIZE_MAX
enum { FOOT = 1, MERGED = 2 };
static const struct form {
	size_t notes, whys, times, next, told, ranks;
	unsigned lines;
	unsigned flags;
} forms[] = {
	{3, ALL, 6, 3, 3, 6, 2, FOOT}, {2, ALL, 6, 3, 3, 6, 2, FOOT}, {1, ALL, 6, 3, 3, 6, 2, FOOT},
	{1, ALL, 5, 3, 3, 6, 2, FOOT}, {0, ALL, 5, 3, 3, 6, 2, FOOT}, {0, ALL, 5, 3, 2, 6, 2, FOOT},
	{0, ALL, 5, 3, 1, 4, 2, FOOT}, {0, ALL, 4, 3, 1, 4, 2, FOOT}, {0, ALL, 4, 2, 1, 4, 2, FOOT},
	{0, ALL, 3, 2, 1, 4, 2, FOOT}, {0, ALL, 3, 2, 1, 4, 2, 0},    {0, ALL, 4, 1, 1, 3, 2, FOOT},
	{0, ALL, 3, 1, 1, 3, 2, FOOT}, {0, 1, 4, 2, 1, 4, 2, FOOT},   {0, 1, 3, 2, 1, 4, 2, FOOT},
	{0, 1, 3, 2, 1, 4, 2, 0},      {0, 0, 4, 2, 1, 4, 2, FOOT},   {0, 0, 3, 2, 1, 3, 2, FOOT},
	{0, 0, 3, 2, 1, 3, 2, 0},      {0, 0, 4, 1, 1, 3, 2, FOOT},   {0, 0, 3, 1, 1, 3, 2, FOOT},
	{0, 1, 2, 1, 1, 3, 2, FOOT},   {0, 0, 2, 1, 1, 2, 2, FOOT},   {0, 0, 2, 1, 1, 2, 2, 0},
	{0, 0, 4, 1, 1, 2, 2, MERGED}, {0, 0, 2, 2, 0, 2, 2, 0},      {0, 0, 3, 1, 0, 2, 2, 0},
	{0, 0, 2, 1, 0, 2, 2, 0},      {0, ALL, 3, 1, 1, 3, 1, FOOT}, {0, ALL, 3, 1, 1, 2, 1, 0},
	{0, ALL, 0, 1, 1, 6, 1, 0},    {0, ALL, 0, 1, 0, 6, 1, 0},    {0, ALL, 0, 1, 1, 2, 1, 0},
	{0, ALL, 0, 1, 1, 0, 1, 0},
};
#define FORMS (sizeof(forms) / sizeof(forms[0]))

/* The first UNCUT layouts are tried first with up to UNCUT_LINES lines in a row: the end of a row
 * matters more than notes, further rows, and further instructions. */
#define UNCUT 10 /* of the forms */
#define UNCUT_LINES 4

static void foot(const struct tfh_page *page)
{
	size_t column = strlen("why: tfhook why");

	tfh_put("why: tfhook why", page->out);
	tfh_field(page, &column, "all: tfhook report --all");
	tfh_field(page, &column, "page: tfhook report --html r.html");
	tfh_put("\n", page->out);
}

static void notes(const struct tfh_page *page, size_t most)
{
	const struct tfh_wording *w = page->words;

	for (uint32_t i = 0; i < w->n_remark && (i < most || i < w->n_first); i++)
		tfh_row(page, "note", w->remark[i]);
}

static void set(const struct tfh_page *page, const void *arg)
{
	const struct form *form = arg;

	tfh_text_title(page);
	tfh_screen_end(page);
	tfh_screen_ranks(page, form->ranks);
	tfh_screen_verdict(page, form->whys);
	notes(page, form->notes);
	if (form->times && (!page->r->found.sampled.samples || page->r->n_tree > 1))
		tfh_screen_times(page, form->times, form->flags & MERGED);
	if (page->r->found.sampled.samples)
		tfh_screen_sampled(page, form->times);
	tfh_screen_next(page, form->next, form->told);
	tfh_screen_sure(page);
	if (form->flags & FOOT)
		foot(page);
}

void tfh_report_screen(FILE *out, const struct tfh_wording *words, const struct tfh_style *style)
{
	struct tfh_page page = {.out = out, .words = words, .r = words->r, .style = *style};
	bool narrow = tfh_page_columns(&page) < TFH_PAGE_COLUMNS;
	size_t room = style->rows > TFH_SCREEN_LINES ? style->rows : TFH_SCREEN_LINES;

	for (size_t i = 0; i < UNCUT + FORMS; i++) {
		const struct form *form = &forms[i < UNCUT ? i : i - UNCUT];
		page.style.lines = narrow ? UINT_MAX : i < UNCUT ? UNCUT_LINES : form->lines;
		char *text = tfh_in_memory(&page, set, form);
		bool fits =
			text && (tfh_lines_of(text) <= room || i + 1 == UNCUT + FORMS || narrow);
		if (fits)
			tfh_pass_on(&page, text);
		free(text);
		if (fits || !text)
			return;
	}
}

static void head(const struct tfh_page *page, const void *arg)
{
	const struct form *form = arg;

	tfh_screen_end(page);
	tfh_screen_verdict(page, form->whys);
	notes(page, form->notes);
	tfh_screen_next(page, form->next, form->told);
}

void tfh_report_verdict(FILE *out, const struct tfh_wording *words, const struct tfh_style *style,
			const char *prefix)
{
	static const struct form form = {.notes = 2, .whys = ALL, .next = 1, .told = 1, .lines = 2};
	struct tfh_page page = {.out = out, .words = words, .r = words->r, .style = *style};

	page.style.columns = (unsigned)(tfh_page_columns(&page) - strlen(prefix));
	page.style.lines = form.lines;
	char *text = tfh_in_memory(&page, head, &form);
	for (char *at = text, *end; at && (end = strchr(at, '\n')); at = end + 1) {
		*end = '\0';
		if (!*at)
			continue;
		tfh_print(out, "%s", prefix);
		tfh_pass_on(&page, at);
		tfh_put("\n", out);
	}
	free(text);
}
