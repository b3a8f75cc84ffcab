/*
 * Calls between which the sequence of launches, copies and waits of a job comes again: anchors, and
 * the intervals that they cut it into.
 */
#ifndef TFH_ANALYZE_ANCHOR_H
#define TFH_ANALYZE_ANCHOR_H

#include "judge/facts/facts.h"

enum tfh_anchor_kind {
	TFH_ANCHOR_UPLOAD, /* copies to the device in a row begin an interval */
	TFH_ANCHOR_WAIT,   /* waits and copies back in a row end one */
	TFH_ANCHOR_GRAPH,  /* begins one */
	TFH_ANCHOR_KERNEL, /* the same */
};

struct tfh_anchor {
	enum tfh_anchor_kind kind;
	uint64_t hash; /* waits: only calls of that kind; 0: all */
	uint32_t what; /* uploads: at least so many bytes; kernels: which function */
	uint32_t few;  /* intervals of no more launches belong to the step before them */
	/* Intervals that make a step. Where there are several, one with the content `key`, which
	 * comes once in a step, is number `at` of it, from 0. */
	uint32_t turn, at;
	uint64_t key;
	bool exact; /* `key` is one of tfh_interval.exact */
	/* tfh_interval.rough of those that evaluate what the others train. */
	uint64_t eval[TFH_LOOPS_EVALS];
	uint32_t n_eval;
};

struct tfh_interval {
	/* Content, order-free, so that threads do not matter: of all calls with their sizes and
	 * grids, and of the launched functions alone. */
	uint64_t exact, rough;
	int64_t t0, t1;	   /* of the call that begins it; it ends with a wait: of all */
	uint32_t from, to; /* tokens */
	uint32_t launches;
};

/* Cuts a sequence. */
struct tfh_cutter {
	const struct tfh_facts *facts;
	const struct tfh_anchor *anchor;
	struct tfh_interval now;
	bool open;
	uint32_t stop;	      /* the next one, unless each kernel may be an anchor */
	uint32_t n, launches; /* tokens seen; launches among them, whole graphs count once */
};

/* Takes a call, by what it is and its times; true: an interval is whole, in *out. */
bool tfh_cut(struct tfh_cutter *c, const struct tfh_token_kind *kind, int64_t t0, int64_t t1,
	     struct tfh_interval *out);
/* Takes facts->token from number c->n on, until an interval is whole; false: none is. */
bool tfh_cut_next(struct tfh_cutter *c, struct tfh_interval *out);
/* What lies behind the last anchor that begins an interval; false: nothing. */
bool tfh_cut_last(struct tfh_cutter *c, struct tfh_interval *out);

/* Finds the anchor that cuts facts->token best into intervals that come again; false: there is
 * none. 0 or -ENOMEM in *rc. */
bool tfh_find_anchor(const struct tfh_facts *facts, struct tfh_anchor *out, int *rc);

/* whole.c: an anchor between whose calls several whole steps come makes way for one that each of them has; false: it stays. -ENOMEM in
 * *rc, or that is left alone. */
bool tfh_part_intervals(const struct tfh_facts *facts, struct tfh_anchor *a, int *rc);

#endif
