/*
 * Steps by the programs that XLA executes. A program compiled again for other shapes keeps its
 * name, so all programs of a name are one function. In a trace of JAX's profiler a range covers
 * only the call, so a program's time lasts until the next call. There the executions of a program
 * are the steps only if it takes most of the time and of the calls, since a step that is not
 * compiled as a whole calls many small programs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "judge/loops/step_clock.h"

/* All programs of a name. */
struct program {
	const char *name;
	size_t length;
	uint64_t n;
	int64_t ns, longest;
};

struct programs {
	TFH_VEC(struct program) v;
	TFH_VEC(uint32_t) of; /* by the range's name: index in v, + 1; 0: not looked up */
};

/* Index of the program; UINT32_MAX: out of memory */
static uint32_t look_up(const struct tfh_facts *facts, struct programs *p, uint32_t name)
{
	uint32_t id = name & ~TFH_FACTS_PROGRAM, at = 0;
	struct program new = {0};

	while (p->of.n <= id)
		if (TFH_PUSH(p->of, 0))
			return UINT32_MAX;
	if (p->of.v[id])
		return p->of.v[id] - 1;
	new.name = tfh_function_name(facts, name, &new.length);
	while (at < p->v.n &&
	       (p->v.v[at].length != new.length || memcmp(p->v.v[at].name, new.name, new.length)))
		at++;
	if (at == p->v.n && TFH_PUSH(p->v, new))
		return UINT32_MAX;
	p->of.v[id] = at + 1;
	return at;
}

static int sum_up(const struct tfh_facts *facts, struct programs *p)
{
	TFH_EACH (i, facts->program.n) {
		const struct tfh_exec *x = &facts->program.v[i];
		bool next = facts->feed->imported && i + 1 < facts->program.n;
		int64_t ns = (next ? x[1].t0 : x->t1) - x->t0;
		uint32_t at = look_up(facts, p, x->name);
		if (at == UINT32_MAX)
			return -ENOMEM;
		p->v.v[at].n++;
		p->v.v[at].ns += ns;
		p->v.v[at].longest = ns > p->v.v[at].longest ? ns : p->v.v[at].longest;
	}
	return 0;
}

/* The program with most time. A first execution also loads its kernels, so each one's longest is
 * left out. */
static uint32_t longest(const struct programs *p)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < p->v.n; i++)
		if (p->v.v[i].ns - p->v.v[i].longest > p->v.v[best].ns - p->v.v[best].longest)
			best = i;
	return best;
}

static int mark(const struct tfh_facts *facts, struct tfh_loops *loops, struct programs *p,
		uint32_t best)
{
	int rc = 0;

	loops->clock_name =
		tfh_arena_text(facts->arena, "%.*s", (int)p->v.v[best].length, p->v.v[best].name);
	for (size_t i = 0; i < facts->program.n && !rc; tfh_big_pass(++i)) {
		const struct tfh_exec *x = &facts->program.v[i];
		if (look_up(facts, p, x->name) == best)
			rc = TFH_PUSH_BIG(loops->mark,
					  ((struct tfh_boundary){.t0 = x->t0, .t1 = x->t1}));
	}
	return rc;
}

/* Whether the executions of a program are steps. */
static bool are_steps(const struct tfh_facts *facts, const struct programs *p, uint32_t best)
{
	const struct program *b = &p->v.v[best];
	int64_t ns = 0;

	if (!facts->feed->imported)
		return b->n >= TFH_LOOPS_FEWEST_EXECS;
	for (uint32_t i = 0; i < p->v.n; i++)
		ns += p->v.v[i].ns;
	return b->n >= TFH_LOOPS_FEWEST_STEPS && TFH_LOOPS_COVERED_PART * b->ns >= ns &&
	       TFH_LOOPS_COVERED_PART * b->n >= facts->program.n;
}

int tfh_find_programs(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	struct programs p = {0};
	int rc = sum_up(facts, &p);
	uint32_t best = longest(&p);

	if (!rc && p.v.n && are_steps(facts, &p, best))
		rc = mark(facts, loops, &p, best);
	free(p.v.v);
	free(p.of.v);
	return rc;
}
