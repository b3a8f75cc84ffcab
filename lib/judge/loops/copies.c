/*
 * Steps of a program that launches nothing: it measures copies, or something that is not recorded
 * computes. Its copies and waits are one sequence. If that repeats, from one end of the run to the
 * other, a step is what lies between two repetitions, and begins with the first call after a wait.
 */
#include "judge/loops/step_clock.h"

static uint64_t hash_of(const struct tfh_facts *facts, size_t i)
{
	return tfh_kind_of(facts, &facts->token.v[i])->hash;
}

static bool waits(const struct tfh_facts *facts, size_t i)
{
	const struct tfh_token_kind *k = tfh_kind_of(facts, &facts->token.v[i]);

	return k->family == TFH_FAM_SYNC || (k->family == TFH_FAM_COPY && k->dir == TFH_DIR_D2H);
}

static bool repeats(const struct tfh_facts *facts, size_t period)
{
	size_t n = facts->token.n - period, left = (size_t)((1 - TFH_CYCLE_SURE_SHARE) * (double)n);

	for (size_t i = 0; i < n; i++)
		if (hash_of(facts, i) != hash_of(facts, i + period) && !left--)
			return false;
	return true;
}

/* Whether a call is a copy that is the first one after a wait. */
static bool may_begin(const struct tfh_facts *facts, size_t i)
{
	return tfh_kind_of(facts, &facts->token.v[i])->family == TFH_FAM_COPY &&
	       (!i || waits(facts, i - 1));
}

/* The kind of call that begins the steps: one that does so once in the period in the middle of the
 * run. 0: there is none. */
static uint64_t find_begin(const struct tfh_facts *facts, size_t period)
{
	size_t from = facts->token.n / 2, to = from + period, times;

	for (size_t i = from; i < to; i++) {
		times = 0;
		for (size_t k = from; k < to; k++)
			times += may_begin(facts, k) && hash_of(facts, k) == hash_of(facts, i);
		if (may_begin(facts, i) && times == 1)
			return hash_of(facts, i);
	}
	return 0;
}

int tfh_mark_copies(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	size_t n = facts->token.n, period = 1;
	int rc = 0;

	if (!TFH_DETECT_ONLY_COPIES || facts->launches || facts->eager || facts->late.n ||
	    facts->late_lost)
		return 0;
	while (period <= TFH_CYCLE_MOST && period * TFH_LOOPS_ENOUGH_STEPS <= n &&
	       !repeats(facts, period))
		period++;
	if (period > TFH_CYCLE_MOST || period * TFH_LOOPS_ENOUGH_STEPS > n)
		return 0;
	uint64_t begin = find_begin(facts, period);
	for (size_t i = 0; i < n && begin && !rc; tfh_big_pass(++i)) {
		const struct tfh_token *t = &facts->token.v[i];
		if (hash_of(facts, i) == begin && may_begin(facts, i))
			rc = TFH_PUSH_BIG(
				loops->mark,
				((struct tfh_boundary){.t0 = t->t0, .t1 = tfh_token_end(t)}));
	}
	return rc;
}
