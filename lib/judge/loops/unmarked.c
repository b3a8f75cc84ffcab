/*
 * A program may train for a few steps, which PyTorch names, and then do something else for most of
 * its time: generate, evaluate without a loader, search. If the run's tree has a loop before or
 * after the named steps that takes much more time, its iterations are the steps.
 */
#include <stdlib.h>

#include "judge/loops/unit.h"
#include "judge/stats.h"

/* The loops whose iterations may be the steps. An iteration that differs from the others divides a
 * loop in two. */
struct unmarked_loops {
	TFH_VEC(struct tfh_node *) loop;
	TFH_VEC(int64_t) begin; /* of the steps */
	int64_t end, ns;	/* of the last loop; of all */
	bool whole;		/* the begins of all iterations are known */
	int rc;
};

bool tfh_may_be_unmarked(const struct tfh_facts *facts, const struct tfh_loops *loops)
{
	return TFH_DETECT_UNMARKED && loops->window.n && loops->clock == TFH_STEP_CLOCK_MARK &&
	       facts->update.n && facts->mark.n < 2 && !facts->feed->imported;
}

/* The loop of the body with most time; NULL: it has none. */
static struct tfh_node *largest(const struct tfh_node *list)
{
	struct tfh_node *best = NULL;

	for (uint32_t i = 0; i < list->n_body; i++)
		if (list->body[i].body && (!best || list->body[i].ns > best->ns))
			best = &list->body[i];
	return best;
}

/* What the iterations of a loop usually launch. The loop's own sum also has what only few of them
 * do. */
static uint64_t usual_ops(const struct tfh_node *loop, bool with_inner)
{
	uint64_t ops = 0;

	for (uint32_t i = 0; i < loop->n_body; i++) {
		const struct tfh_node *v = &loop->body[i];
		if (!v->body)
			ops |= v->ops;
		else if (with_inner)
			ops |= usual_ops(v, true);
	}
	return ops;
}

/*
 * The loop whose iterations are steps. An iteration that contains fewer inner ones than there are
 * iterations, and launches something that those do not, is a step of layers or tokens. Otherwise
 * the inner ones are steps, as in an epoch.
 */
static struct tfh_node *of_steps(struct tfh_node *loop)
{
	struct tfh_node *inner;

	while ((inner = largest(loop)) && (inner->n >= loop->n * loop->n ||
					   !(usual_ops(loop, false) & ~usual_ops(inner, true))))
		loop = inner;
	return loop;
}

/* Whether two loops are the same, wherever their iterations begin. */
static bool equal(const struct tfh_node *a, const struct tfh_node *b)
{
	bool nested = !tfh_node_is_leaf(a) && !tfh_node_is_leaf(b);

	return tfh_nodes_alike(a, b) || (nested && usual_ops(a, true) == usual_ops(b, true));
}

static bool is_outside(const struct tfh_loops *loops, const struct tfh_node *v)
{
	int64_t from = loops->window.v[0].t0, to = loops->window.v[loops->window.n - 1].t1;

	return v->body && v->launches && (v->t0 >= to || v->t0 + v->ns <= from);
}

static void take(struct unmarked_loops *u, struct tfh_node *v)
{
	struct tfh_node *steps = of_steps(v);
	int64_t apart = v->t0 - u->end, usual = v->ns / (int64_t)v->n;

	/* The iteration that differed. */
	if (u->loop.n && steps == v && 2 * apart > usual && apart < 2 * usual)
		u->rc = TFH_PUSH(u->begin, u->end);
	for (size_t i = 0; i < steps->n_begin && !u->rc; i++)
		u->rc = TFH_PUSH(u->begin, steps->begin[i]);
	u->rc = u->rc ? u->rc : TFH_PUSH(u->loop, steps);
	u->whole &= steps->n_begin == steps->n;
	u->end = v->t0 + v->ns;
	u->ns += v->ns;
}

/* Takes all loops outside of the windows that are equal to this one. */
static struct unmarked_loops take_equal(const struct tfh_loops *loops, struct tfh_node *root,
					const struct tfh_node *like)
{
	struct unmarked_loops u = {.whole = true};

	for (uint32_t i = 0; i < root->n_body && !u.rc; i++)
		if (is_outside(loops, &root->body[i]) && equal(&root->body[i], like))
			take(&u, &root->body[i]);
	return u;
}

static void drop(struct unmarked_loops *u)
{
	free(u->loop.v);
	free(u->begin.v);
}

/* The time of the windows. The longest, which loads kernels, counts like the others. */
static int64_t usual_ns(const struct tfh_loops *loops)
{
	int64_t sum = 0, longest = 0, n = (int64_t)loops->window.n;

	TFH_EACH (i, loops->window.n) {
		int64_t ns = loops->window.v[i].t1 - loops->window.v[i].t0;
		sum += ns;
		longest = ns > longest ? ns : longest;
	}
	return n > 1 ? (sum - longest) / (n - 1) * n : sum;
}

static int by_time(const void *a, const void *b, void *arg)
{
	const int64_t *x = a, *y = b;

	(void)arg;
	return *x < *y ? -1 : *x > *y;
}

/* The median of the launches from one begin to the next. 0: out of memory */
static double usual_launches(const struct tfh_facts *facts, const struct unmarked_loops *u)
{
	double *v = tfh_big_array(u->begin.n, sizeof(*v)), median = 0;
	size_t n = 0;

	for (size_t i = 1; v && i < u->begin.n; i++)
		v[n++] = (double)tfh_launches_in(facts, u->begin.v[i - 1], u->begin.v[i]);
	if (n)
		median = tfh_select(v, n, n / 2);
	tfh_big_free(v);
	return median;
}

/* Drops what begins less than half of the usual launches after another step, or before the end:
 * part of an iteration that differed. Times do not show that: a host that is far ahead may launch
 * two steps at once, and then wait for the device. */
static void drop_partial(const struct tfh_facts *facts, struct unmarked_loops *u)
{
	int64_t *begin = u->begin.v;
	double usual;
	size_t n = 0;

	tfh_sort(begin, u->begin.n, sizeof(*begin), by_time, NULL);
	if (facts->late_launch)
		return;
	usual = usual_launches(facts, u);
	for (size_t i = 0; i < u->begin.n; i++)
		if (!n || 2 * (double)tfh_launches_in(facts, begin[n - 1], begin[i]) >= usual)
			begin[n++] = begin[i];
	while (n > 1 && 2 * (double)tfh_launches_in(facts, begin[n - 1], u->end) < usual)
		n--;
	u->begin.n = n;
}

static int use(const struct tfh_facts *facts, struct tfh_loops *loops, struct unmarked_loops *u)
{
	loops->clock = TFH_STEP_CLOCK_PERIOD;
	loops->clock_name = "period of the launches";
	for (size_t k = 0; k < u->loop.n; k++) /* the tree shows steps, not what is inside them */
		for (uint32_t i = 0; i < u->loop.v[k]->n_body; i++)
			tfh_node_clear(&u->loop.v[k]->body[i]);
	drop_partial(facts, u);
	return tfh_windows_at(loops, u->begin.v, u->begin.n, u->end);
}

int tfh_find_unmarked(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_node *root)
{
	struct unmarked_loops best = {0};

	for (uint32_t i = 0; i < root->n_body && !best.rc && tfh_may_be_unmarked(facts, loops);
	     i++) {
		if (!is_outside(loops, &root->body[i]))
			continue;
		struct unmarked_loops u = take_equal(loops, root, &root->body[i]);
		bool better = u.rc || u.ns > best.ns;
		drop(better ? &best : &u);
		best = better ? u : best;
	}
	int rc = best.rc;
	if (!rc && best.whole && best.begin.n >= loops->window.n &&
	    best.ns >= TFH_LOOPS_UNMARKED_TIMES * usual_ns(loops))
		rc = use(facts, loops, &best);
	drop(&best);
	return rc;
}
