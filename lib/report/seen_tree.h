/* The lines where threads were seen, as a tree of calls: what of it is shown, and in which
 * order. */
#ifndef TFH_REPORT_SEEN_TREE_H
#define TFH_REPORT_SEEN_TREE_H

#include "judge/result.h"

struct tfh_seen_tree {
	const struct tfh_seen_node *node; /* a parent before its children */
	uint32_t n;
	double all_s; /* of all roots */
	uint64_t samples;
};

struct tfh_seen_tree tfh_seen_tree_of(const struct tfh_seen_node *node, uint32_t n);

/* The next child of `parent` (UINT32_MAX: of none) in order of time, after `last` (UINT32_MAX: the
 * first). UINT32_MAX: all others are too small, or were seen too rarely, to be shown by
 * themselves. */
uint32_t tfh_seen_tree_next(const struct tfh_seen_tree *t, uint32_t parent, uint32_t last);

/* These others, as one; n 0: all together are too small, or there are none. */
struct tfh_seen_rest {
	uint32_t n;
	double s_per_step;
	uint64_t samples;
};
struct tfh_seen_rest tfh_seen_tree_rest(const struct tfh_seen_tree *t, uint32_t parent);

#endif
