/*
 * Which intervals are steps of an evaluation: they launch part of what a training step launches, and come in runs.
 */
#include "judge/loops/finder.h"

/* Intervals of the same content. */
struct sort {
	uint64_t rough;
	size_t n, runs, first;
	int64_t ns;
};

static uint32_t sorts_of(const struct tfh_finder *f, struct sort *v, uint32_t most)
{
	uint64_t before = 0;
	uint32_t n = 0;

	for (size_t i = 0; i + 1 < f->n; i++) {
		const struct tfh_interval *s = &f->v[i];
		uint32_t at = 0;
		if (s->launches <= f->best.few)
			continue;
		while (at < n && v[at].rough != s->rough)
			at++;
		if (at == most)
			continue;
		if (at == n)
			v[n++] = (struct sort){.rough = s->rough, .first = i};
		v[at].n++;
		v[at].runs += s->rough != before;
		v[at].ns += f->v[i + 1].t0 - s->t0;
		before = s->rough;
	}
	return n;
}

/* Launches of b whose function a launches, too. */
static uint32_t shared(const struct tfh_finder *f, const struct tfh_interval *a,
		       const struct tfh_interval *b)
{
	const struct tfh_token_kind *k;
	bool has[256] = {false};
	uint32_t n = 0;

	for (uint32_t i = a->from; i < a->to; i++)
		if ((k = tfh_launch_at(f, i)))
			has[k->bucket] = true;
	for (uint32_t i = b->from; i < b->to; i++)
		n += (k = tfh_launch_at(f, i)) && has[k->bucket];
	return n;
}

/* Whether runs of both follow each other, epoch after epoch. */
static bool in_turn(const struct sort *e, const struct sort *train)
{
	return e->runs > 1 && train->runs > 1;
}

/* The way there without the way back and the update: mostly functions that the steps just before it
 * launch, too, but not a third of theirs. In runs. What does not come in turn with training takes
 * less time than it: what a run spends most of its time on is what it is for. One or two steps that launch more are the first,
 * before what they launch has become a graph. */
static bool evaluates(const struct tfh_finder *f, const struct sort *e, const struct sort *train)
{
	const struct tfh_interval *a = &f->v[e->first], *b = &f->v[train->first];

	return train->n >= TFH_LOOPS_FEWEST_STEPS && e->runs * TFH_LOOPS_EVAL_RUN <= e->n &&
	       (e->ns < train->ns || in_turn(e, train)) && a->launches < b->launches &&
	       (double)shared(f, b, a) >= TFH_LOOPS_EVAL_KNOWN_SHARE * a->launches &&
	       (double)shared(f, a, b) <= TFH_LOOPS_EVAL_TRAIN_SHARE * b->launches;
}

/* What comes just before the first of that sort, NULL: nothing. */
static const struct sort *before(const struct tfh_finder *f, const struct sort *v, uint32_t n,
				 const struct sort *e)
{
	size_t at = e->first;

	while (at && f->v[at - 1].launches <= f->best.few)
		at--;
	for (uint32_t i = 0; at && i < n; i++)
		if (v[i].rough == f->v[at - 1].rough)
			return &v[i];
	return NULL;
}

/* What comes just behind the first run of them, in runs itself: an agent acts before it learns. A single one that does more
 * ends what those before it gathered. */
static const struct sort *behind(const struct tfh_finder *f, const struct sort *v, uint32_t n,
				 const struct sort *e)
{
	size_t at = e->first;

	while (at < f->n && (f->v[at].rough == e->rough || f->v[at].launches <= f->best.few))
		at++;
	for (uint32_t i = 0; i < n && at < f->n; i++)
		if (v[i].rough == f->v[at].rough)
			return v[i].runs * TFH_LOOPS_EVAL_RUN <= v[i].n ? &v[i] : NULL;
	return NULL;
}

void tfh_find_evaluation(struct tfh_finder *f)
{
	struct sort v[TFH_LOOPS_SORTS];
	uint32_t n;
	int64_t all = 0, eval = 0;

	tfh_finder_cut(f, &f->best);
	n = sorts_of(f, v, TFH_LOOPS_SORTS);
	for (uint32_t i = 0; i < n; i++)
		all += v[i].ns;
	for (uint32_t i = 0; i < n && f->best.n_eval < TFH_LOOPS_EVALS; i++) {
		const struct sort *train = before(f, v, n, &v[i]);
		train = train ? train : behind(f, v, n, &v[i]);
		if (!train || !evaluates(f, &v[i], train))
			continue;
		eval += in_turn(&v[i], train) ? 0 : v[i].ns;
		f->best.eval[f->best.n_eval++] = v[i].rough;
	}
	if (eval * TFH_LOOPS_EVAL_MOST_PART > all)
		f->best.n_eval = 0;
}
