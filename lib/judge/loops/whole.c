/*
 * Waits that come after several steps. If a program launches the same sequence several times between two waits, and
 * nothing before or after it, the sequence is the step, because it contains what ends a step (an optimizer's update).
 * What repeats inside a step (layers, micro-batches) is surrounded by other launches. The first interval may differ:
 * the program initialises its weights there and runs its first steps uncompiled.
 */
#include <stdlib.h>
#include <string.h>

#include "judge/loops/anchor.h"

#define NO_FUNCTION UINT32_MAX
/* Stands for a graph, which contains many functions, with the number of its kernels. Two graphs of as many are the same
 * step, of which each has its own buffers. */
static const uint32_t GRAPH = UINT32_C(1) << 31;

static bool is_graph(uint32_t what)
{
	return what >= GRAPH && what != NO_FUNCTION;
}

struct sequence {
	TFH_VEC(uint32_t) what; /* launched functions, in order; graphs */
	uint32_t period;	/* length of the step, 0: not known yet */
	uint32_t launches;	/* of the step */
	double whole, all;	/* launches in intervals that consist of steps only; all launches */
	double odd_first;	/* launches of the first interval, if it does not */
	uint64_t steps, intervals;
	uint64_t each; /* steps of every interval behind the first one; 0: they differ */
	uint32_t end;  /* of the first interval, in tokens */
	int rc;
};

static bool repeats(const struct sequence *s, size_t p)
{
	for (size_t i = p; i < s->what.n; i++)
		if (s->what.v[i] != s->what.v[i - p])
			return false;
	return s->what.n % p == 0;
}

/* The first function or graph that occurs once in the first p launches. */
static uint32_t once(const struct sequence *s, size_t p)
{
	for (size_t i = 0; i < p; i++) {
		size_t n = 0;
		for (size_t k = 0; k < p; k++)
			n += s->what.v[k] == s->what.v[i];
		if (n == 1)
			return s->what.v[i];
	}
	return NO_FUNCTION;
}

/* The number of launches in the first p; a graph counts as several. */
static uint32_t launches(const struct sequence *s, size_t p)
{
	uint32_t n = 0;

	for (size_t i = 0; i < p; i++)
		n += is_graph(s->what.v[i]) ? TFH_LOOPS_GRAPH_LAUNCHES : 1;
	return n;
}

/* Whether the first p launches have as many different functions as a step has at least. */
static bool are_a_step(const struct sequence *s, size_t p)
{
	uint32_t n = 0;

	for (size_t i = 0; i < p; i++) {
		size_t k = 0;
		while (s->what.v[k] != s->what.v[i])
			k++;
		n += is_graph(s->what.v[i]) ? TFH_LOOPS_STEP_FUNCTIONS : k == i;
	}
	return n >= TFH_LOOPS_STEP_FUNCTIONS;
}

static void close_interval(struct sequence *s)
{
	size_t n = s->what.n;
	bool whole;

	for (size_t p = 1; !s->period && p * 2 <= n; p++)
		if (repeats(s, p) && are_a_step(s, p)) {
			s->period = (uint32_t)p;
			s->launches = launches(s, p);
		}
	whole = s->period && n && repeats(s, s->period);
	if (s->intervals == 1)
		s->each = whole ? n / s->period : 0;
	else if (s->intervals > 1 && n && (!whole || n / s->period != s->each))
		s->each = 0;
	if (whole) {
		s->whole += (double)n;
		s->steps += n / s->period;
	} else if (!s->intervals) {
		s->odd_first = (double)n;
	}
	s->intervals += n > 0;
	s->all += (double)n;
}

static int add_launch(struct sequence *s, const struct tfh_token_kind *k)
{
	if (!tfh_is_launch(k) || s->what.n > TFH_VERDICT_INNER_TOKENS)
		return 0;
	return TFH_PUSH(s->what, k->family == TFH_FAM_LAUNCH ? k->what
							     : GRAPH | (k->what & (GRAPH / 2 - 1)));
}

/* Whether one step is missing in the first interval, before the first call that each step makes: it was not compiled
 * yet, and launched kernel by kernel what became a graph. */
static bool lacks_one(const struct tfh_facts *facts, const struct tfh_anchor *a,
		      const struct sequence *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->end; i++) {
		const struct tfh_token_kind *k = tfh_kind_of(facts, &facts->token.v[i]);
		n += tfh_is_launch(k) && k->what == a->what &&
		     (k->family == TFH_FAM_GRAPH_LAUNCH) == (a->kind == TFH_ANCHOR_GRAPH);
	}
	return s->each > 1 && n && n + 1 == s->each && s->odd_first > (double)n * s->period;
}

bool tfh_part_intervals(const struct tfh_facts *facts, struct tfh_anchor *a, int *rc)
{
	struct tfh_cutter c = {.facts = facts, .anchor = a};
	struct sequence s = {0};
	uint32_t first = NO_FUNCTION, at = 0;
	struct tfh_interval interval;

	if (a->kind != TFH_ANCHOR_WAIT || a->turn > 1)
		return false;
	while (!s.rc && tfh_cut_next(&c, &interval)) {
		for (; at < c.n && !s.rc; at++)
			s.rc = add_launch(&s, tfh_kind_of(facts, &facts->token.v[at]));
		if (s.rc)
			break;
		s.end = s.intervals ? s.end : c.n;
		close_interval(&s);
		if (s.period && first == NO_FUNCTION)
			first = once(&s, s.period);
		s.what.n = 0;
	}
	double all = s.all - (s.intervals > TFH_LOOPS_FEWEST_STEPS ? s.odd_first : 0);
	bool several = !s.rc && first != NO_FUNCTION && s.steps >= 2 * s.intervals &&
		       s.steps <= TFH_LOOPS_SEVERAL_TIMES * s.intervals * s.launches &&
		       s.whole >= TFH_TURN_SURE_SHARE * all;
	if (several)
		*a = (struct tfh_anchor){.kind = is_graph(first) ? TFH_ANCHOR_GRAPH
								 : TFH_ANCHOR_KERNEL,
					 .what = first & ~GRAPH,
					 .turn = 1};
	if (several)
		a->one_before = lacks_one(facts, a, &s);
	*rc = *rc ? *rc : s.rc;
	free(s.what.v);
	return several;
}
