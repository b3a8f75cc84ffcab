/* Where the time of each loop's steps went: the causes of the steps, added up per part of the run's
 * tree. */
#include "judge/verdict/verdict.h"

/* The part that contains a step: the loop that is iterating at its middle; 0: none, only the run
 * does. *at advances from step to step, since they are in order of time. */
static uint32_t part_of(const struct tfh_loops *loops, const struct tfh_window *w, size_t *at)
{
	int64_t middle = w->t0 + (w->t1 - w->t0) / 2;

	while (*at + 1 < loops->n_round && loops->iteration[*at + 1].t0 <= middle)
		++*at;
	return loops->n_round && loops->iteration[*at].t0 < w->t1 ? loops->iteration[*at].part : 0;
}

static bool is_loop(const struct tfh_part_of_run *p)
{
	return p->kind >= TFH_BRANCH_EPOCH && p->kind <= TFH_BRANCH_STEP;
}

/* If a loop iterates several times per step, the steps are not its iterations but those of the loop
 * around it. */
static uint32_t home_of(const struct tfh_part_of_run *tree, uint32_t part,
			const uint64_t steps[TFH_LOOPS_PARTS])
{
	uint64_t n = steps[part];

	while (is_loop(&tree[tree[part].parent]) && tree[part].count >= 2 * n)
		part = tree[part].parent;
	return part;
}

static void add_step(const struct tfh_accounts *accounts, size_t i, struct tfh_part_of_run *p)
{
	const struct tfh_step *s = &accounts->step.v[i];

	if (!accounts->loops->window.v[i].steps) /* between loops */
		return;
	p->steps += accounts->loops->window.v[i].steps;
	p->steps_s += s->dur_s;
	p->compute_s += (double)s->breakdown[TFH_PART_COMPUTE];
	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		p->cause_s[c] += (double)accounts->step_cause[i][c];
}

/* A part comes before the parts it contains. */
static void add_up(struct tfh_result *r)
{
	for (uint32_t i = r->n_tree; i-- > 1;) {
		struct tfh_part_of_run *p = &r->tree[i], *parent = &r->tree[p->parent];
		parent->steps += p->steps;
		parent->steps_s += p->steps_s;
		parent->compute_s += p->compute_s;
		for (int c = 0; c < TFH_CAUSE_COUNT; c++)
			parent->cause_s[c] += p->cause_s[c];
	}
}

void tfh_find_loop_causes(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	const struct tfh_loops *loops = accounts->loops;
	uint64_t steps[TFH_LOOPS_PARTS] = {0};
	uint32_t home[TFH_LOOPS_PARTS];
	size_t at = 0;

	if (!accounts->step_cause || !r->n_tree)
		return;
	TFH_EACH (i, accounts->step.n)
		steps[part_of(loops, &loops->window.v[i], &at)] += loops->window.v[i].steps;
	for (uint32_t i = 0; i < r->n_tree; i++)
		home[i] = home_of(r->tree, i, steps);
	at = 0;
	TFH_EACH (i, accounts->step.n)
		add_step(accounts, i, &r->tree[home[part_of(loops, &loops->window.v[i], &at)]]);
	add_up(r);
}
