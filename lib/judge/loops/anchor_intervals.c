/* Intervals between two calls of one kind, and how well they repeat. An interval is weighted by its
 * launches. */
#include <stdlib.h>

#include "judge/loops/finder.h"

static uint32_t usual_launches(const struct tfh_finder *f)
{
	uint64_t in[4 * 33] = {0}, sum = 0, all = 0;

	/* Bins are quarters of a power of two. */
	for (size_t i = 0; i < f->n; i++) {
		uint32_t w = f->v[i].launches, log = w ? 31 - (uint32_t)__builtin_clz(w) : 0;
		uint32_t at = 4 * log + (log >= 2 ? (w >> (log - 2)) & 3 : (w << (2 - log)) & 3);
		in[at] += w;
		all += w;
	}
	for (uint32_t at = 0; at < 4 * 32; at++) {
		sum += in[at];
		if (sum * 2 >= all)
			return (uint32_t)(((uint64_t)(4 + (at & 3)) << (at >> 2)) >> 2);
	}
	return 0;
}

void tfh_finder_cut(struct tfh_finder *f, const struct tfh_anchor *a)
{
	struct tfh_cutter c = {.facts = f->facts, .anchor = a};

	if (f->is_cut && a->kind == f->at.kind && a->what == f->at.what && a->hash == f->at.hash)
		return;
	f->is_cut = true;
	f->at = *a;
	f->n = 0;
	while (f->n < TFH_LOOPS_INTERVALS && tfh_cut_next(&c, &f->v[f->n]))
		f->n++;
	f->launches = c.launches;
	if (f->n < TFH_LOOPS_INTERVALS)
		f->n += tfh_cut_last(&c, &f->v[f->n]);
	f->usual = usual_launches(f);
}

static bool minor(const struct tfh_finder *f, const struct tfh_interval *s)
{
	return (uint64_t)s->launches * TFH_LOOPS_MINOR_PART <= f->usual;
}

static int by_hash(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The functions that an interval launches, whatever their grids, in order of their hashes; NULL: no
 * memory. */
static uint64_t *functions_of(const struct tfh_finder *f, const struct tfh_interval *a, size_t *n)
{
	uint64_t *v = calloc(a->to - a->from + 1u, sizeof(*v));
	const struct tfh_token_kind *k;

	*n = 0;
	for (uint32_t i = a->from; v && i < a->to; i++)
		if ((k = tfh_launch_at(f, i)))
			v[(*n)++] = k->rough;
	if (v)
		qsort(v, *n, sizeof(*v), by_hash);
	return v;
}

uint32_t tfh_common_launches(const struct tfh_finder *f, const struct tfh_interval *a,
			     const struct tfh_interval *b, bool paired)
{
	size_t in_a, in_b, at = 0;
	uint64_t *x = functions_of(f, a, &in_a), *y = functions_of(f, b, &in_b);
	uint32_t common = 0;

	for (size_t i = 0; i < in_b; i++) {
		while (at < in_a && x[at] < y[i])
			at++;
		if (at == in_a || x[at] != y[i])
			continue;
		common++;
		at += paired;
	}
	free(x);
	free(y);
	return common;
}

/* A graph's launch is one call, other than in tfh_interval.launches. */
static uint32_t calls_in(const struct tfh_finder *f, const struct tfh_interval *a)
{
	uint32_t n = 0;

	for (uint32_t i = a->from; i < a->to; i++)
		n += tfh_launch_at(f, i) != NULL;
	return n;
}

static bool alike(const struct tfh_finder *f, const struct tfh_interval *a,
		  const struct tfh_interval *b)
{
	return a->rough == b->rough ||
	       2.0 * tfh_common_launches(f, a, b, true) >=
		       TFH_LOOPS_ALIKE_SHARE * (calls_in(f, a) + calls_in(f, b));
}

/* ---- regularity ---- */

/* Sums over the region in which intervals repeat. */
struct launch_region {
	double good, all, since; /* since: after the last good interval */
	int64_t from, to;
	size_t n;
};

static void region_add(struct launch_region *r, const struct tfh_interval *s, bool good)
{
	double w = s->launches;

	if (good) {
		if (!r->n++)
			r->from = s->t0;
		r->all += r->n > 1 ? r->since + w : w;
		r->good += w;
		r->since = 0;
		r->to = s->t1;
	} else {
		r->since += w;
	}
}

static struct tfh_score score_of(const struct tfh_finder *f, const struct launch_region *r)
{
	double all = f->launches ? (double)f->launches : 1;
	struct tfh_score s = {.n = r->n, .ns = r->to - r->from};

	/* A graph counts as several launches. */
	s.cover = r->good < all ? r->good / all : 1;
	s.ratio = r->all > 0 ? r->good / r->all : 0;
	return s;
}

/* Counts intervals similar to the one before or after. */
struct tfh_score tfh_score_in_a_row(const struct tfh_finder *f)
{
	struct launch_region like = {0}, same = {0};
	const struct tfh_interval *last = NULL;
	bool l = false, s = false;

	for (size_t i = 0; i < f->n; i++) {
		const struct tfh_interval *v = &f->v[i];
		if (!v->launches || minor(f, v))
			continue;
		bool s1 = last && last->rough == v->rough, l1 = s1 || (last && alike(f, last, v));
		if (last) {
			region_add(&like, last, l || l1);
			region_add(&same, last, s || s1);
		}
		last = v;
		l = l1;
		s = s1;
	}
	if (last) {
		region_add(&like, last, l);
		region_add(&same, last, s);
	}
	struct tfh_score out = score_of(f, &like);
	out.strict = score_of(f, &same).cover;
	return out;
}

static uint64_t content(const struct tfh_interval *s, bool exact)
{
	return exact ? s->exact : s->rough;
}

/* Counts intervals with the same content as the one m later. */
struct tfh_score tfh_score_after(const struct tfh_finder *f, size_t m, bool exact)
{
	size_t n = f->n < TFH_LOOPS_CYCLE_INTERVALS ? f->n : TFH_LOOPS_CYCLE_INTERVALS;
	struct launch_region r = {0};
	uint64_t tail = 0;

	for (size_t i = 0; i + m < n; i++)
		region_add(&r, &f->v[i], content(&f->v[i], exact) == content(&f->v[i + m], exact));
	struct tfh_score s = score_of(f, &r);
	for (size_t i = f->n - m; i < f->n; i++)
		tail += f->v[i].launches;
	s.cover *= n == f->n ? 1 : (double)f->n / (double)n;
	s.cover += (double)tail / (double)(f->launches ? f->launches : 1);
	s.cover = s.cover < 1 ? s.cover : 1;
	return s;
}

/* For random kinds of steps: counts intervals with the same content as one of those just before. */
struct tfh_score tfh_score_recent(const struct tfh_finder *f)
{
	struct launch_region r = {0};

	for (size_t i = 0; i < f->n; i++) {
		bool good = false;
		for (size_t k = 1; k <= TFH_LOOPS_RECENT && k <= i && !good; k++)
			good = f->v[i].rough == f->v[i - k].rough;
		region_add(&r, &f->v[i], good);
	}
	return score_of(f, &r);
}

/* Finds an interval whose content occurs only once in a cycle. Cycles begin with the first interval
 * of the run or, if they repeat only later, with the first one that does. */
bool tfh_find_key(const struct tfh_finder *f, struct tfh_anchor *a)
{
	size_t m = a->cycle, from = 0;

	while (from + 2 * m < f->n &&
	       (content(&f->v[from], a->exact) != content(&f->v[from + m], a->exact) ||
		content(&f->v[from + m], a->exact) != content(&f->v[from + 2 * m], a->exact)))
		from++;
	if (from + 2 * m >= f->n)
		return false;
	for (size_t i = from; i < from + m; i++) {
		uint32_t times = 0;
		for (size_t k = from; k < from + m; k++)
			times += content(&f->v[k], a->exact) == content(&f->v[i], a->exact);
		if (times > 1)
			continue;
		a->key = content(&f->v[i], a->exact);
		a->at = (uint32_t)((from < m ? i : i - from) % m);
		return true;
	}
	return false;
}
