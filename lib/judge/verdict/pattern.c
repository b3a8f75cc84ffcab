/*
 * How steps differ: by the number of launches, as when the shapes of batches differ; at regular
 * intervals, as when gradients of several batches are accumulated before an update; and whether the
 * launches repeat inside one step, as those of micro-steps do. The period of the launch sequence is
 * found by comparing the sequence with itself; the step detection of other profilers compares
 * repeated kernel signatures.
 */
#include <math.h>
#include <stdlib.h>

#include "base/bisect.h"
#include "judge/verdict/verdict.h"

struct launch_count {
	uint32_t launches;
	double s;
};

static int by_count(const void *a, const void *b)
{
	const struct tfh_kind *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->launches < y->launches ? -1 : x->launches > y->launches;
}

/* Collects the training windows in order of time. */
static size_t gather(const struct tfh_accounts *accounts, struct launch_count *v)
{
	size_t n = 0;

	TFH_EACH (i, accounts->step.n)
		if (tfh_window_counts(accounts, i))
			v[n++] = (struct launch_count){accounts->use[i].launches,
						       accounts->step.v[i].dur_s};
	return n;
}

/* Finds all numbers that can make up a share of TFH_VERDICT_KIND_SHARE of the entries (the frequent
 * items algorithm of Misra and Gries). */
static size_t frequent(const struct launch_count *v, size_t n, struct launch_count *most)
{
	size_t used = 0;

	TFH_EACH (i, n) {
		size_t at = 0, empty = TFH_VERDICT_KIND_PLACES;
		for (; at < TFH_VERDICT_KIND_PLACES; at++) {
			if (most[at].s > 0 && most[at].launches == v[i].launches)
				break;
			if (most[at].s <= 0)
				empty = at;
		}
		if (at < TFH_VERDICT_KIND_PLACES) {
			most[at].s++;
		} else if (empty < TFH_VERDICT_KIND_PLACES) {
			most[empty] = (struct launch_count){v[i].launches, 1};
		} else {
			for (at = 0; at < TFH_VERDICT_KIND_PLACES; at++)
				most[at].s--;
		}
	}
	for (size_t i = 0; i < TFH_VERDICT_KIND_PLACES; i++)
		if (most[i].s > 0)
			most[used++] = most[i];
	return used;
}

static void measure_kind(struct tfh_kind *k, const struct launch_count *v, size_t n, double *room)
{
	double s = 0, total = 0;

	TFH_EACH (i, n) {
		total += v[i].s;
		if (v[i].launches != k->launches)
			continue;
		s += v[i].s;
		room[k->count++] = v[i].s;
	}
	if (k->count)
		k->median_s = tfh_select(room, k->count, k->count / 2);
	k->time_share = total > 0 ? fmin(1, s / total) : NAN;
}

static void find_kinds(struct tfh_pattern *p, const struct launch_count *v, size_t n)
{
	struct launch_count most[TFH_VERDICT_KIND_PLACES] = {{0}};
	double *room = tfh_big_array(n, sizeof(*room));
	size_t m = room ? frequent(v, n, most) : 0;

	for (size_t i = 0; i < m; i++) {
		struct tfh_kind k = {.launches = most[i].launches};
		measure_kind(&k, v, n, room);
		if ((double)k.count < TFH_VERDICT_KIND_SHARE * (double)n)
			continue;
		if (p->n_kind == TFH_KINDS) { /* too many to be kinds */
			p->n_kind = 0;
			break;
		}
		p->kind[p->n_kind++] = k;
	}
	tfh_big_free(room);
	qsort(p->kind, p->n_kind, sizeof(*p->kind), by_count);
}

/* Collects all windows. A checkpoint counts as a batch, but its launches say nothing. */
static size_t gather_all(const struct tfh_accounts *accounts, struct launch_count *v)
{
	size_t n = 0;

	TFH_EACH (i, accounts->step.n) {
		const struct tfh_window *w = &accounts->loops->window.v[i];
		if (w->segment != TFH_SEGMENT_EVAL && w->steps)
			v[n++] = (struct launch_count){accounts->use[i].launches,
						       tfh_window_counts(accounts, i)};
	}
	return n;
}

/* Share of the steps that launch as much as the step m later. */
static double as_later(const struct launch_count *v, size_t n, size_t m)
{
	size_t same = 0, all = 0;

	TFH_EACH (i, n - m) {
		bool known = v[i].s > 0 && v[i + m].s > 0;
		all += known;
		same += known && v[i].launches == v[i + m].launches;
	}
	return all ? (double)same / (double)all : 0;
}

/* The smallest number of steps after which the numbers of launches repeat; 1: they do not, or they
 * hardly change (a model that is enlarged once). */
static uint32_t cycle_of(const struct launch_count *v, size_t n)
{
	double once = n > 1 ? as_later(v, n, 1) : 1;

	for (size_t m = 2; m <= TFH_CYCLE_MOST && m * TFH_VERDICT_FEWEST_CYCLES <= n; m++) {
		double same = as_later(v, n, m);
		if (same >= TFH_CYCLE_SURE_SHARE &&
		    1 - same < (1 - once) / TFH_CYCLE_UNEXPLAINED_PART)
			return (uint32_t)m;
	}
	return 1;
}

/* How many periods p the longest part of v covers that repeats after p; 0: it is too short. A part
 * that is long enough contains the middle of v, since p is at most half of v. */
static size_t repeats(const uint64_t *v, size_t n, size_t p)
{
	size_t from = (n - p) / 2, to = from;

	while (to + p < n && v[to] == v[to + p])
		to++;
	if (to == from)
		return 0;
	while (from && v[from - 1] == v[from - 1 + p])
		from--;
	to += p;
	return (double)(to - from) >= TFH_VERDICT_INNER_SHARE * (double)n ? (to - from) / p : 0;
}

/* The first token that ends after t. Tokens are sorted by begin, and so are the ends of one
 * thread's tokens. */
static const struct tfh_token *first_after(const struct tfh_facts *facts, int64_t t)
{
	size_t lo = TFH_BISECT(i, 0, facts->token.n, facts->token.v[i].t0 < t);

	while (lo && tfh_token_end(&facts->token.v[lo - 1]) > t)
		lo--;
	return facts->token.v + lo;
}

/* The repetitions in a step from the middle of those with individually known launches. */
static uint32_t inner_of(const struct tfh_accounts *accounts)
{
	const struct tfh_facts *facts = accounts->facts;
	const struct tfh_window *w = accounts->loops->window.v;
	const struct tfh_token *t = facts->token.v, *end = t + facts->token.n;
	size_t known = 0, at = 0, n = 0;
	uint64_t *v;
	uint32_t best = 1;

	if (!facts->token.n)
		return 1;
	while (known < accounts->loops->window.n && w[known].t1 <= tfh_token_end(end - 1))
		known++;
	for (at = known / 2; at < known && !tfh_window_counts(accounts, at);)
		at++;
	if (at >= known)
		return 1;
	t = first_after(facts, w[at].t0);
	v = malloc(TFH_VERDICT_INNER_TOKENS * sizeof(*v));
	for (; v && t < end && n < TFH_VERDICT_INNER_TOKENS && tfh_token_end(t) <= w[at].t1; t++)
		if (tfh_is_launch(tfh_kind_of(facts, t)))
			v[n++] = tfh_kind_of(facts, t)->hash;
	/* Launches that are all alike repeat with every period, so they show no parts. */
	for (at = 1; v && at < n && v[at] == v[0];)
		at++;
	n = at < n ? n : 0;
	for (size_t p = TFH_VERDICT_INNER_LAUNCHES;
	     v && p * TFH_VERDICT_INNER_TIMES <= n && best == 1 && n < TFH_VERDICT_INNER_TOKENS;
	     p++) {
		size_t k = repeats(v, n, p);
		bool alike = true;
		if (k < TFH_VERDICT_INNER_TIMES)
			continue;
		for (size_t i = 1; i < p; i++)
			alike &= v[n / 4 + i] == v[n / 4];
		if (!alike)
			best = (uint32_t)k;
	}
	free(v);
	return best;
}

void tfh_find_patterns(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	struct tfh_pattern *p = &r->pattern;
	struct launch_count *v = tfh_big_array(accounts->loops->window.n, sizeof(*v));
	size_t n = v ? gather(accounts, v) : 0;

	p->per_update = p->inner = 1;
	p->recompiles = accounts->recompiles;
	p->unloads = accounts->unloads;
	p->graph_steps = accounts->graph_steps;
	p->recompile_s = (double)accounts->recompile_ns / 1e9;
	if (accounts->facts->launches) {
		find_kinds(p, v, n);
		n = v ? gather_all(accounts, v) : 0;
		p->per_update = cycle_of(v, n);
		p->inner = inner_of(accounts);
	}
	if (accounts->loops->micro > 1) {
		p->inner = accounts->loops->micro;
		p->per_update = 1;
	}
	if (accounts->loops->divided) {
		for (uint32_t i = 0; i < p->n_kind; i++)
			p->kind[i].launches /= accounts->loops->divided;
		p->per_update *= p->per_update > 1 ? accounts->loops->divided : 1;
		p->inner = 1;
	}
	tfh_big_free(v);
}
