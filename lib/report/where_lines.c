/* Python lines where the job's threads were seen between their calls: as a tree, and as folded stacks. */
#include <stdio.h>
#include <string.h>

#include "base/print.h"
#include "report/format.h"
#include "report/report.h"

struct tree {
	const struct tfh_seen_node *node;
	uint32_t n;
	double least_s;
	bool wide;
};

static bool is_child(const struct tree *t, uint32_t i, uint32_t parent)
{
	return parent == UINT32_MAX ? t->node[i].parent == i
				    : t->node[i].parent == parent && i != parent;
}

/* The next child in order of time, below `most`, or equal and after the node `last`; UINT32_MAX: there are no
 * more. */
static uint32_t next_child(const struct tree *t, uint32_t parent, uint32_t last)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < t->n; i++) {
		double s = t->node[i].s_per_step;
		if (!is_child(t, i, parent) || s < t->least_s)
			continue;
		if (last != UINT32_MAX &&
		    (s > t->node[last].s_per_step || (s >= t->node[last].s_per_step && i <= last)))
			continue;
		if (best == UINT32_MAX || s > t->node[best].s_per_step)
			best = i;
	}
	return best;
}

static void print_below(FILE *out, const struct tree *t, uint32_t parent, int depth)
{
	for (uint32_t i = next_child(t, parent, UINT32_MAX); i != UINT32_MAX;
	     i = next_child(t, parent, i)) {
		const struct tfh_seen_node *n = &t->node[i];
		char time[TFH_TEXT];
		tfh_print(out, "%9s  %*s%s  %s", tfh_fmt_time(time, n->s_per_step), depth, "",
			  n->function, t->wide ? n->file : tfh_file_of(n->file));
		tfh_print(out, n->line ? ":%u\n" : "\n", n->line);
		print_below(out, t, i, depth + 1);
	}
}

static void print_tree(FILE *out, struct tree t, const char *title)
{
	uint64_t looks = 0;

	for (uint32_t i = 0; i < t.n; i++)
		if (t.node[i].parent == i) {
			looks += t.node[i].looks;
			t.least_s += TFH_REPORT_TREE_SHARE * t.node[i].s_per_step;
		}
	tfh_print(out, "PER STEP  %s (%llu samples)\n", title, (unsigned long long)looks);
	print_below(out, &t, UINT32_MAX, 0);
}

void tfh_report_where_text(FILE *out, const struct tfh_result *r, const struct tfh_style *style)
{
	const struct tfh_seen_workers *w = &r->found.workers;

	if (r->found.n_node)
		print_tree(out, (struct tree){r->found.node, r->found.n_node, 0, style->wide},
			   "LINE WHERE THREADS WERE BETWEEN RECORDED CALLS");
	else
		tfh_put("no line of Python was sampled between the job's calls\n", out);
	if (w->n_node) {
		tfh_put("\n", out);
		print_tree(out, (struct tree){w->node, w->n_node, 0, style->wide},
			   w->threads ? "LINE WHERE OTHER THREADS WERE BUSY MEANWHILE"
				      : "LINE WHERE WORKER PROCESSES WERE BUSY, ALL TOGETHER");
	}
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

static void put_stack(FILE *out, const struct tree *t, uint32_t i)
{
	if (t->node[i].parent != i) {
		put_stack(out, t, t->node[i].parent);
		tfh_put(";", out);
	}
	put_frame(out, &t->node[i]);
}

static void fold(FILE *out, const struct tree *t, const char *before)
{
	for (uint32_t i = 0; i < t->n; i++) {
		if (t->node[i].own_s * 1e6 < 0.5)
			continue;
		tfh_print(out, "%s", before);
		put_stack(out, t, i);
		tfh_print(out, " %.0f\n", t->node[i].own_s * 1e6);
	}
}

void tfh_report_where_folded(FILE *out, const struct tfh_result *r)
{
	const struct tree own = {.node = r->found.node, .n = r->found.n_node};
	const struct tree workers = {.node = r->found.workers.node, .n = r->found.workers.n_node};

	fold(out, &own, "");
	fold(out, &workers, "(workers);");
}
