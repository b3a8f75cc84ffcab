/*
 * What one step waited for, moment by moment: the charges of its account with their times, for a
 * report on that step alone. The analysis fills a chain that is attached to its feed (feed.h); it
 * does not affect the accounts of other steps, or runs without a chain.
 *
 * Which steps are requested (a slow, a median, a fast one) is known only when all have been judged.
 * Their durations are known earlier, so the analysis keeps the chains of steps that will probably
 * be chosen (account/likely.c). If another step is chosen after all, the analysis runs again.
 */
#ifndef TFH_JUDGE_CHAIN_H
#define TFH_JUDGE_CHAIN_H

#include "base/arena.h"
#include "judge/feed.h"
#include "model/vec.h"

struct tfh_link {
	int64_t t0, t1;
	enum tfh_cause cause; /* TFH_CAUSE_NONE: computing */
	bool tentative; /* in an open step without device times: the device may have hidden it */
	const char *what, *where; /* the call or kernel, and the place of the call; "" not known */
};

struct tfh_drawn;
struct tfh_step;

struct tfh_chain {
	uint32_t process; /* the requested step: its number in the report */
	uint64_t step;
	uint64_t window; /* the window that the step is in or part of; TFH_NO_STEP: not known yet */
	int64_t from, to; /* links are cut to this time; both 0: they are not */
	/* The chain of another step of the process, filled by the same analysis; NULL: none. */
	struct tfh_chain *next;
	/* Filled with what ran at the same time (drawn.h); NULL: not wanted. */
	struct tfh_drawn *drawn;
	struct tfh_arena arena;
	TFH_VEC(struct tfh_link) link; /* by time once the analysis is done; they do not overlap */
	size_t settled;		       /* links before it are settled */
	size_t most;		       /* maximum number of links */
	bool cut;		       /* there were more */
	int rc;
};

/* Initialise a chain for a step of a process, given by its number or as an entry of the report.
 * Freed by tfh_chain_free(). */
void tfh_chain_init(struct tfh_chain *c, uint32_t process, uint64_t step);
void tfh_chain_init_step(struct tfh_chain *c, uint32_t process, const struct tfh_step *step);
void tfh_chain_free(struct tfh_chain *c);

/* Linked chains of steps that will probably be chosen. */
struct tfh_likely {
	uint64_t step; /* TFH_NO_STEP: those of TFH_CHAIN_SLOW and _FAST and the median one */
	struct tfh_chain chain[TFH_CHAIN_LIKELY];
};
#define TFH_NO_STEP UINT64_MAX

void tfh_likely_init(struct tfh_likely *l, uint64_t step);
void tfh_likely_free(struct tfh_likely *l);
/* Moves the results for the steps of `to` and the chains linked to it into those chains. False: one
 * of the steps is not among the likely ones. */
bool tfh_likely_give(struct tfh_likely *l, struct tfh_chain *to);

/* The chain of a window; NULL: not requested. Steps and windows are not numbered alike: time
 * between loops is a window without a step, and several steps in one executed call share a
 * window. */
static inline struct tfh_chain *tfh_chain_of(const struct tfh_feed *f, uint32_t process,
					     size_t window)
{
	struct tfh_chain *c = f->chain;

	while (c && (c->window != window || c->process != process))
		c = c->next;
	return c;
}

/* Adds a link for the charged time [t0, t1). */
void tfh_chain_add(struct tfh_chain *c, const struct tfh_link *link);
/* Settles the tentative links of this chain and the next ones: if the device was busy, they become
 * its cause `device`; otherwise they keep their own. */
void tfh_chain_settle(struct tfh_chain *c, bool busy, enum tfh_cause device);

/* After the analysis: sorts the links of this chain and the next ones, names them after the calls
 * and ops of that time, and joins adjacent links with the same content. 0 or a negative errno. */
int tfh_chain_finish(struct tfh_chain *c, const struct tfh_feed *f, struct tfh_err *err);

#endif
