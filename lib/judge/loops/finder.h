/* Private to the search for an anchor: the intervals of the current candidate, and how well they
 * repeat. */
#ifndef TFH_JUDGE_LOOPS_FINDER_H
#define TFH_JUDGE_LOOPS_FINDER_H

#include "judge/loops/anchor.h"

struct tfh_score {
	double cover;  /* share of all launches that repeat */
	double ratio;  /* the same within the region that repeats */
	double strict; /* share of all, if only identical intervals count */
	int64_t ns;    /* of the region */
	size_t n;      /* repeating intervals */
};

struct tfh_finder {
	const struct tfh_facts *facts;
	struct tfh_anchor at; /* the anchor at which `v` was cut */
	bool is_cut;
	struct tfh_interval *v;
	size_t n;
	uint64_t launches; /* of all tokens in the sequence */
	uint32_t usual;	   /* launches of the interval that contains the median launch */
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
/* Launches of b whose function a launches, too, whatever the grids, because batch sizes differ;
 * paired: of each function no more than a launches. */
uint32_t tfh_common_launches(const struct tfh_finder *f, const struct tfh_interval *a,
			     const struct tfh_interval *b, bool paired);
/* Compares each interval with its two neighbours. */
struct tfh_score tfh_score_in_a_row(const struct tfh_finder *f);
/* Compares each interval with the one m later, by tfh_interval.exact or .rough. */
struct tfh_score tfh_score_after(const struct tfh_finder *f, size_t m, bool exact);
/* Compares each interval with those just before it, for steps of random kinds. */
struct tfh_score tfh_score_recent(const struct tfh_finder *f);
/* Fills in key and at of an anchor with a known cycle. False: no interval occurs once in a
 * cycle. */
bool tfh_find_key(const struct tfh_finder *f, struct tfh_anchor *a);

/* evaluation.c: which of the best anchor's intervals evaluate. Fills in f->best.eval. */
void tfh_find_evaluation(struct tfh_finder *f);

#endif
