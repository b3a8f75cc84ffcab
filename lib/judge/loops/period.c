/*
 * Steps of a job that shows nothing but its driver calls: the period of its sequence of launches,
 * copies and waits, as found by anchor.c. Each step adds a mark, as if the job had set it.
 */

#include "judge/loops/anchor.h"
#include "judge/loops/step_clock.h"

/* Turns intervals into steps. */
struct marker {
	struct tfh_loops *loops;
	const struct tfh_anchor *anchor;
	struct tfh_cutter cutter;
	uint32_t at;   /* index of the next interval in its cycle */
	int64_t begin; /* waits: begin of the step being assembled, 0: none */
	size_t few;    /* intervals that are not steps of their own */
	bool ends; /* the anchor ends the steps: launches after the last one begin another step */
	uint32_t usual; /* launches of a step, then */
};

static int push(struct marker *m, const struct tfh_interval *s)
{
	struct tfh_boundary mark = {.t0 = m->begin ? m->begin : s->t0, .t1 = s->t1};

	for (uint32_t i = 0; i < m->anchor->n_eval; i++)
		mark.eval |= m->anchor->eval[i] == s->rough;
	m->begin = 0;
	return TFH_PUSH_BIG(m->loops->mark, mark);
}

static int mark_interval(struct marker *m, const struct tfh_interval *s)
{
	const struct tfh_anchor *a = m->anchor;
	bool wait = a->kind == TFH_ANCHOR_WAIT;

	if (s->launches <= a->few) {
		m->few++;
		return 0;
	}
	if (a->cycle < 2)
		return push(m, s);
	if ((a->exact ? s->exact : s->rough) == a->key)
		m->at = a->at;
	uint32_t at = m->at;
	m->at = (at + 1) % a->cycle;
	if (wait && !m->begin)
		m->begin = s->t0;
	return at == (wait ? a->cycle - 1 : 0) ? push(m, s) : 0;
}

static int mark_last(struct marker *m)
{
	struct tfh_interval s;

	bool last = tfh_cut_last(&m->cutter, &s);

	/* the first launch of them is the call that ends the last step */
	if (m->ends && last && s.launches < 1 + TFH_LOOPS_SUBSTANTIAL_SHARE * m->usual)
		return 0;
	return last ? mark_interval(m, &s) : 0;
}

static struct marker marker_of(const struct tfh_facts *facts, struct tfh_loops *loops,
			       const struct tfh_anchor *a)
{
	return (struct marker){
		.loops = loops, .anchor = a, .cutter = {.facts = facts, .anchor = a}};
}

static int mark_kept(struct marker *m)
{
	struct tfh_interval s;
	int rc = 0;

	while (!rc && tfh_cut_next(&m->cutter, &s))
		rc = mark_interval(m, &s);
	return rc;
}

/* Marks all intervals, in a pass of its own if too few were kept. */
static int mark_all(const struct tfh_facts *facts, struct tfh_loops *loops,
		    const struct tfh_anchor *a, struct tfh_err *err)
{
	const struct tfh_feed *f = facts->feed;
	struct marker m = marker_of(facts, loops, a);
	struct tfh_token_kind kind;
	struct tfh_event ev;
	struct tfh_piece p;
	struct tfh_interval s;
	int rc = f->rewind(f->arg, facts->process, err);

	while (!rc && f->next(f->arg, &ev))
		if (tfh_piece_of(&ev, &p) && !p.passive &&
		    (facts->eager ? tfh_eager_kind(facts, &ev, &kind)
				  : tfh_token_kind(&ev, &p, &kind)) &&
		    tfh_cut(&m.cutter, &kind, ev.t0, ev.t1, &s))
			rc = mark_interval(&m, &s);
	rc = rc ? rc : mark_last(&m);
	return rc ? rc : f->error(f->arg, err);
}

static uint64_t hash_at(const struct tfh_facts *facts, size_t token)
{
	return tfh_kind_of(facts, &facts->token.v[token])->hash;
}

/* Whether all steps begin, or end, with the same kind of call, which occurs nowhere else; *begin:
 * where the first step begins if they end with it. */
static bool one_kind(const struct tfh_facts *facts, const struct tfh_anchor *a, uint64_t *hash,
		     int64_t *begin)
{
	struct tfh_cutter c = {.facts = facts, .anchor = a};
	struct tfh_interval s;
	size_t intervals = 0, calls = 0;

	*hash = *begin = 0;
	for (; tfh_cut_next(&c, &s); intervals++) {
		uint64_t h = hash_at(facts, a->kind == TFH_ANCHOR_WAIT ? s.to : s.from);
		if (!intervals) {
			*hash = h;
			*begin = s.t0;
		}
		if (h != *hash || s.launches <= a->few)
			return false;
	}
	for (size_t i = 0; i + 1 < facts->stop.n && intervals; i++)
		calls += hash_at(facts, facts->stop.v[i].at) == *hash;
	return calls == intervals || (a->kind != TFH_ANCHOR_WAIT && calls == intervals + 1);
}

static int mark_kind(const struct tfh_facts *facts, struct tfh_loops *loops,
		     const struct tfh_anchor *a, uint64_t hash, int64_t begin)
{
	const size_t stops = facts->stop.n - 1;
	int rc = 0;

	for (size_t i = 0; i < stops + facts->late.n && !rc; tfh_big_pass(++i)) {
		const struct tfh_token *t = i < stops ? &facts->token.v[facts->stop.v[i].at]
						      : &facts->late.v[i - stops];
		struct tfh_boundary mark = {.t0 = t->t0, .t1 = tfh_token_end(t)};
		if (tfh_kind_of(facts, t)->hash != hash)
			continue;
		if (a->kind == TFH_ANCHOR_WAIT) {
			mark.t0 = begin;
			begin = mark.t1;
		}
		rc = TFH_PUSH_BIG(loops->mark, mark);
	}
	return rc;
}

/* A call that ends the steps begins the intervals. Then the first step is before the first of these
 * calls, if the same is launched there as between the first two. */
static int mark_before(const struct tfh_facts *facts, struct marker *m)
{
	const struct tfh_token *t = facts->token.v, *first;
	const struct tfh_anchor *a = m->anchor;
	struct tfh_cutter c = {.facts = facts, .anchor = a};
	struct tfh_interval s;

	if (a->one_before)
		return TFH_PUSH_BIG(m->loops->mark,
				    ((struct tfh_boundary){.t0 = t->t0, .t1 = tfh_token_end(t)}));
	if ((a->kind != TFH_ANCHOR_KERNEL && a->kind != TFH_ANCHOR_GRAPH) || a->cycle > 1 ||
	    !tfh_cut_next(&c, &s) || s.to - s.from < 2 || s.from < s.to - s.from - 1)
		return 0;
	first = &t[s.from - (s.to - s.from - 1)];
	for (uint32_t i = s.from + 1; i < s.to; i++)
		if (tfh_kind_of(facts, &t[i])->rough !=
		    tfh_kind_of(facts, &first[i - s.from - 1])->rough)
			return 0;
	m->ends = true;
	m->usual = s.launches;
	return TFH_PUSH_BIG(m->loops->mark,
			    ((struct tfh_boundary){.t0 = first->t0, .t1 = tfh_token_end(first)}));
}

static int mark_steps(const struct tfh_facts *facts, struct tfh_loops *loops,
		      const struct tfh_anchor *a, struct tfh_err *err)
{
	struct marker m = marker_of(facts, loops, a);
	uint64_t hash;
	int64_t begin;
	int rc;

	if (facts->late.n || facts->late_launch || facts->late_lost) {
		if (facts->late_lost || a->cycle > 1 || a->n_eval ||
		    (a->kind != TFH_ANCHOR_UPLOAD && a->kind != TFH_ANCHOR_WAIT) ||
		    !one_kind(facts, a, &hash, &begin))
			return mark_all(facts, loops, a, err);
		return mark_kind(facts, loops, a, hash, begin);
	}
	rc = mark_before(facts, &m);
	rc = rc ? rc : mark_kept(&m);
	rc = rc ? rc : mark_last(&m);
	return rc ? rc : tfh_mark_edges(facts, loops);
}

/* If steps begin with a copy of data, the few intervals that begin with a copy of numbers (a random
 * seed for the first step's weights) are added to the step before. */
static void pass_numbers(const struct tfh_facts *facts, struct tfh_anchor *a)
{
	struct tfh_cutter c = {.facts = facts, .anchor = a};
	struct tfh_interval s;
	size_t data = 0, numbers = 0;

	if (a->kind != TFH_ANCHOR_UPLOAD || a->cycle > 1 || a->what >= TFH_LOOPS_UPLOAD_FIRST)
		return;
	while (tfh_cut_next(&c, &s)) {
		bool large =
			tfh_kind_of(facts, &facts->token.v[s.from])->what >= TFH_LOOPS_UPLOAD_FIRST;
		data += large;
		numbers += !large;
	}
	if (numbers && numbers * TFH_WARMUP_PART <= data)
		a->what = TFH_LOOPS_UPLOAD_FIRST;
}

/* Whether most steps, with most launches, launch the same functions as `like`. */
static bool most_are(const struct tfh_facts *facts, const struct tfh_anchor *a, uint64_t like)
{
	struct tfh_cutter c = {.facts = facts, .anchor = a};
	struct tfh_interval s;
	int64_t steps = 0, launches = 0;

	while (tfh_cut_next(&c, &s)) {
		bool same = s.rough == like;
		steps += same ? 1 : -1;
		launches += same ? s.launches : -(int64_t)s.launches;
	}
	return steps > 0 && launches > 0;
}

/* In a short trace the parts of one step (layers, forward and backward pass) may begin with the
 * same kernel, too, but differ. There, no copy or wait shows where a step ends. */
static bool same_steps(const struct tfh_facts *facts, const struct tfh_anchor *a)
{
	struct tfh_cutter c = {.facts = facts, .anchor = a};
	struct tfh_interval s;
	uint64_t most = 0, lead = 0;

	if (!TFH_DETECT_SAME_STEPS || !facts->feed->imported || a->kind != TFH_ANCHOR_KERNEL ||
	    a->cycle > 1)
		return true;
	while (tfh_cut_next(&c,
			    &s)) { /* the only kind that may have a majority (Boyer and Moore) */
		most = lead ? most : s.rough;
		lead += lead && s.rough != most ? -UINT64_C(1) : 1;
	}
	return most_are(facts, a, most);
}

/* Another profiler's trace of a processor is often of one batch, whose layers repeat. Only if
 * nothing is before or after what repeats, is it the step. */
static int mark_repeated(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	int rc = 0;
	uint32_t ops = tfh_repeated_ops(facts, &rc);

	for (size_t i = 0; ops && i < facts->token.n && !rc; tfh_big_pass(i += ops)) {
		const struct tfh_token *t = &facts->token.v[i];
		rc = TFH_PUSH_BIG(loops->mark,
				  ((struct tfh_boundary){.t0 = t->t0, .t1 = tfh_token_end(t)}));
	}
	return rc;
}

int tfh_find_period(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err)
{
	struct tfh_anchor a;
	int rc;

	if (facts->eager && facts->feed->imported)
		return mark_repeated(facts, loops);
	bool found = tfh_find_anchor(facts, &a, &rc), several = false;
	if (!rc && found) {
		pass_numbers(facts, &a);
		several = tfh_part_intervals(facts, &a, &rc);
		found = same_steps(facts, &a);
	}
	if (!rc && facts->feed->imported && (!found || tfh_within_one_thread(facts, &a)))
		rc = tfh_mark_rounds(facts, loops);
	if (rc || !found || loops->mark.n)
		return rc;
	loops->several = several;
	loops->mark_ends = a.kind == TFH_ANCHOR_WAIT;
	return mark_steps(facts, loops, &a, err);
}
