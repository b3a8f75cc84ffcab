/* The sampled lines of Python, as sums and as a tree of calls. */
#ifndef TFH_JUDGE_VERDICT_LINE_TREE_H
#define TFH_JUDGE_VERDICT_LINE_TREE_H

#include "judge/verdict/verdict.h"

struct tfh_line_tree {
	TFH_VEC(struct tfh_seen_node)
	node; /* the caller frees it; times in ns until they are kept */
};

struct tfh_line_sum {
	struct tfh_model_line line;
	double ns;
	uint64_t samples;
};

struct tfh_line_sums {
	TFH_VEC(struct tfh_line_sum) of; /* the caller frees it */
};

/* At most TFH_VERDICT_LINES lines; others are left out. 0 or -ENOMEM. */
int tfh_line_sums_add(struct tfh_line_sums *sums, const struct tfh_model_line *line, double ns);
/* The lines with most time come first. */
void tfh_line_sums_sort(struct tfh_line_sums *sums);
/* Makes `sum` the line of the workers, if it has enough samples: its share of `all_ns`, of
 * `samples` samples. */
void tfh_line_sum_keep(const struct tfh_line_sum *sum, double all_ns, uint64_t samples,
		       struct tfh_seen_workers *out);
/* Adds `ns` to a stack, whose innermost frame comes first. */
void tfh_tree_add(struct tfh_line_tree *tree, const struct tfh_model_line *frame, uint32_t n,
		  double ns);
/* Copies the tree to the result, per judged step. 0 or -ENOMEM. */
int tfh_tree_keep(const struct tfh_line_tree *tree, const struct tfh_accounts *accounts,
		  struct tfh_seen_node **node, uint32_t *n);
/* The same into `to`, which has room for all nodes, with times divided by `steps`. */
void tfh_tree_copy(const struct tfh_line_tree *tree, double steps, struct tfh_seen_node *to);

#endif
