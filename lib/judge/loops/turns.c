/*
 * Backward passes that come by turns are parts of one step. A program that trains two models (a
 * generator and a discriminator, an actor and a critic) calls each pass from a line of its own, and
 * one after the other in each iteration. Where lines are not known, or one line trains both models,
 * the sizes of the passes show it.
 */
#include "judge/loops/turns.h"

#include <errno.h>

struct tfh_passes tfh_passes_in(const struct tfh_facts *facts, const struct tfh_boundary *mark,
				size_t *at)
{
	struct tfh_passes p = {0};

	for (; *at < facts->exec.n && facts->exec.v[*at].t1 <= mark->t1; ++*at) {
		const struct tfh_exec *e = &facts->exec.v[*at];
		if (e->t0 < mark->t0)
			continue;
		p.n++;
		p.launches += tfh_launches_in(facts, e->t0, e->t1);
		p.ns += e->t1 - e->t0;
		p.caller = e->stack;
	}
	return p;
}

#define UNKNOWN UINT8_MAX
_Static_assert(TFH_LOOPS_CALLERS < UNKNOWN, "numbers of callers");

struct update {
	struct tfh_passes passes;
	uint8_t caller; /* its number */
	bool part;	/* of the step before */
};

/* Where the passes are called from, and which of these places follows which. */
struct callers {
	size_t n, known;
	uint32_t stack[TFH_LOOPS_CALLERS];
	size_t after[TFH_LOOPS_CALLERS][TFH_LOOPS_CALLERS]; /* [a][b]: b directly after a */
	size_t first[TFH_LOOPS_CALLERS];		    /* its first pass */
	uint8_t before[TFH_LOOPS_CALLERS]; /* the one that it always follows; itself: none */
};

/* The number of a stack among the callers; UNKNOWN also if there are too many. */
static uint8_t number_of(struct callers *c, uint32_t stack)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->stack[i] == stack)
			return (uint8_t)i;
	if (!stack || c->n == TFH_LOOPS_CALLERS)
		return UNKNOWN;
	c->stack[c->n] = stack;
	return (uint8_t)c->n++;
}

/* Whether b nearly always follows a, and occurs so often that in a random order it would also have
 * followed itself. */
static bool always_after(const struct callers *c, size_t a, size_t b)
{
	size_t all = 0;

	for (size_t i = 0; i < c->n; i++)
		all += c->after[i][b];
	return (double)c->after[a][b] >= TFH_CYCLE_SURE_SHARE * (double)all &&
	       all * all >= TFH_LOOPS_TURNS_BY_CHANCE * c->known;
}

static void find_callers(struct callers *c, struct update *v, size_t n)
{
	uint8_t last = UNKNOWN;

	for (size_t i = 0; i < n; last = v[i++].caller) {
		v[i].caller = number_of(c, v[i].passes.caller);
		c->known += v[i].caller != UNKNOWN;
		if (v[i].caller != UNKNOWN && last != UNKNOWN)
			c->after[last][v[i].caller]++;
	}
	for (uint8_t b = 0; b < c->n; b++) {
		c->before[b] = b;
		for (uint8_t a = 0; a < c->n; a++)
			if (a != b && always_after(c, a, b))
				c->before[b] = a;
	}
}

/* Whether the passes of this caller belong to the step before: it always follows another one. If
 * callers follow each other in a cycle, the one that came first in the run begins the step. */
static bool continues(const struct callers *c, uint8_t b)
{
	uint8_t at = b;
	size_t first = c->first[b];

	for (size_t k = 0; k < c->n; k++) {
		at = c->before[at];
		first = c->first[at] < first ? c->first[at] : first;
		if (at == b)
			return first != c->first[b];
	}
	return true;
}

/* Joins the steps that continue the one before. */
static void join(struct tfh_loops *loops, const struct update *v)
{
	struct tfh_boundary *m = loops->mark.v;
	size_t kept = 0, n = loops->mark.n;

	for (size_t i = 0; i < n; i++) {
		if (kept && v[i].part)
			m[kept - 1].t1 = m[i].t1;
		else
			m[kept++] = m[i];
	}
	loops->mark.n = kept;
}

/* By the lines that call the passes. At the beginning of a recording these may not be known: before
 * a pass that always follows another one, there was that one. Returns how many are part of the step
 * before. */
static size_t by_callers(struct update *v, size_t n)
{
	struct callers c = {0};
	size_t parts = 0;

	find_callers(&c, v, n);
	for (size_t i = n; i-- > 0;) {
		if (!v[i].passes.caller && i + 1 < n && v[i + 1].caller != UNKNOWN)
			v[i].caller = c.before[v[i + 1].caller];
		if (v[i].caller != UNKNOWN)
			c.first[v[i].caller] = i;
	}
	for (size_t i = 0; i < n; i++) {
		v[i].part = v[i].caller != UNKNOWN && continues(&c, v[i].caller);
		parts += v[i].part;
	}
	return parts;
}

/* Whether there are more passes, or larger ones. If the device is far behind, a pass may wait any
 * time until its last launch is accepted, so launches are more reliable than times. A pass that
 * exchanges gradients waits for the slowest rank, so then times say nothing: a rank that saves
 * every second step makes every second pass of all others longer. */
static bool more_passes(const struct tfh_passes *a, const struct tfh_passes *b, bool exchanges)
{
	if (a->n != b->n)
		return a->n > b->n;
	return a->launches != b->launches ? a->launches > b->launches : !exchanges && a->ns > b->ns;
}

/* By the sizes of the passes: whether they are more and fewer, or large and small, by turns. Work
 * in every second step besides training does not change those. */
static bool by_sizes(const struct update *v, size_t n, bool exchanges)
{
	size_t longer[2] = {0};

	for (size_t i = 0; i < n; i++) {
		if (!v[i].passes.ns)
			return false;
		longer[i % 2] += i && more_passes(&v[i].passes, &v[i - 1].passes, exchanges);
	}
	size_t most = longer[0] > longer[1] ? longer[0] : longer[1],
	       least = longer[0] + longer[1] - most;
	return (double)(most - least) >= TFH_CYCLE_SURE_SHARE * (double)(n / 2);
}

int tfh_join_turns(const struct tfh_facts *facts, struct tfh_loops *loops, enum tfh_turns how)
{
	size_t n = loops->mark.n, at = 0;
	struct update *v;

	if (!TFH_DETECT_UNITS || n < TFH_VERDICT_STEADY_STEPS)
		return 0;
	v = tfh_big_array(n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		v[i].passes = tfh_passes_in(facts, &loops->mark.v[i], &at);
	bool pairs = by_callers(v, n) < n / 2 && how != TFH_TURNS_OF_CALLERS &&
		     by_sizes(v, n, how == TFH_TURNS_OF_RANKS);
	for (size_t i = 0; i < n && pairs; i++)
		v[i].part = i % 2;
	join(loops, v);
	tfh_big_free(v);
	return 0;
}
