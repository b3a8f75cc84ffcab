/*
 * Folds a sequence of events into nested loops: A B B B A B B C becomes loop(A, loop(B)), C. Two
 * sequences are the same loop if their bodies are, whatever the number of iterations. The algorithm
 * knows nothing of what events are: only whether two are alike (their keys).
 */
#ifndef TFH_JUDGE_FOLD_H
#define TFH_JUDGE_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An event, several of them at the same place of a loop's body, or a loop. Times are ns. */
struct tfh_node {
	uint64_t key;	       /* equal: the same */
	uint64_t ops;	       /* what it launches: a set, one bit per hash */
	int64_t t0;	       /* begin of the first */
	int64_t ns;	       /* from the begin of each to the begin of what came next, in all */
	int64_t first_ns;      /* loops: of the first iteration of each run */
	uint64_t n;	       /* events; iterations of a loop */
	uint64_t runs;	       /* loops: how often it was entered */
	uint64_t launches;     /* in all */
	uint32_t what, feeds;  /* for the caller */
	uint8_t kind;	       /* for the caller; a loop's is 0 */
	uint8_t rank;	       /* events: the highest of an iteration begins it */
	struct tfh_node *body; /* a loop's, in order; NULL: no loop */
	uint32_t n_body;
	/* Loops: when each iteration began, in any order; none where nobody asked, or there was no memory. */
	int64_t *begin;
	size_t n_begin, room;
};

struct tfh_fold;

/* begins: iterations of loops are to be told one by one. NULL: out of memory. */
struct tfh_fold *tfh_fold_new(bool begins);
/* Appends one event; its key must not be 0. 0 or -ENOMEM. */
int tfh_fold_add(struct tfh_fold *f, const struct tfh_node *event);
/* What was added, folded, as the body of `root`; frees the folder. */
void tfh_fold_end(struct tfh_fold *f, struct tfh_node *root);
void tfh_fold_free(struct tfh_fold *f);
/* tidy.c: counts the iterations that are not quite like the others with their loop. */
void tfh_fold_tidy(struct tfh_node *root);
/* Adds the time of b and what it launches to a. */
static inline void tfh_node_add(struct tfh_node *a, const struct tfh_node *b)
{
	a->ns += b->ns;
	a->launches += b->launches;
	a->ops |= b->ops;
}
/* Another iteration of a loop began at t; that of another loop are this one's. */
void tfh_node_begin(struct tfh_node *loop, int64_t t);
void tfh_node_take_begins(struct tfh_node *loop, struct tfh_node *from);
/* Whether two loops, neither of which holds another one, are of the same steps; or loops with the same
 * body. */
bool tfh_nodes_alike(const struct tfh_node *a, const struct tfh_node *b);
/* Whether it is a loop that holds no other one. */
bool tfh_node_is_leaf(const struct tfh_node *v);
/* Frees what a node holds, not the node. */
void tfh_node_clear(struct tfh_node *node);

#endif
