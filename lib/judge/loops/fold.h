/*
 * Folds a sequence of events into nested loops: A B B B A B B C becomes loop(A, loop(B)), C. Two
 * sequences are the same loop if their bodies are, whatever the number of iterations. The algorithm
 * knows only whether two events are equal, by their keys.
 */
#ifndef TFH_JUDGE_LOOPS_FOLD_H
#define TFH_JUDGE_LOOPS_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An event, several events at the same place of a loop's body, or a loop. Times are ns. */
struct tfh_node {
	uint64_t key;	       /* equal: the same */
	uint64_t ops;	       /* what it launches: a set of hashes, one bit each */
	int64_t t0;	       /* begin of the first */
	int64_t ns;	       /* total from the begin of each to the begin of the next */
	int64_t first_ns;      /* loops: total of the first iteration of each entry */
	uint64_t n;	       /* events; iterations of a loop */
	uint64_t runs;	       /* loops: how often it was entered */
	uint64_t launches;     /* total */
	uint32_t what, feeds;  /* for the caller */
	uint8_t kind;	       /* for the caller; a loop's is 0 */
	uint8_t rank;	       /* events: the highest of an iteration begins it */
	struct tfh_node *body; /* of a loop, in order; NULL: not a loop */
	uint32_t n_body;
	/* Loops: the begin of each iteration, in any order; NULL if not requested, or out of
	 * memory. */
	int64_t *begin;
	size_t n_begin, room;
};

struct tfh_fold;

/* begins: record the begin of each iteration. NULL: out of memory. */
struct tfh_fold *tfh_fold_new(bool begins);
/* Appends one event; its key must not be 0. 0 or -ENOMEM. */
int tfh_fold_add(struct tfh_fold *f, const struct tfh_node *event);
/* Stores the folded sequence as the body of `root` and frees the folder. */
void tfh_fold_end(struct tfh_fold *f, struct tfh_node *root);
void tfh_fold_free(struct tfh_fold *f);
/* tidy.c: adds iterations that differ slightly from the others to their loop. */
void tfh_fold_tidy(struct tfh_node *root);
/* Adds the time of b and what it launches to a. */
static inline void tfh_node_add(struct tfh_node *a, const struct tfh_node *b)
{
	a->ns += b->ns;
	a->launches += b->launches;
	a->ops |= b->ops;
}
/* Records that another iteration of a loop began at t. */
void tfh_node_begin(struct tfh_node *loop, int64_t t);
void tfh_node_take_begins(struct tfh_node *loop, struct tfh_node *from);
/* Whether two leaf loops have the same steps, or two other loops the same body. */
bool tfh_nodes_alike(const struct tfh_node *a, const struct tfh_node *b);
/* Whether a node is a loop that contains no other loop. */
bool tfh_node_is_leaf(const struct tfh_node *v);
/* Frees what a node owns, not the node. */
void tfh_node_clear(struct tfh_node *node);

#endif
