#include "judge/verdict/line_tree.h"

#include <errno.h>
#include <string.h>

static bool same(const char *a, const char *b)
{
	return a == b || !strcmp(a, b);
}

bool tfh_same_line(const struct tfh_model_line *a, const struct tfh_model_line *b)
{
	return a->line == b->line && same(a->file, b->file) && same(a->function, b->function);
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
		    same(n->file, line->file) && same(n->function, line->function))
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
