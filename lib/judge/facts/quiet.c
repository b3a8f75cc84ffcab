/*
 * Long intervals without a launch. If a window has no op, they show whether the device had nothing
 * to do or its times were lost. If there are too many, the shorter ones are dropped; whether there
 * was a launch then is unknown.
 */

#include "base/bisect.h"
#include "judge/facts/survey.h"

static void drop_short(struct tfh_facts *facts)
{
	size_t n = 0;

	facts->quiet_ns *= 2;
	for (size_t i = 0; i < facts->quiet.n; i++)
		if (facts->quiet.v[i].t1 - facts->quiet.v[i].t0 >= facts->quiet_ns)
			facts->quiet.v[n++] = facts->quiet.v[i];
	facts->quiet.n = n;
}

int tfh_quiet_keep(struct tfh_facts *facts, int64_t t1)
{
	struct tfh_quiet q = {facts->launched, t1};

	if (facts->quiet.n >= TFH_FACTS_QUIET)
		drop_short(facts);
	return TFH_PUSH(facts->quiet, q);
}

/* Checks the last such interval that began at or before t0. */
bool tfh_launched_in(const struct tfh_facts *facts, int64_t t0, int64_t t1)
{
	size_t lo = TFH_BISECT(i, 0, facts->quiet.n, facts->quiet.v[i].t0 <= t0);

	return !lo || facts->quiet.v[lo - 1].t1 <= t1;
}

static size_t counted_until(const struct tfh_facts *facts, int64_t t)
{
	return TFH_BISECT(i, 0, facts->call_at.n, facts->call_at.v[i] <= t);
}

uint64_t tfh_calls_at_most(const struct tfh_facts *facts, int64_t t0, int64_t t1)
{
	return (counted_until(facts, t1) - counted_until(facts, t0) + 1) * TFH_FACTS_CALLS_APART;
}
