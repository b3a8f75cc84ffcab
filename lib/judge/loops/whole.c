/*
 * Waits that come after several steps. Where all that a program launches between two waits is the same sequence several times over,
 * with nothing before or behind, the sequence is the step: whatever ends a step (an optimizer's update) is in it. What is
 * repeated inside a step (layers, micro-batches) has something else around it.
 */
#include <stdlib.h>
#include <string.h>

#include "judge/loops/anchor.h"

#define NO_FUNCTION UINT32_MAX

struct sequence {
	TFH_VEC(uint32_t) what; /* functions launched, in order; graphs as one */
	uint32_t period;	/* launches of the step, 0: not known yet */
	double whole, all; /* launches in stretches that are steps and nothing else, and in all */
	uint64_t steps, stretches;
	int rc;
};

static bool repeats(const struct sequence *s, size_t p)
{
	for (size_t i = p; i < s->what.n; i++)
		if (s->what.v[i] != s->what.v[i - p])
			return false;
	return s->what.n % p == 0;
}

/* The first function that comes once in the first p launches. */
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

static uint32_t distinct(const struct sequence *s, size_t p)
{
	uint32_t n = 0;

	for (size_t i = 0; i < p; i++) {
		size_t k = 0;
		while (s->what.v[k] != s->what.v[i])
			k++;
		n += k == i;
	}
	return n;
}

static void close_stretch(struct sequence *s)
{
	size_t n = s->what.n;

	for (size_t p = TFH_LOOPS_STEP_FUNCTIONS; !s->period && p * 2 <= n; p++)
		if (repeats(s, p) && distinct(s, p) >= TFH_LOOPS_STEP_FUNCTIONS)
			s->period = (uint32_t)p;
	if (s->period && n && repeats(s, s->period)) {
		s->whole += (double)n;
		s->steps += n / s->period;
	}
	s->stretches += n > 0;
	s->all += (double)n;
}

static int add_launch(struct sequence *s, const struct tfh_token_kind *k)
{
	if (!tfh_is_launch(k) || s->what.n > TFH_VERDICT_INNER_TOKENS)
		return 0;
	return TFH_PUSH(s->what, k->family == TFH_FAM_LAUNCH ? k->what : 0);
}

bool tfh_part_stretches(const struct tfh_facts *facts, struct tfh_anchor *a, int *rc)
{
	struct tfh_cutter c = {.facts = facts, .anchor = a};
	struct sequence s = {0};
	uint32_t first = NO_FUNCTION, at = 0;
	struct tfh_lap lap;

	if (a->kind != TFH_ANCHOR_WAIT || a->turn > 1)
		return false;
	while (!s.rc && tfh_cut_next(&c, &lap)) {
		for (; at < c.n && !s.rc; at++)
			s.rc = add_launch(&s, tfh_kind_of(facts, &facts->token.v[at]));
		if (s.rc)
			break;
		close_stretch(&s);
		if (s.period && first == NO_FUNCTION)
			first = once(&s, s.period);
		s.what.n = 0;
	}
	bool several = !s.rc && first != NO_FUNCTION && s.steps >= 2 * s.stretches &&
		       s.steps <= TFH_LOOPS_SEVERAL_TIMES * s.stretches * s.period &&
		       s.whole >= TFH_TURN_SURE_SHARE * s.all;
	if (several)
		*a = (struct tfh_anchor){.kind = TFH_ANCHOR_KERNEL, .what = first, .turn = 1};
	*rc = *rc ? *rc : s.rc;
	free(s.what.v);
	return several;
}
