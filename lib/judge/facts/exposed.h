/* When a process on the CPU waits for its exchanges with other ranks. */
#ifndef TFH_JUDGE_FACTS_EXPOSED_H
#define TFH_JUDGE_FACTS_EXPOSED_H

#include "judge/facts/matches.h"

struct tfh_exposed_part {
	int64_t t0, t1;
	/* communication.transfer; communication.jitter: it only waits for another rank. */
	enum tfh_cause cause;
};

struct tfh_exposed {
	TFH_VEC(struct tfh_exposed_part) part; /* in order; they do not overlap */
};

/* 0 or -ENOMEM. Empty without such exchanges. The caller frees it, also after an error. */
int tfh_exposed_find(const struct tfh_facts *facts, const struct tfh_matches *matches,
		     struct tfh_exposed *out);
void tfh_exposed_free(struct tfh_exposed *e);
/* The cause at t0, TFH_CAUSE_NONE: no exchange is waited for. It stays the same until *until, which
 * is at most t1. */
enum tfh_cause tfh_exposed_at(const struct tfh_exposed *e, int64_t t0, int64_t t1, int64_t *until);
/* How much of [t0, t1) waits for exchanges, ns. */
int64_t tfh_exposed_ns(const struct tfh_exposed *e, int64_t t0, int64_t t1);

#endif
