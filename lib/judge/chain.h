/*
 * What one step waited for, moment by moment: the charges of its account, with the time at which each was made, for a
 * report on that step alone. The analysis fills a chain that hangs at its feed (feed.h); accounts of all other
 * steps, and runs without one, do not notice it.
 *
 * Which steps are asked for is known only when all have been judged: a slow, a median, a fast one. Their lengths are known before,
 * though, so the analysis keeps the chains of steps that will probably be chosen (account/likely.c). Where another one is
 * chosen after all, it runs again.
 */
#ifndef TFH_JUDGE_CHAIN_H
#define TFH_JUDGE_CHAIN_H

#include "base/arena.h"
#include "judge/feed.h"
#include "judge/vec.h"

struct tfh_link {
	int64_t t0, t1;
	enum tfh_cause cause; /* TFH_CAUSE_NONE: computing */
	bool tentative; /* while a step without device times is under way: may turn out to be hidden */
	bool pause;	/* likewise: a pause, whose cause shows at the step's end */
	const char *what, *where; /* the call or kernel, and the place of the call; "" not known */
};

struct tfh_drawn;

struct tfh_chain {
	uint32_t process; /* the step asked for */
	uint64_t step;
	struct tfh_chain
		*next; /* of another step of the process, filled by the same analysis; NULL: none */
	struct tfh_drawn
		*drawn; /* filled with what ran meanwhile (drawn.h); NULL: nobody wants it */
	struct tfh_arena arena;
	TFH_VEC(struct tfh_link) link; /* by time once the analysis is done; they do not overlap */
	size_t settled;		       /* links before it are settled */
	size_t most;		       /* links that are kept */
	bool cut;		       /* there were more */
	int rc;
};

/* Starts a chain for a step of a process, and frees it. */
void tfh_chain_init(struct tfh_chain *c, uint32_t process, uint64_t step);
void tfh_chain_free(struct tfh_chain *c);

/* Chains of steps that will probably be chosen, joined. */
struct tfh_likely {
	uint64_t
		step; /* one that is known, TFH_NO_STEP: those of TFH_CHAIN_SLOW and _FAST and the median one */
	struct tfh_chain chain[TFH_CHAIN_LIKELY];
};
#define TFH_NO_STEP UINT64_MAX

void tfh_likely_init(struct tfh_likely *l, uint64_t step);
void tfh_likely_free(struct tfh_likely *l);
/* Moves what was found of the steps of `to` and the next ones there; false: one of them is not among the likely ones. */
bool tfh_likely_give(struct tfh_likely *l, struct tfh_chain *to);

/* The chain of that window, NULL: nobody asked for it. */
static inline struct tfh_chain *tfh_chain_of(const struct tfh_feed *f, uint32_t process,
					     size_t window)
{
	struct tfh_chain *c = f->chain;

	while (c && (c->step != window || c->process != process))
		c = c->next;
	return c;
}

/* [t0, t1) is charged. */
void tfh_chain_add(struct tfh_chain *c, const struct tfh_link *link);
/* In this and the next ones, what was tentative was the device's doing if that was busy, else what it is. */
void tfh_chain_settle(struct tfh_chain *c, bool busy, enum tfh_cause device);

/* After the analysis: puts the links of this and the next ones in order, gives them names from the calls and ops of that time
 * and joins those that follow each other and say the same. 0 or a negative errno. */
int tfh_chain_finish(struct tfh_chain *c, const struct tfh_feed *f, struct tfh_err *err);

#endif
