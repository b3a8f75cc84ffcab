/* Divides the sequence of a job's launches, copies and waits at an anchor. */
#include "base/hash.h"

#include "judge/loops/anchor.h"

static bool is_wait(const struct tfh_token_kind *k)
{
	return k->family == TFH_FAM_SYNC || (k->family == TFH_FAM_COPY && k->dir == TFH_DIR_D2H);
}

/* Whether the thread drives the job: a loader's thread or a watchdog waits for reasons of its
 * own. */
static bool drives(const struct tfh_facts *facts, const struct tfh_token_kind *k)
{
	return k->thread == TFH_FACTS_TOKEN_THREADS || facts->thread[k->thread].drives;
}

static bool is_anchor(const struct tfh_cutter *c, const struct tfh_token_kind *k)
{
	const struct tfh_anchor *a = c->anchor;

	switch (a->kind) {
	case TFH_ANCHOR_UPLOAD:
		return k->family == TFH_FAM_COPY && k->dir == TFH_DIR_H2D && k->what >= a->what;
	case TFH_ANCHOR_WAIT:
		return is_wait(k) && drives(c->facts, k) && (!a->hash || a->hash == k->hash);
	case TFH_ANCHOR_GRAPH:
		return k->family == TFH_FAM_GRAPH_LAUNCH && (!a->what || k->what == a->what);
	case TFH_ANCHOR_KERNEL:
		return k->family == TFH_FAM_LAUNCH && k->what == a->what;
	}
	return false;
}

/* Where a batch begins a step, waits and fetches are not part of the content that repeats: many
 * jobs read the loss only in every second step. */
static void add(struct tfh_cutter *c, const struct tfh_token_kind *k, int64_t t0)
{
	struct tfh_interval *s = &c->now;

	if (c->anchor->kind != TFH_ANCHOR_UPLOAD || !is_wait(k))
		s->exact += k->hash;
	if (!tfh_is_launch(k))
		return;
	if (!s->launches && c->anchor->kind == TFH_ANCHOR_WAIT && !c->open) {
		c->open = true;
		s->t0 = t0;
	}
	s->launches += k->family == TFH_FAM_GRAPH_LAUNCH ? TFH_LOOPS_GRAPH_LAUNCHES : 1;
	s->rough += k->rough;
}

static void begin(struct tfh_cutter *c, int64_t t0, int64_t t1)
{
	c->now = (struct tfh_interval){.t0 = t0, .t1 = t1, .from = c->n};
	c->open = true;
}

static bool cut_wait(struct tfh_cutter *c, const struct tfh_token_kind *k, int64_t t0, int64_t t1,
		     struct tfh_interval *out)
{
	if (!is_anchor(c, k)) {
		add(c, k, t0);
		return false;
	}
	if (!c->open)
		return false;
	if (!c->now.launches) { /* consecutive waits count as one */
		c->now.t0 = t1 > c->now.t0 ? t1 : c->now.t0;
		return false;
	}
	c->now.t1 = t1;
	c->now.to = c->n;
	*out = c->now;
	c->now = (struct tfh_interval){.t0 = t1, .from = c->n + 1};
	return true;
}

static bool cut_begin(struct tfh_cutter *c, const struct tfh_token_kind *k, int64_t t0, int64_t t1,
		      struct tfh_interval *out)
{
	bool cut = is_anchor(c, k) && (!c->open || c->now.launches), whole = cut && c->open;

	if (whole) {
		c->now.to = c->n;
		*out = c->now;
	}
	if (cut)
		begin(c, t0, t1);
	if (c->open && !(cut && c->anchor->kind == TFH_ANCHOR_UPLOAD))
		add(c, k, t0);
	return whole;
}

bool tfh_cut(struct tfh_cutter *c, const struct tfh_token_kind *kind, int64_t t0, int64_t t1,
	     struct tfh_interval *out)
{
	bool whole = c->anchor->kind == TFH_ANCHOR_WAIT ? cut_wait(c, kind, t0, t1, out)
							: cut_begin(c, kind, t0, t1, out);

	c->n++;
	c->launches += tfh_is_launch(kind);
	return whole;
}

/* Adds the plain launches before the next stop. */
static void take_launches(struct tfh_cutter *c)
{
	const struct tfh_stop *stop = &c->facts->stop.v[c->stop];
	const uint32_t from = c->n, n = stop->at - from;

	c->n = stop->at;
	c->launches += n;
	if (!n || (!c->open && c->anchor->kind != TFH_ANCHOR_WAIT))
		return;
	if (!c->open) {
		c->open = true;
		c->now.t0 = c->facts->token.v[from].t0;
	}
	c->now.launches += n;
	c->now.exact += stop->exact;
	c->now.rough += stop->rough;
}

/* Most tokens are plain launches; only kernel anchors need to check each of them. */
bool tfh_cut_next(struct tfh_cutter *c, struct tfh_interval *out)
{
	const struct tfh_facts *facts = c->facts;

	while (c->n < facts->token.n) {
		if (c->anchor->kind != TFH_ANCHOR_KERNEL)
			take_launches(c);
		if (c->n == facts->token.n)
			break;
		const struct tfh_token *t = &facts->token.v[c->n];
		c->stop++;
		if (tfh_cut(c, tfh_kind_of(facts, t), t->t0, tfh_token_end(t), out))
			return true;
	}
	return false;
}

bool tfh_cut_last(struct tfh_cutter *c, struct tfh_interval *out)
{
	if (c->anchor->kind == TFH_ANCHOR_WAIT || !c->open || !c->now.launches)
		return false;
	c->now.to = c->n;
	*out = c->now;
	return true;
}
