#include "judge/verdict/line_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "judge/stats.h"

int tfh_line_sums_add(struct tfh_line_sums *sums, const struct tfh_model_line *line, double ns)
{
	struct tfh_line_sum *sum = NULL;

	for (size_t i = 0; i < sums->of.n && !sum; i++)
		if (tfh_same_line(&sums->of.v[i].line, line))
			sum = &sums->of.v[i];
	if (!sum) {
		if (sums->of.n == TFH_VERDICT_LINES)
			return 0;
		if (TFH_PUSH(sums->of, ((struct tfh_line_sum){.line = *line})))
			return -ENOMEM;
		sum = &sums->of.v[sums->of.n - 1];
	}
	sum->ns += ns;
	sum->samples++;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct tfh_line_sum *x = a, *y = b;

	return x->ns > y->ns ? -1 : x->ns < y->ns;
}

void tfh_line_sums_sort(struct tfh_line_sums *sums)
{
	if (sums->of.n)
		qsort(sums->of.v, sums->of.n, sizeof(*sums->of.v), by_time);
}

void tfh_line_sum_keep(const struct tfh_line_sum *sum, double all_ns, uint64_t samples,
		       struct tfh_seen_workers *out)
{
	double share = sum->ns / all_ns;

	if (sum->samples < TFH_VERDICT_LINE_SAMPLES)
		return;
	out->line.file = sum->line.file;
	out->line.function = sum->line.function;
	out->line.line = sum->line.line;
	out->line.share = share;
	out->line.off = tfh_share_error(share, (double)samples);
}

/* The child of a node for that line; UINT32_MAX: there is no room for more. */
static uint32_t node_of(struct tfh_line_tree *tree, uint32_t parent,
			const struct tfh_model_line *line)
{
	struct tfh_seen_node node = {.file = line->file,
				     .function = line->function,
				     .line = line->line,
				     .parent = parent};

	for (size_t i = 0; i < tree->node.n; i++) {
		const struct tfh_seen_node *n = &tree->node.v[i];
		bool top = n->parent == i;
		if (n->line == line->line &&
		    (parent == UINT32_MAX ? top : !top && n->parent == parent) &&
		    !strcmp(n->file, line->file) && !strcmp(n->function, line->function))
			return (uint32_t)i;
	}
	if (parent == UINT32_MAX)
		node.parent = (uint32_t)tree->node.n;
	if (tree->node.n == TFH_VERDICT_NODES || TFH_PUSH(tree->node, node))
		return UINT32_MAX;
	return (uint32_t)tree->node.n - 1;
}

void tfh_tree_add(struct tfh_line_tree *tree, const struct tfh_model_line *frame, uint32_t n,
		  double ns)
{
	uint32_t at = UINT32_MAX;

	for (uint32_t i = n; i-- > 0;) {
		uint32_t next = node_of(tree, at, &frame[i]);
		if (next == UINT32_MAX)
			break;
		at = next;
		tree->node.v[at].s_per_step += ns;
		tree->node.v[at].samples++;
	}
	if (at != UINT32_MAX)
		tree->node.v[at].own_s += ns;
}

void tfh_tree_copy(const struct tfh_line_tree *tree, double steps, struct tfh_seen_node *to)
{
	memcpy(to, tree->node.v, tree->node.n * sizeof(*to));
	for (size_t i = 0; i < tree->node.n; i++) {
		to[i].s_per_step /= steps * 1e9;
		to[i].own_s /= steps * 1e9;
	}
}

int tfh_tree_keep(const struct tfh_line_tree *tree, const struct tfh_accounts *accounts,
		  struct tfh_seen_node **node, uint32_t *n)
{
	if (!tree->node.n)
		return 0;
	*node = tfh_arena_array(accounts->facts->arena, tree->node.n, sizeof(**node));
	if (!*node)
		return -ENOMEM;
	tfh_tree_copy(tree, (double)accounts->judged_steps, *node);
	*n = (uint32_t)tree->node.n;
	return 0;
}
