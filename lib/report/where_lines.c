/* Python lines where the job's threads were seen between their calls: as a tree, and as folded
 * stacks; and outside of the steps. */
#include <stdio.h>

#include "base/print.h"
#include "base/text.h"
#include "judge/numbers.h"
#include "model/symbols/pylines.h"
#include "report/format.h"
#include "report/report.h"
#include "report/seen_tree.h"
#include "report/text_parts.h"

static void print_below(FILE *out, const struct tfh_seen_tree *t, uint32_t parent, int depth,
			bool wide)
{
	struct tfh_seen_rest rest = tfh_seen_tree_rest(t, parent);
	char time[TFH_TEXT];

	for (uint32_t i = tfh_seen_tree_next(t, parent, UINT32_MAX); i != UINT32_MAX;
	     i = tfh_seen_tree_next(t, parent, i)) {
		const struct tfh_seen_node *n = &t->node[i];
		tfh_print(out, "%9s  %*s%s  %s", tfh_fmt_time(time, n->s_per_step), depth, "",
			  n->function, wide ? n->file : tfh_file_of(n->file));
		tfh_print(out, n->line ? ":%u\n" : "\n", n->line);
		print_below(out, t, i, depth + 1, wide);
	}
	if (rest.n)
		tfh_print(out, "%9s  %*s(%u other line%s)\n", tfh_fmt_time(time, rest.s_per_step),
			  depth, "", rest.n, rest.n == 1 ? "" : "s");
}

static void print_tree(FILE *out, const struct tfh_seen_node *node, uint32_t n, bool wide,
		       const char *per, const char *title)
{
	struct tfh_seen_tree t = tfh_seen_tree_of(node, n);

	tfh_print(out, "%s  %s (%llu samples)\n", per, title, (unsigned long long)t.samples);
	print_below(out, &t, UINT32_MAX, 0, wide);
}

/* Outside of the steps there are lines, but no calls that led to them. */
static void print_outside(FILE *out, const struct tfh_seen_start *s, bool wide)
{
	char time[TFH_TEXT];
	uint32_t rest = 0;
	double rest_s = 0;

	if (!s->n_line)
		return;
	tfh_print(out, "\n%9s  LINE WHERE THE MAIN THREAD WAS: %s (%llu samples)\n",
		  tfh_fmt_time(time, s->wall_s), tfh_branch_words(s->kind),
		  (unsigned long long)s->samples);
	for (uint32_t i = 0; i < s->n_line; i++) {
		const struct tfh_start_line *l = &s->line[i];
		if (l->share < TFH_REPORT_TREE_SHARE || l->samples < TFH_REPORT_TREE_SAMPLES) {
			rest++;
			rest_s += l->share * s->wall_s;
			continue;
		}
		tfh_print(out, "%9s  %s  %s:%u", tfh_fmt_time(time, l->share * s->wall_s),
			  l->function, wide ? l->file : tfh_file_of(l->file), l->line);
		tfh_print(out, l->imports && *l->imports ? "  imports %s\n" : "\n",
			  l->imports ? tfh_short_file(l->imports) : "");
	}
	if (rest && rest_s >= TFH_REPORT_TREE_SHARE * s->wall_s)
		tfh_print(out, "%9s  (%u other line%s)\n", tfh_fmt_time(time, rest_s), rest,
			  rest == 1 ? "" : "s");
}

void tfh_report_where_text(FILE *out, const struct tfh_result *r, const struct tfh_style *style)
{
	const struct tfh_seen_workers *w = &r->found.workers;
	bool sampled = r->found.sampled.samples;
	const char *per = sampled ? " IN ALL " : "PER STEP";

	if (r->found.n_node)
		print_tree(out, r->found.node, r->found.n_node, style->wide, per,
			   r->found.sampled.pool.file ? "LINE WHERE THE WORKERS WERE"
			   : sampled		      ? "LINE WHERE THE MAIN THREAD WAS"
				     : "LINE WHERE THREADS WERE BETWEEN RECORDED CALLS");
	else
		tfh_put("no line of Python was sampled between the job's calls\n", out);
	if (w->n_node && !r->found.sampled.pool.file) {
		tfh_put("\n", out);
		print_tree(out, w->node, w->n_node, style->wide, per,
			   w->threads ? "LINE WHERE OTHER THREADS WERE BUSY MEANWHILE"
				      : "LINE WHERE WORKER PROCESSES WERE BUSY, ALL TOGETHER");
	}
	for (int i = 0; i < TFH_SEEN_STARTS; i++)
		if (r->found.start[i].kind > TFH_BRANCH_RUN)
			print_outside(out, &r->found.start[i], style->wide);
}

/* A name must not contain the separators between frames, or between a stack and its count. */
static void put_frame(FILE *out, const struct tfh_seen_node *n)
{
	char name[256];

	if (n->line)
		snprintf(name, sizeof(name), "%s_(%s:%u)", n->function, tfh_file_of(n->file),
			 n->line);
	else
		snprintf(name, sizeof(name), "%s_(%s)", n->function, tfh_file_of(n->file));
	for (char *c = name; *c; c++)
		if (*c == ';' || *c == ' ')
			*c = '_';
	tfh_print(out, "%s", name);
}

static void put_stack(FILE *out, const struct tfh_seen_node *node, uint32_t i)
{
	if (node[i].parent != i) {
		put_stack(out, node, node[i].parent);
		tfh_put(";", out);
	}
	put_frame(out, &node[i]);
}

static void fold(FILE *out, const struct tfh_seen_node *node, uint32_t n, const char *before)
{
	for (uint32_t i = 0; i < n; i++) {
		if (node[i].own_s * 1e6 < 0.5)
			continue;
		tfh_print(out, "%s", before);
		put_stack(out, node, i);
		tfh_print(out, " %.0f\n", node[i].own_s * 1e6);
	}
}

void tfh_report_where_folded(FILE *out, const struct tfh_result *r)
{
	fold(out, r->found.node, r->found.n_node, "");
	fold(out, r->found.workers.node, r->found.workers.n_node, "(workers);");
}
