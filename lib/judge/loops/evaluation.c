/*
 * Which intervals are steps of an evaluation: they launch a part of what a training step launches,
 * and occur in runs.
 */
#include "judge/loops/finder.h"
#include "judge/loops/loops.h"

/* Intervals with the same content. */
struct interval_kind {
	uint64_t rough;
	size_t n, runs, first;
	int64_t ns;
};

static uint32_t kinds_of(const struct tfh_finder *f, struct interval_kind *v, uint32_t most)
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
			v[n++] = (struct interval_kind){.rough = s->rough, .first = i};
		v[at].n++;
		v[at].runs += s->rough != before;
		v[at].ns += f->v[i + 1].t0 - s->t0;
		before = s->rough;
	}
	return n;
}

/* Whether it computes gradients or applies them, by the names of its kernels. */
static bool trains(const struct tfh_finder *f, const struct tfh_interval *a)
{
	const struct tfh_feed *feed = f->facts->feed;
	const struct tfh_token_kind *k;

	for (uint32_t i = a->from; i < a->to; i++)
		if ((k = tfh_launch_at(f, i)) && k->family == TFH_FAM_LAUNCH &&
		    tfh_name_trains(feed->name(feed->arg, f->facts->process, TFT_NAME_FUNCTION,
					       k->what, NULL, NULL)))
			return true;
	return false;
}

/* Whether runs of the two alternate, epoch after epoch. */
static bool in_turn(const struct interval_kind *e, const struct interval_kind *train)
{
	return e->runs > 1 && train->runs > 1;
}

/* Whether e launches the forward pass of steps that train: most of its functions are also launched
 * by these. If names show that these train and e does not, one is enough: others compute its
 * metrics. None is needed if the two come by turns: a function of its own computes the forward pass
 * without gradients, or acts. */
static bool is_pass_of(const struct tfh_finder *f, const struct interval_kind *e,
		       const struct interval_kind *train)
{
	const struct tfh_interval *a = &f->v[e->first], *b = &f->v[train->first];
	uint32_t n = tfh_common_launches(f, b, a, false);

	return (double)n >= TFH_LOOPS_EVAL_KNOWN_SHARE * a->launches ||
	       (TFH_DETECT_METRIC_KERNELS && (n || in_turn(e, train)) && trains(f, b) &&
		!trains(f, a));
}

/* Whether names show that it is only a forward pass (a picture is rendered, a sample is drawn),
 * with several training steps for each such interval. These may occur singly. */
static bool is_picture(const struct tfh_finder *f, const struct interval_kind *e,
		       const struct interval_kind *train)
{
	const struct tfh_interval *a = &f->v[e->first], *b = &f->v[train->first];

	return TFH_DETECT_LONE_PASSES && e->n * TFH_LOOPS_EVAL_RUN <= train->n &&
	       tfh_common_launches(f, b, a, false) == a->launches && trains(f, b) && !trains(f, a);
}

/* An evaluation is the forward pass without the backward pass and the update: at least a third of
 * what the neighbouring steps launch is missing. It occurs in runs. Unless it alternates with
 * training it takes less time, because a run spends most of its time on its purpose. If only one or
 * two steps launch more, they are the first ones, from before the work became a graph. */
static bool evaluates(const struct tfh_finder *f, const struct interval_kind *e,
		      const struct interval_kind *train)
{
	const struct tfh_interval *a = &f->v[e->first], *b = &f->v[train->first];

	if (train->n < TFH_LOOPS_FEWEST_STEPS || a->launches >= b->launches ||
	    (e->ns >= train->ns && !in_turn(e, train)))
		return false;
	return is_picture(f, e, train) ||
	       (e->runs * TFH_LOOPS_EVAL_RUN <= e->n && is_pass_of(f, e, train) &&
		(double)tfh_common_launches(f, a, b, false) <=
			TFH_LOOPS_EVAL_TRAIN_SHARE * b->launches);
}

/* The kind just before the first interval of kind e; NULL: none. */
static const struct interval_kind *kind_before(const struct tfh_finder *f,
					       const struct interval_kind *v, uint32_t n,
					       const struct interval_kind *e)
{
	size_t at = e->first;

	while (at && f->v[at - 1].launches <= f->best.few)
		at--;
	for (uint32_t i = 0; at && i < n; i++)
		if (v[i].rough == f->v[at - 1].rough)
			return &v[i];
	return NULL;
}

/* The kind just after the first run of kind e, if it occurs in runs itself: an agent acts before it
 * learns. A single interval with more launches ends what the intervals before it accumulated. */
static const struct interval_kind *kind_after(const struct tfh_finder *f,
					      const struct interval_kind *v, uint32_t n,
					      const struct interval_kind *e)
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
	struct interval_kind v[TFH_LOOPS_INTERVAL_KINDS];
	uint32_t n;
	int64_t all = 0, eval = 0;

	tfh_finder_cut(f, &f->best);
	n = kinds_of(f, v, TFH_LOOPS_INTERVAL_KINDS);
	for (uint32_t i = 0; i < n; i++)
		all += v[i].ns;
	for (uint32_t i = 0; i < n && f->best.n_eval < TFH_LOOPS_EVALS; i++) {
		const struct interval_kind *train = kind_before(f, v, n, &v[i]);
		train = train ? train : kind_after(f, v, n, &v[i]);
		if (!train || !evaluates(f, &v[i], train))
			continue;
		eval += in_turn(&v[i], train) ? 0 : v[i].ns;
		f->best.eval[f->best.n_eval++] = v[i].rough;
	}
	if (eval * TFH_LOOPS_EVAL_MOST_PART > all)
		f->best.n_eval = 0;
}
