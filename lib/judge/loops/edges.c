/*
 * A step of which one part is at the begin of the run and the rest at its end. If a program's loop
 * begins before the call that marks the steps, or works one batch ahead, the launches before the
 * second step together with those of the last one may be those of three steps. Then the run has one
 * step more than it has marks.
 */
#include "base/bisect.h"
#include "base/hash.h"

#include "judge/loops/step_clock.h"

struct content {
	uint64_t sum; /* independent of order, like tfh_interval.rough, but with the copies */
	size_t launches;
};

static void add(const struct tfh_facts *facts, size_t token, struct content *c)
{
	const struct tfh_token_kind *k = tfh_kind_of(facts, &facts->token.v[token]);

	c->launches += tfh_is_launch(k);
	c->sum += tfh_is_launch(k)	      ? k->rough
		  : k->family == TFH_FAM_COPY ? tfh_hash_u64(k->dir + 1ull)
					      : 0;
}

static struct content content(const struct tfh_facts *facts, size_t from, size_t to)
{
	struct content c = {0};

	for (size_t i = from; i < to; i++)
		add(facts, i, &c);
	return c;
}

/* The first token of step i + 1 of `loops->mark`, counted from 0. */
static size_t end_of(const struct tfh_facts *facts, const struct tfh_loops *loops, size_t i)
{
	const struct tfh_boundary *m = loops->mark.v;
	int64_t t = loops->mark_ends ? m[i].t1 : m[i + 1].t0;

	return TFH_BISECT(k, 0, facts->token.n, facts->token.v[k].t0 < t);
}

/* The token at which the last `launches` launches before token `to` begin. */
static size_t left(const struct tfh_facts *facts, size_t to, size_t launches)
{
	while (to && launches)
		launches -= tfh_is_launch(tfh_kind_of(facts, &facts->token.v[--to]));
	return to;
}

/* The token at which the tokens before `end`, the end of the first step found, have exactly the
 * wanted content; SIZE_MAX: none. */
static size_t begin_of(const struct tfh_facts *facts, size_t end, const struct content *wanted)
{
	struct content c = {0};

	while (end && c.launches <= wanted->launches) {
		add(facts, --end, &c);
		if (c.sum == wanted->sum && c.launches == wanted->launches)
			return end;
	}
	return SIZE_MAX;
}

int tfh_mark_edges(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	const size_t n = loops->mark.n;

	if (!TFH_DETECT_EDGES || n < TFH_LOOPS_ENOUGH_STEPS || facts->feed->imported)
		return 0;
	size_t first = end_of(facts, loops, 0), last = end_of(facts, loops, n - 2);
	struct content one = content(facts, first, end_of(facts, loops, 1));
	struct content before = content(facts, end_of(facts, loops, n - 3), last);
	struct content tail = content(facts, last, facts->token.n);
	struct content head = {3 * one.sum - tail.sum, 3 * one.launches - tail.launches};
	if (!one.launches || one.sum != before.sum || one.launches != before.launches ||
	    tail.launches >= 3 * one.launches)
		return 0;
	size_t at = begin_of(facts, first, &head), to = facts->token.n;
	if (at == SIZE_MAX)
		return 0;
	bool in_head = head.launches > one.launches;
	if (!in_head)
		at = left(facts, to, one.launches);
	else if (loops->mark_ends)
		at = left(facts, first, one.launches);
	const struct tfh_token *t = &facts->token.v[at];
	struct tfh_boundary mark = {.t0 = t->t0, .t1 = tfh_token_end(t)};
	if (loops->mark_ends)
		mark.t1 = in_head ? loops->mark.v[0].t1 : facts->last_work;
	if (loops->mark_ends && in_head)
		loops->mark.v[0].t1 = t->t0;
	return TFH_PUSH_BIG(loops->mark, mark);
}
