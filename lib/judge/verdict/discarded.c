/*
 * Spans whose records were discarded to keep a long recording small. The report adds to the
 * judgement what the sketches of their chunks contain: how many steps there were and how long they
 * took. The judgement never uses it. Steps are counted by the step clock of the rest of the run,
 * else by the number of launches.
 */
#include <math.h>
#include <stdlib.h>

#include "judge/verdict/verdict.h"

/* Mean step duration of one chunk. */
struct mean {
	double s;
	uint64_t steps;
};

struct dropped_call {
	const struct tfh_fn_info *fn;
	uint64_t count;
	int64_t ns;
};

/* Totals of one span. */
struct tally {
	const struct tfh_accounts *accounts;
	const struct tfh_discarded_span *span;
	double per_step; /* launches per step elsewhere in the run; 0: not known */
	uint64_t steps, launches;
	int64_t first, last; /* begin of the first step, end of the last one */
	double by_launches;
	bool no_anchors; /* in at least one chunk */
	struct tfh_sketched anchor[TFT_SKETCH_ANCHORS];
	TFH_VEC(struct mean) mean;
	TFH_VEC(struct dropped_call) call;
};

/* Whether the batches of this iterator belong to the training loop. An iterator that occurs nowhere
 * else does if the run has only one loop. */
static bool trains(const struct tfh_accounts *accounts, uint32_t iterator)
{
	uint32_t at = accounts->facts->series_at[iterator % TFH_FACTS_SERIES_BUCKETS];

	for (uint32_t i = at; i--; i = accounts->facts->series.v[i].before)
		if (accounts->facts->series.v[i].iterator == iterator &&
		    !accounts->facts->series.v[i].loop)
			return (int32_t)accounts->loops->group_of[i] ==
			       accounts->loops->train_group;
	return accounts->loops->group.n == 1;
}

static bool is_clock(const struct tfh_accounts *accounts, const struct tfh_digest_clock *c)
{
	switch (accounts->loops->clock) {
	case TFH_STEP_CLOCK_ITERATOR:
		return c->fn->family == TFH_FAM_CONSUMER && trains(accounts, c->key);
	case TFH_STEP_CLOCK_MARK:
		return c->fn->family == TFH_FAM_MARK;
	case TFH_STEP_CLOCK_EXEC:
		return (c->fn->family == TFH_FAM_EXECUTE || c->fn->family == TFH_FAM_SESSION) &&
		       c->key == accounts->loops->exec_name;
	default:
		return false;
	}
}

/* Wrappers of get-next nest: only the function of an iterator with the most calls counts. */
static bool counts(const struct tfh_accounts *accounts, const struct tfh_digest *d, uint32_t i)
{
	const struct tfh_digest_clock *c = &d->clock[i];

	if (!is_clock(accounts, c))
		return false;
	for (uint32_t k = 0; k < d->n_clock; k++) {
		const struct tfh_digest_clock *o = &d->clock[k];
		if (k != i && o->key == c->key && is_clock(accounts, o) &&
		    (o->count > c->count || (o->count == c->count && k < i)))
			return false;
	}
	return true;
}

static int add_calls(struct tally *t, const struct tfh_digest *d)
{
	for (uint32_t i = 0; i < d->n_fn; i++) {
		size_t at = 0;
		while (at < t->call.n && t->call.v[at].fn != d->fn[i].fn)
			at++;
		if (at == t->call.n && TFH_PUSH(t->call, (struct dropped_call){.fn = d->fn[i].fn}))
			return -ENOMEM;
		t->call.v[at].count += d->fn[i].count;
		t->call.v[at].ns += d->fn[i].ns;
	}
	return 0;
}

static void add_anchors(struct tally *t, const struct tfh_digest *d)
{
	t->no_anchors |= !d->knows_anchors;
	for (uint32_t i = 0; i < TFT_SKETCH_ANCHORS; i++) {
		t->anchor[i].count += d->anchor[i].count;
		t->anchor[i].bytes += d->anchor[i].bytes;
		t->anchor[i].ns += d->anchor[i].ns;
	}
}

static int add_digest(void *arg, const struct tfh_digest *d)
{
	struct tally *t = arg;

	if (d->t0 < t->span->t0 || d->t0 > t->span->t1)
		return 0;
	t->launches += d->launches;
	add_anchors(t, d);
	for (uint32_t i = 0; i < d->n_clock; i++) {
		const struct tfh_digest_clock *c = &d->clock[i];
		if (!counts(t->accounts, d, i))
			continue;
		if (!t->steps || c->t0 < t->first)
			t->first = c->t0;
		if (!t->steps || c->t1 > t->last)
			t->last = c->t1;
		t->steps += c->count;
		if (c->count > 1 && TFH_PUSH(t->mean, (struct mean){(double)(c->t1 - c->t0) / 1e9 /
									    (double)(c->count - 1),
								    c->count - 1}))
			return -ENOMEM;
	}
	double steps = t->per_step > 0 ? (double)d->launches / t->per_step : 0;
	t->by_launches += steps;
	if (t->accounts->loops->clock == TFH_STEP_CLOCK_PERIOD && steps >= 1 &&
	    TFH_PUSH(t->mean,
		     (struct mean){(double)(d->t1 - d->t0) / 1e9 / steps, (uint64_t)steps}))
		return -ENOMEM;
	return add_calls(t, d);
}

static int by_length(const void *a, const void *b)
{
	const struct mean *x = a, *y = b;
	return x->s < y->s ? -1 : x->s > y->s;
}

static int by_count(const void *a, const void *b)
{
	const struct dropped_call *x = a, *y = b;
	return x->count > y->count ? -1 : x->count < y->count;
}

static double median(struct mean *v, size_t n)
{
	uint64_t all = 0, seen = 0;

	if (!n)
		return NAN;
	qsort(v, n, sizeof(*v), by_length);
	for (size_t i = 0; i < n; i++)
		all += v[i].steps;
	for (size_t i = 0; i < n; i++)
		if ((seen += v[i].steps) * 2 >= all)
			return v[i].s;
	return v[n - 1].s;
}

static int fill(struct tally *t, const struct tfh_accounts *accounts, struct tfh_discarded *g)
{
	const struct tfh_discarded_span *s = t->span;
	double length = (double)(s->t1 - s->t0) / 1e9;

	g->start_s = (double)s->t0 / 1e9;
	g->end_s = (double)s->t1 / 1e9;
	g->events = s->events;
	g->launches = t->launches;
	g->estimated = !t->steps && t->by_launches >= 1;
	g->steps = g->estimated ? (uint64_t)llround(t->by_launches) : t->steps;
	g->mean_s = t->steps > 1 ? (double)(t->last - t->first) / 1e9 / (double)(t->steps - 1)
		    : g->steps	 ? length / (double)g->steps
				 : NAN;
	g->median_s = median(t->mean.v, t->mean.n);
	g->knows_anchors = !t->no_anchors;
	for (uint32_t i = 0; i < TFT_SKETCH_ANCHORS; i++)
		g->anchor[i] = (struct tfh_discarded_anchor){t->anchor[i].count, t->anchor[i].bytes,
							     (double)t->anchor[i].ns / 1e9};
	if (t->call.n)
		qsort(t->call.v, t->call.n, sizeof(*t->call.v), by_count);
	g->call = tfh_arena_array(accounts->facts->arena, TFH_VERDICT_DISCARDED_CALLS,
				  sizeof(*g->call));
	if (!g->call)
		return -ENOMEM;
	for (size_t i = 0; i < t->call.n && i < TFH_VERDICT_DISCARDED_CALLS; i++)
		g->call[g->n_call++] = (struct tfh_discarded_call){
			t->call.v[i].fn->name, t->call.v[i].count, (double)t->call.v[i].ns / 1e9};
	return 0;
}

/* Launches per training step. */
static double launches_per_step(const struct tfh_accounts *accounts)
{
	uint64_t n = accounts->graph_launches;

	for (size_t i = 0; i < accounts->kernel.n; i++)
		n += accounts->kernel.v[i].calls;
	return accounts->train_steps ? (double)n / (double)accounts->train_steps : 0;
}

int tfh_fill_discarded(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	const struct tfh_feed *f = accounts->facts->feed;
	int rc = 0;

	if (!f->n_discarded || !f->digests)
		return 0;
	r->discarded =
		tfh_arena_array(accounts->facts->arena, f->n_discarded, sizeof(*r->discarded));
	if (!r->discarded)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->n_discarded && !rc; i++) {
		struct tally t = {.accounts = accounts,
				  .span = &f->discarded[i],
				  .per_step = launches_per_step(accounts)};
		struct tfh_discarded *g = &r->discarded[r->n_discarded];
		if (t.span->process != accounts->facts->process)
			continue;
		rc = f->digests(f->arg, accounts->facts->process, add_digest, &t);
		if (!rc)
			rc = fill(&t, accounts, g);
		free(t.mean.v);
		free(t.call.v);
		if (rc)
			break;
		r->n_discarded++;
	}
	return rc;
}
