/*
 * Anchors, the calls between which a job's sequence of launches, copies and waits repeats, and the
 * intervals into which an anchor divides the sequence.
 */
#ifndef TFH_JUDGE_LOOPS_ANCHOR_H
#define TFH_JUDGE_LOOPS_ANCHOR_H

#include "judge/facts/facts.h"

enum tfh_anchor_kind {
	TFH_ANCHOR_UPLOAD, /* consecutive copies to the device begin an interval */
	TFH_ANCHOR_WAIT,   /* consecutive waits and copies back end one */
	TFH_ANCHOR_GRAPH,  /* a graph launch begins one */
	TFH_ANCHOR_KERNEL, /* a kernel launch begins one */
};

struct tfh_anchor {
	enum tfh_anchor_kind kind;
	uint64_t hash; /* waits: only calls of that kind; 0: all */
	uint32_t what; /* uploads: minimum number of bytes; kernels: which function */
	uint32_t few;  /* intervals with at most this many launches belong to the step before */
	/* Number of intervals per step. If there are several, the one with the content `key`, which
	 * occurs once per step, has index `at` in it. */
	uint32_t cycle, at;
	uint64_t key;
	bool one_before; /* the first step does not launch it yet */
	bool adds;	 /* every n-th interval launches what the others do, and more */
	bool exact;	 /* `key` is a value of tfh_interval.exact */
	/* tfh_interval.rough of the intervals that evaluate a model. */
	uint64_t eval[TFH_LOOPS_EVALS];
	uint32_t n_eval;
};

struct tfh_interval {
	/* Hash of the content, independent of order, so that threads do not matter: of all calls
	 * with their sizes and grids, and of the launched functions alone. */
	uint64_t exact, rough;
	int64_t t0, t1;	   /* of the call that begins it; of the whole interval if a wait ends it */
	uint32_t from, to; /* tokens */
	uint32_t launches;
};

/* Divides a sequence into intervals. */
struct tfh_cutter {
	const struct tfh_facts *facts;
	const struct tfh_anchor *anchor;
	struct tfh_interval now;
	bool open;
	uint32_t stop;	      /* next token to stop at, unless any kernel may be an anchor */
	uint32_t n, launches; /* tokens read; launches among them (a graph counts once) */
};

/* Adds a call by its kind and its times; true: an interval is complete, in *out. */
bool tfh_cut(struct tfh_cutter *c, const struct tfh_token_kind *kind, int64_t t0, int64_t t1,
	     struct tfh_interval *out);
/* Reads facts->token from index c->n on until an interval is complete; false: none is. */
bool tfh_cut_next(struct tfh_cutter *c, struct tfh_interval *out);
/* The interval after the last anchor that begins one; false: it is empty. */
bool tfh_cut_last(struct tfh_cutter *c, struct tfh_interval *out);

/* Finds the anchor that best divides facts->token into repeating intervals; false: there is none.
 * *rc: 0 or -ENOMEM. */
bool tfh_find_anchor(const struct tfh_facts *facts, struct tfh_anchor *out, int *rc);

/* whole.c: if several complete steps are between two calls of the anchor, replaces it with an
 * anchor that occurs in each of them; false: the anchor is unchanged. *rc becomes -ENOMEM or is
 * left alone. */
bool tfh_part_intervals(const struct tfh_facts *facts, struct tfh_anchor *a, int *rc);
/* rounds.c: whether most intervals between kernels launch from one thread alone. */
bool tfh_within_one_thread(const struct tfh_facts *facts, const struct tfh_anchor *a);
/* whole.c: the number of ops of a step, if all of facts->token is steps that execute the same ops;
 * 0: it is not. */
uint32_t tfh_repeated_ops(const struct tfh_facts *facts, int *rc);

#endif
