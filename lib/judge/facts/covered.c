/* What the cover of an imported trace says of a pause: which kind of range takes most of it. */
#include <string.h>

#include "base/bisect.h"
#include "judge/facts/cover.h"

/* Index of the first part of [lo, hi) that ends after t. */
static size_t part_at(const struct tfh_cover_part *v, size_t lo, size_t hi, int64_t t)
{
	return TFH_BISECT(i, lo, hi, v[i].t1 <= t);
}

/* Adds up the time of each kind in [t0, t1). Time below 50 us that is neither waiting nor covered
 * by an op counts as call overhead if it is between two launching ops, or between one and the edge
 * of the pause. */
static void weigh(const struct tfh_cover *c, uint32_t thread, int64_t t0, int64_t t1,
		  int64_t ns[TFH_COVER_KINDS])
{
	size_t end = c->first[thread + 1];
	size_t i = part_at(c->part.v, c->first[thread], end, t0);
	int64_t from = t0, between[TFH_COVER_KINDS] = {0}; /* time since the last launching op */

	memset(ns, 0, TFH_COVER_KINDS * sizeof(*ns));
	for (;; i++) {
		const struct tfh_cover_part *p =
			i < end && c->part.v[i].t0 < t1 ? &c->part.v[i] : NULL;
		int64_t a = p && p->t0 > t0 ? p->t0 : p ? t0 : t1, b = p && p->t1 < t1 ? p->t1 : t1;
		if (!p || p->kind == TFH_COVER_ISSUES) {
			bool overhead = (p || ns[TFH_COVER_ISSUES]) && a - from < TFH_GAP_NS &&
					!between[TFH_COVER_WAITS];
			if (overhead)
				ns[TFH_COVER_ISSUES] += a - from;
			for (int k = 0; k < TFH_COVER_KINDS && !overhead; k++)
				ns[k] += between[k];
			memset(between, 0, sizeof(between));
			if (!p)
				return;
			ns[TFH_COVER_ISSUES] += b - a;
			from = b;
		} else {
			between[p->kind] += b - a;
		}
	}
}

static const enum tfh_covered is[TFH_COVER_KINDS] = {[TFH_COVER_ISSUES] = TFH_COVERED_OTHER,
						     [TFH_COVER_OWN] = TFH_COVERED_CODE,
						     [TFH_COVER_WAITS] = TFH_COVERED_OTHER,
						     [TFH_COVER_EXCHANGES] = TFH_COVERED_EXCHANGE};

enum tfh_covered tfh_cover_part_is(const struct tfh_cover_part *part)
{
	return is[part->kind];
}

enum tfh_covered tfh_covered_by(const struct tfh_cover *c, uint32_t thread, int64_t t0, int64_t t1)
{
	int64_t ns[TFH_COVER_KINDS];
	int most = TFH_COVER_NOTHING;

	if (!c || thread >= c->facts->feed->n_threads || t1 <= t0)
		return TFH_COVERED_NOT;
	weigh(c, thread, t0, t1, ns);
	for (int k = TFH_COVER_ISSUES; k < TFH_COVER_KINDS; k++)
		if (ns[k] > ns[most] || !most)
			most = k;
	if (ns[most] * TFH_FACTS_COVERED_PART < t1 - t0)
		return TFH_COVERED_NOT;
	return most == TFH_COVER_ISSUES && t1 - t0 < TFH_FACTS_DISPATCH_NS ? TFH_COVERED_LAUNCH
									   : is[most];
}

static bool has_part(const struct tfh_cover *c, uint32_t thread, int64_t t0, int64_t t1)
{
	size_t end = c->first[thread + 1], i = part_at(c->part.v, c->first[thread], end, t0);

	while (i < end && c->part.v[i].t0 < t1 && c->part.v[i].kind == TFH_COVER_NOTED)
		i++;
	return i < end && c->part.v[i].t0 < t1;
}

uint32_t tfh_cover_thread(const struct tfh_cover *c, uint32_t thread, int64_t t0, int64_t t1)
{
	const struct tfh_feed *f = c ? c->facts->feed : NULL;
	uint32_t other = thread;

	if (!c || thread >= f->n_threads || has_part(c, thread, t0, t1))
		return thread;
	for (uint32_t i = 0; i < f->n_threads; i++) {
		if (f->threads[i].process != c->facts->process || !has_part(c, i, t0, t1) ||
		    tfh_covered_by(c, i, t0, t1) != TFH_COVERED_CODE)
			continue;
		if (other != thread)
			return thread;
		other = i;
	}
	return other;
}

enum tfh_covered tfh_covered_line(const struct tfh_cover *c, int64_t t0, int64_t t1, int64_t *until)
{
	size_t i = c ? part_at(c->line.v, 0, c->line.n, t0) : 0;

	*until = t1;
	if (!c || i >= c->line.n || c->line.v[i].t0 >= t1)
		return TFH_COVERED_NOT;
	if (c->line.v[i].t0 > t0) {
		*until = c->line.v[i].t0;
		return TFH_COVERED_NOT;
	}
	*until = c->line.v[i].t1 < t1 ? c->line.v[i].t1 : t1;
	return c->line.v[i].kind == TFH_COVER_OWN ? TFH_COVERED_CODE : TFH_COVERED_EXCHANGE;
}

size_t tfh_cover_at(const struct tfh_cover *c, uint32_t thread, int64_t t)
{
	return part_at(c->part.v, c->first[thread], c->first[thread + 1], t);
}
