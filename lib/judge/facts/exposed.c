/*
 * Exchanges with other ranks run on threads of their own. In a backward pass they overlap computing
 * until its gradients are complete: from then on, the thread that runs it only waits. The last
 * exchange of a pass begins at that moment, unless it was queued after others; then each begins as
 * soon as the one before it ends. Outside of executed calls, the thread that exchanges data waits
 * for the exchange.
 */

#include "base/bisect.h"
#include "judge/facts/exposed.h"
#include "judge/stats.h"

/* A moment at which something begins (+1) or ends (-1). */
struct border {
	int64_t t;
	int8_t computes, waits, transfers;
};

struct finder {
	const struct tfh_collective *x; /* by begin */
	size_t n;
	TFH_VEC(struct border) border;
};

static int by_time(const void *a, const void *b, void *arg)
{
	const struct border *x = a, *y = b;

	(void)arg;
	return x->t != y->t ? (x->t < y->t ? -1 : 1) : 0;
}

static int add(struct finder *f, int64_t t0, int64_t t1, struct border what)
{
	struct border end = {t1, (int8_t)-what.computes, (int8_t)-what.waits,
			     (int8_t)-what.transfers};

	what.t = t0;
	if (t1 <= t0)
		return 0;
	return TFH_PUSH_BIG(f->border, what) || TFH_PUSH_BIG(f->border, end) ? -ENOMEM : 0;
}

/* The first exchange that begins at or after t. */
static size_t first_from(const struct finder *f, int64_t t)
{
	return TFH_BISECT(i, 0, f->n, f->x[i].t0 < t);
}

/* When the last exchange of an executed call was handed over, at the latest. */
static int64_t handed_over(const struct finder *f, size_t from, size_t to)
{
	int64_t t = f->x[to - 1].t0;

	for (size_t i = to - 1; i-- > from;)
		if (f->x[i].t1 <= t && t - f->x[i].t1 < TFH_GAP_NS)
			t = f->x[i].t0;
	return t;
}

/* An executed call computes, except while it only waits. */
static int add_executed(struct finder *f, const struct tfh_exec *e)
{
	const struct border computes = {.computes = 1};
	size_t from = first_from(f, e->t0), to = first_from(f, e->t1);
	int64_t end = e->t0;

	if (from >= to) /* a damaged file may end a call before its begin */
		return add(f, e->t0, e->t1, computes);
	for (size_t i = from; i < to; i++)
		end = f->x[i].t1 > end ? f->x[i].t1 : end;
	return add(f, e->t0, handed_over(f, from, to), computes) || add(f, end, e->t1, computes)
		       ? -ENOMEM
		       : 0;
}

/* While this exchange waits for the last rank to arrive, nothing is transferred. */
static int add_exchange(struct finder *f, const struct tfh_collective *x)
{
	int64_t arrived = x->shared >= 0 && x->t1 - x->shared > x->t0 ? x->t1 - x->shared : x->t0;

	return add(f, x->t0, arrived, (struct border){.waits = 1}) ||
			       add(f, arrived, x->t1, (struct border){.transfers = 1})
		       ? -ENOMEM
		       : 0;
}

static int merge(const struct finder *f, struct tfh_exposed *out)
{
	int64_t computes = 0, waits = 0, transfers = 0;
	int rc = 0;

	for (size_t i = 0; i + 1 < f->border.n && !rc; tfh_big_pass(++i)) {
		const struct border *t = &f->border.v[i];
		computes += t->computes;
		waits += t->waits;
		transfers += t->transfers;
		if (!computes && waits + transfers > 0 && t[1].t > t->t)
			rc = TFH_PUSH_BIG(out->part,
					  ((struct tfh_exposed_part){
						  t->t, t[1].t,
						  transfers ? TFH_CAUSE_COMMUNICATION_TRANSFER
							    : TFH_CAUSE_COMMUNICATION_JITTER}));
	}
	return rc;
}

int tfh_exposed_find(const struct tfh_facts *facts, const struct tfh_matches *matches,
		     struct tfh_exposed *out)
{
	struct finder f = {0};
	int rc = 0;

	f.x = tfh_matches_exchanges(matches, facts->process, &f.n);
	if (!f.n || !facts->cpu_only)
		return 0;
	TFH_EACH (i, rc ? 0 : facts->exec.n)
		rc = rc ? rc : add_executed(&f, &facts->exec.v[i]);
	TFH_EACH (i, rc ? 0 : f.n)
		rc = rc ? rc : add_exchange(&f, &f.x[i]);
	if (!rc) {
		tfh_sort(f.border.v, f.border.n, sizeof(*f.border.v), by_time, NULL);
		rc = merge(&f, out);
	}
	tfh_big_free(f.border.v);
	return rc;
}

void tfh_exposed_free(struct tfh_exposed *e)
{
	tfh_big_free(e->part.v);
}

enum tfh_cause tfh_exposed_at(const struct tfh_exposed *e, int64_t t0, int64_t t1, int64_t *until)
{
	size_t lo = TFH_BISECT(i, 0, e->part.n, e->part.v[i].t1 <= t0);

	*until = t1;
	if (lo >= e->part.n || e->part.v[lo].t0 >= t1)
		return TFH_CAUSE_NONE;
	if (e->part.v[lo].t0 > t0) {
		*until = e->part.v[lo].t0;
		return TFH_CAUSE_NONE;
	}
	*until = e->part.v[lo].t1 < t1 ? e->part.v[lo].t1 : t1;
	return e->part.v[lo].cause;
}

int64_t tfh_exposed_ns(const struct tfh_exposed *e, int64_t t0, int64_t t1)
{
	int64_t ns = 0, until;

	for (; t0 < t1; t0 = until)
		if (tfh_exposed_at(e, t0, t1, &until) != TFH_CAUSE_NONE)
			ns += until - t0;
	return ns;
}
