/*
 * Private to the search for an anchor: the intervals between the calls that are tried as one, and how far they come
 * again.
 */
#ifndef TFH_LOOPS_FINDER_H
#define TFH_LOOPS_FINDER_H

#include "judge/loops/anchor.h"

struct tfh_score {
	double cover;  /* launches that come again, of all */
	double ratio;  /* of those in the region where they do */
	double strict; /* of all, where nothing but the same counts */
	int64_t ns;    /* of the region */
	size_t n;      /* intervals that come again */
};

struct tfh_finder {
	const struct tfh_facts *facts;
	struct tfh_anchor at; /* where `v` is cut */
	bool is_cut;
	struct tfh_interval *v;
	size_t n;
	uint64_t launches; /* of all tokens that were cut */
	uint32_t usual;	   /* launches of the interval in which the middle one of all launches is */
	struct tfh_anchor best;
	double cover;
};

/* The kind of token i if it is a launch, or NULL. */
static inline const struct tfh_token_kind *tfh_launch_at(const struct tfh_finder *f, uint32_t i)
{
	const struct tfh_token_kind *k = tfh_kind_of(f->facts, &f->facts->token.v[i]);

	return tfh_is_launch(k) ? k : NULL;
}

/* anchor_intervals.c: cuts the tokens at an anchor into f->v. */
void tfh_finder_cut(struct tfh_finder *f, const struct tfh_anchor *a);
/* Each interval is compared with the one before and the one behind it. */
struct tfh_score tfh_score_in_a_row(const struct tfh_finder *f);
/* Each with the one m later, by tfh_interval.exact or .rough. */
struct tfh_score tfh_score_after(const struct tfh_finder *f, size_t m, bool exact);
/* Each with those just before, for steps of random kinds. */
struct tfh_score tfh_score_recent(const struct tfh_finder *f);
/* Fills key and at of an anchor whose turn is known. False: no interval comes once in a turn. */
bool tfh_find_key(const struct tfh_finder *f, struct tfh_anchor *a);

/* evaluation.c: which of the best anchor's intervals evaluate. Fills f->best.eval. */
void tfh_find_evaluation(struct tfh_finder *f);

#endif
