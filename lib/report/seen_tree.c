#include "report/seen_tree.h"

#include "judge/numbers.h"

struct tfh_seen_tree tfh_seen_tree_of(const struct tfh_seen_node *node, uint32_t n)
{
	struct tfh_seen_tree t = {.node = node, .n = n};

	for (uint32_t i = 0; i < n; i++)
		if (node[i].parent == i) {
			t.all_s += node[i].s_per_step;
			t.samples += node[i].samples;
		}
	return t;
}

static bool is_child(const struct tfh_seen_tree *t, uint32_t i, uint32_t parent)
{
	return parent == UINT32_MAX ? t->node[i].parent == i
				    : t->node[i].parent == parent && i != parent;
}

static bool is_shown(const struct tfh_seen_tree *t, uint32_t i)
{
	return t->node[i].s_per_step >= TFH_REPORT_TREE_SHARE * t->all_s &&
	       t->node[i].samples >= TFH_REPORT_TREE_SAMPLES;
}

uint32_t tfh_seen_tree_next(const struct tfh_seen_tree *t, uint32_t parent, uint32_t last)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < t->n; i++) {
		double s = t->node[i].s_per_step;
		if (!is_child(t, i, parent) || !is_shown(t, i))
			continue;
		if (last != UINT32_MAX &&
		    (s > t->node[last].s_per_step || (s >= t->node[last].s_per_step && i <= last)))
			continue;
		if (best == UINT32_MAX || s > t->node[best].s_per_step)
			best = i;
	}
	return best;
}

struct tfh_seen_rest tfh_seen_tree_rest(const struct tfh_seen_tree *t, uint32_t parent)
{
	struct tfh_seen_rest rest = {0};

	for (uint32_t i = 0; i < t->n; i++)
		if (is_child(t, i, parent) && !is_shown(t, i)) {
			rest.n++;
			rest.s_per_step += t->node[i].s_per_step;
			rest.samples += t->node[i].samples;
		}
	if (rest.s_per_step < TFH_REPORT_TREE_SHARE * t->all_s)
		rest.n = 0;
	return rest;
}
