/* A result's memory, and what follows from single members. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/facts/place_role.h"
#include "judge/result_make.h"
#include "model/big.h"

/* A result and the memory its strings live in. */
struct owned {
	struct tfh_result r; /* first: the address is the same */
	struct tfh_arena arena;
};

struct tfh_result *tfh_result_new(uint32_t process, struct tfh_arena **arena)
{
	struct owned *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	tfh_arena_init(&o->arena, 0);
	o->r.process = process;
	*arena = &o->arena;
	return &o->r;
}

void *tfh_result_alloc(struct tfh_result *r, size_t n, size_t size)
{
	return tfh_arena_array(&((struct owned *)r)->arena, n, size);
}

double tfh_into_run(const struct tfh_result *r, double s)
{
	return s - (r->n_tree ? r->tree[0].begin_s : 0);
}

uint32_t tfh_recurring_of(const struct tfh_result *r, enum tfh_segment kind)
{
	for (uint32_t i = 0; i < r->n_recurring; i++)
		if (r->recurring[i].kind == kind)
			return i + 1;
	return 0;
}

bool tfh_makes_graphs(const struct tfh_result *r)
{
	return 2 * r->pattern.graph_steps > r->steps.count;
}

enum tfh_gain tfh_gain_of(const struct tfh_whatif *w)
{
	return !isnan(w->step_s)			? TFH_GAIN_PREDICTED
	       : !(w->about_s > 0)			? TFH_GAIN_BOUND
	       : w->no_bound && w->high_s <= w->about_s ? TFH_GAIN_LEAST
							: TFH_GAIN_ESTIMATED;
}

double tfh_called_python_s(const struct tfh_seen_workers *k)
{
	double s = 0;

	for (uint32_t i = 0; k->threads && i < k->n_node; i++)
		if (k->node[i].parent == i && tfh_in_script_ops(k->node[i].file))
			s += k->node[i].s_per_step;
	return s;
}

bool tfh_start_together(const struct tfh_start_line *a, const struct tfh_start_line *b)
{
	return a == b || (!a->imports && !b->imports && strcmp(a->function, "<module>") &&
			  !strcmp(a->function, b->function) && !strcmp(a->file, b->file));
}

void tfh_result_free(struct tfh_result *r)
{
	struct owned *o = (struct owned *)r;

	if (!r)
		return;
	tfh_big_free(r->step);
	tfh_big_free(r->step_cause);
	tfh_arena_free(&o->arena);
	free(o);
}
