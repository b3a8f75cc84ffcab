/*
 * Windows of a period that hold several iterations of the program's loop: the clock has found only
 * every n-th step, the one that waits. If most windows launch one sequence so many times over, each
 * of these is a step. Device times tell the steps of a window apart, so that each of them gets what
 * delayed it: what a program does once before a hundred steps belongs to the first one. Without
 * them, the wait at the end is for all of them, so they share the window equally.
 */
#include <stdlib.h>

#include "base/bisect.h"
#include "judge/loops/step_clock.h"

struct divided {
	const struct tfh_facts *facts;
	struct tfh_loops *loops;
	struct tfh_gpu_info gpu;
	uint64_t per;	/* steps of a window */
	bool flat;	/* the loop is not nested in another */
	size_t alike;	/* windows whose steps launch the same */
	uint64_t first; /* the first function that each step launches once, by its hash; 0: none */
	bool apart;	/* some windows' steps are told apart */
	struct tfh_loops out;
};

/* The tokens of a window. */
struct token_range {
	size_t from, to;
};

static struct token_range tokens_in(const struct tfh_facts *facts, const struct tfh_window *w)
{
	const struct tfh_token *t = facts->token.v;
	size_t from = TFH_BISECT(k, 0, facts->token.n, t[k].t0 < w->t0);

	return (struct token_range){from, TFH_BISECT(k, from, facts->token.n, t[k].t0 < w->t1)};
}

static bool launch_at(const struct tfh_facts *facts, size_t i)
{
	return tfh_is_launch(tfh_kind_of(facts, &facts->token.v[i]));
}

static uint64_t hash_at(const struct tfh_facts *facts, size_t i)
{
	return tfh_kind_of(facts, &facts->token.v[i])->rough;
}

/* The launches of a window, by the hashes of their functions. */
struct window_launches {
	TFH_VEC(uint64_t) sorted;
	TFH_VEC(uint64_t) regular; /* in order: of functions launched n times each iteration */
	size_t n_regular;
	bool between; /* others are launched after the first iteration, and before the last one */
};

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint64_t times_of(const struct window_launches *l, uint64_t hash)
{
	const uint64_t *v = l->sorted.v;
	size_t from = TFH_BISECT(i, 0, l->sorted.n, v[i] < hash);

	return TFH_BISECT(i, from, l->sorted.n, v[i] <= hash) - from;
}

/* 0 or -ENOMEM */
static int read_launches(const struct tfh_facts *facts, struct token_range r, uint64_t per,
			 struct window_launches *l)
{
	int rc = 0;

	for (size_t i = r.from; i < r.to && !rc; i++)
		if (launch_at(facts, i))
			rc = TFH_PUSH(l->sorted, hash_at(facts, i));
	if (l->sorted.n)
		qsort(l->sorted.v, l->sorted.n, sizeof(*l->sorted.v), by_value);
	for (size_t i = 0, n; i < l->sorted.n; i += n) {
		n = times_of(l, l->sorted.v[i]);
		l->n_regular += n % per ? 0 : n;
	}
	for (size_t i = r.from; i < r.to && !rc; i++) {
		size_t n = l->regular.n, each = l->n_regular / per;
		if (!launch_at(facts, i))
			continue;
		if (times_of(l, hash_at(facts, i)) % per)
			l->between |= n >= each && n + each <= l->n_regular;
		else
			rc = TFH_PUSH(l->regular, hash_at(facts, i));
	}
	return rc;
}

/* Whether a function that is not launched in each iteration updates weights, by its name. */
static bool updates(const struct tfh_facts *facts, struct token_range r, uint64_t per,
		    const struct window_launches *l)
{
	const struct tfh_feed *f = facts->feed;

	for (size_t i = r.from; i < r.to; i++) {
		const struct tfh_token_kind *k = tfh_kind_of(facts, &facts->token.v[i]);
		if (k->family == TFH_FAM_LAUNCH && times_of(l, k->rough) % per &&
		    tfh_name_updates(f->name(f->arg, facts->process, TFT_NAME_FUNCTION, k->what,
					     NULL, NULL)))
			return true;
	}
	return false;
}

/* Whether the iterations launch the same. The program may launch a little more between some of
 * them: it sorts particles, or draws a picture. If it does so only at the ends of a window, or if
 * that is an update, the iterations may be parts of a step. */
static bool repeats(const struct divided *d, struct token_range r, const struct window_launches *l)
{
	size_t each = l->n_regular / d->per, n = l->regular.n;

	for (size_t i = each; i < n; i++)
		if (l->regular.v[i] != l->regular.v[i - each])
			return false;
	return n && (n == l->sorted.n || (d->flat && l->between &&
					  (double)n >= TFH_CYCLE_SURE_SHARE * (double)l->sorted.n &&
					  !updates(d->facts, r, d->per, l)));
}

/* The first function that each iteration launches once; 0: none. */
static uint64_t first_once(const struct divided *d, const struct window_launches *l)
{
	for (size_t i = 0; i < l->n_regular / d->per; i++)
		if (times_of(l, l->regular.v[i]) == d->per)
			return l->regular.v[i];
	return 0;
}

/* Counts a window if its iterations launch the same. 0 or -ENOMEM. */
static int compare(struct divided *d, const struct tfh_window *w)
{
	struct token_range r = tokens_in(d->facts, w);
	struct window_launches l = {.n_regular = 0};
	int rc = read_launches(d->facts, r, d->per, &l);

	if (!rc && repeats(d, r, &l)) {
		d->first = d->alike ? d->first : first_once(d, &l);
		d->alike++;
	}
	free(l.sorted.v);
	free(l.regular.v);
	return rc;
}

static uint64_t launches_of(const struct tfh_facts *facts, struct token_range r, uint64_t hash)
{
	uint64_t n = 0;

	for (size_t i = r.from; i < r.to; i++)
		n += launch_at(facts, i) && hash_at(facts, i) == hash;
	return n;
}

/* Adds the steps of a window. Each ends with its last launch, so that what the program does before
 * the next one belongs to the next; the last one ends with the wait. */
static int add_steps(struct divided *d, const struct tfh_window *w)
{
	const struct tfh_facts *facts = d->facts;
	struct token_range r = tokens_in(facts, w);
	struct tfh_window step = *w;
	size_t launch = SIZE_MAX;
	uint64_t seen = 0;
	int rc = 0;

	if (w->steps < 2 || !d->first || !tfh_gpu_timed(&d->gpu, w->t0, w->t1) ||
	    launches_of(facts, r, d->first) != w->steps)
		return TFH_PUSH_BIG(d->out.window, step);
	d->apart = true;
	step.steps = 1;
	step.cut = false;
	for (size_t i = r.from; i < r.to && !rc; tfh_big_pass(++i)) {
		const struct tfh_token_kind *k = tfh_kind_of(facts, &facts->token.v[i]);
		if (!tfh_is_launch(k))
			continue;
		if (k->rough == d->first && seen++) {
			step.t1 = step.last = tfh_token_end(&facts->token.v[launch]);
			rc = TFH_PUSH_BIG(d->out.window, step);
			step.t0 = step.t1;
		}
		launch = i;
	}
	step.t1 = w->t1;
	step.last = w->last;
	step.cut = w->cut;
	return rc ? rc : TFH_PUSH_BIG(d->out.window, step);
}

static int divide(struct divided *d)
{
	struct tfh_loops *loops = d->loops;
	int rc = 0;

	for (size_t i = 0; i < loops->window.n && !rc; tfh_big_pass(++i))
		rc = add_steps(d, &loops->window.v[i]);
	tfh_big_free(loops->window.v);
	loops->window.v = d->out.window.v;
	loops->window.n = d->out.window.n;
	loops->window.cap = d->out.window.cap;
	loops->divided = d->apart ? 0 : (uint32_t)d->per;
	return rc;
}

int tfh_divide_windows(const struct tfh_facts *facts, struct tfh_loops *loops, uint64_t per,
		       uint64_t total, bool flat)
{
	struct divided d = {.facts = facts, .loops = loops, .per = per, .flat = flat};
	uint64_t rest = total;
	size_t n = 0;
	int rc = 0;

	TFH_EACH (i, loops->window.n)
		n += loops->window.v[i].segment == TFH_SEGMENT_TRAIN;
	if (loops->clock != TFH_STEP_CLOCK_PERIOD || n < TFH_LOOPS_FEWEST_STEPS ||
	    total + per <= n * per || total > (n + 1) * per || facts->late.n ||
	    facts->late_launch || facts->late_lost)
		return 0;
	for (size_t i = 0; i < loops->window.n && !rc; tfh_big_pass(++i))
		if (loops->window.v[i].segment == TFH_SEGMENT_TRAIN)
			rc = compare(&d, &loops->window.v[i]);
	if (rc || (double)d.alike < TFH_LOOPS_ALIKE_SHARE * (double)n)
		return rc;
	TFH_EACH (i, loops->window.n) {
		struct tfh_window *w = &loops->window.v[i];
		if (w->segment != TFH_SEGMENT_TRAIN)
			continue;
		w->steps = (uint32_t)(--n ? per : rest);
		rest -= w->steps;
	}
	/* The host may queue all steps of a window at once, and then wait for the last of them. */
	loops->median = tfh_median_step(loops);
	if (facts->feed->gpu)
		facts->feed->gpu(facts->feed->arg, facts->process, &d.gpu);
	return divide(&d);
}
