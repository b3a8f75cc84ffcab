/* Where the main thread's time went, for a run in which no call was recorded. */
#include <string.h>

#include "base/print.h"
#include "model/symbols/pylines.h"
#include "report/seen_tree.h"
#include "report/text_parts.h"
#include "report/words/words.h"

static void row(const struct tfh_page *page, double share, double all_s, const char *at,
		const char *does)
{
	char time[TFH_TEXT], line[1024];

	snprintf(line, sizeof(line), "%s%s%s", at, *does ? ": " : "", does);
	tfh_print(page->out, "  %3.0f %%  %8s  ", 100 * share, tfh_fmt_time(time, share * all_s));
	tfh_wrap_from(page, 19, "                   ", line);
}

/* Lines of the program that have most of the time with all that they call. */
struct calling_lines {
	const struct tfh_seen_tree *tree;
	struct tfh_sampled_line line[TFH_VERDICT_START_LINES];
	uint32_t n;
};

static bool is_of_library(const struct tfh_seen_node *n)
{
	return !n->line || tfh_file_of_library(n->file);
}

static void add_caller(struct calling_lines *c, const struct tfh_seen_node *node)
{
	double share = node->s_per_step / c->tree->all_s;

	for (uint32_t i = 0; i < c->n; i++)
		if (c->line[i].line == node->line && !strcmp(c->line[i].file, node->file)) {
			c->line[i].share += share;
			return;
		}
	if (c->n < TFH_VERDICT_START_LINES)
		c->line[c->n++] = (struct tfh_sampled_line){.file = node->file,
							    .function = node->function,
							    .line = node->line,
							    .share = share};
}

/* Finds the lines to show. A line stands for what it calls, unless lines of the program that it
 * calls have nearly all of its time: then those are shown. */
static void find_callers(struct calling_lines *c, uint32_t parent)
{
	const struct tfh_seen_tree *t = c->tree;
	double below = 0, all = parent == UINT32_MAX ? t->all_s : t->node[parent].s_per_step;
	uint32_t i = UINT32_MAX;

	while ((i = tfh_seen_tree_next(t, parent, i)) != UINT32_MAX)
		below += is_of_library(&t->node[i]) ? 0 : t->node[i].s_per_step;
	if (parent != UINT32_MAX && all - below > TFH_REPORT_OTHER_SHARE * t->all_s) {
		add_caller(c, &t->node[parent]);
		return;
	}
	while ((i = tfh_seen_tree_next(t, parent, i)) != UINT32_MAX)
		if (!is_of_library(&t->node[i]))
			find_callers(c, i);
}

static void sort_lines(struct calling_lines *c)
{
	for (uint32_t i = 1; i < c->n; i++)
		for (uint32_t k = i; k && c->line[k].share > c->line[k - 1].share; k--) {
			struct tfh_sampled_line line = c->line[k];
			c->line[k] = c->line[k - 1];
			c->line[k - 1] = line;
		}
}

/* What rows of these lines do not show. */
static double elsewhere(const struct tfh_sampled_line *line, uint32_t n, size_t rows)
{
	double rest = 1;

	for (uint32_t i = 0; i < n && i < rows; i++)
		rest -= line[i].share;
	return rest;
}

void tfh_screen_sampled(const struct tfh_page *page, size_t rows)
{
	const struct tfh_sampled *s = &page->r->found.sampled;
	const struct tfh_seen_tree tree =
		tfh_seen_tree_of(page->r->found.node, page->r->found.n_node);
	double all_s = s->wall_s - s->start_s;
	struct tfh_wording w = {.r = page->r};
	struct calling_lines of = {.tree = &tree};
	const struct tfh_sampled_line *line = s->line;
	uint32_t n = 0;
	char a[TFH_TEXT], b[TFH_TEXT];

	if (!s->samples || !rows || !(all_s > 0))
		return;
	tfh_arena_init(&w.arena, 0);
	tfh_heading(page, "WHERE %s TIME WENT (%s, %s samples)",
		    !s->pool.file ? "THE MAIN THREAD'S" : "THE WORKERS'", tfh_fmt_time(a, all_s),
		    tfh_fmt_count(b, s->samples));
	while (n < s->n_line && s->line[n].samples >= TFH_VERDICT_LINE_SAMPLES)
		n++;
	if (elsewhere(line, n, rows) > TFH_REPORT_LINES_REST && tree.all_s > 0) {
		find_callers(&of, UINT32_MAX);
		sort_lines(&of);
	}
	bool by_caller = of.n && elsewhere(of.line, of.n, rows) < elsewhere(line, n, rows);
	line = by_caller ? of.line : line;
	n = by_caller ? of.n : n;
	for (uint32_t i = 0; i < n && i < rows; i++)
		row(page, line[i].share, all_s, tfh_sampled_at(&w, &line[i]),
		    by_caller ? "with what it calls" : tfh_sampled_does(page->r, &line[i]));
	if (elsewhere(line, n, rows) >= 0.005)
		row(page, elsewhere(line, n, rows), all_s, "elsewhere", "");
	tfh_arena_free(&w.arena);
}

void tfh_text_sampled(const struct tfh_page *page)
{
	tfh_screen_sampled(page, TFH_VERDICT_START_LINES);
}
