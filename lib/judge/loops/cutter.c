/*
 * Cuts the sequence of a job's launches, copies and waits at an anchor.
 */
#include "base/hash.h"

#include "judge/loops/anchor.h"

static bool is_wait(const struct tfh_token *t)
{
	return t->family == TFH_FAM_SYNC || (t->family == TFH_FAM_COPY && t->dir == TFH_DIR_D2H);
}

/* A loader's thread or a watchdog waits for its own reasons. */
static bool drives(const struct tfh_facts *facts, const struct tfh_token *t)
{
	return t->thread == TFH_FACTS_TOKEN_THREADS || facts->thread[t->thread].drives;
}

static bool is_anchor(const struct tfh_cutter *c, const struct tfh_token *t)
{
	const struct tfh_anchor *a = c->anchor;

	switch (a->kind) {
	case TFH_ANCHOR_UPLOAD:
		return t->family == TFH_FAM_COPY && t->dir == TFH_DIR_H2D && t->what >= a->what;
	case TFH_ANCHOR_WAIT:
		return is_wait(t) && drives(c->facts, t) && (!a->hash || a->hash == t->hash);
	case TFH_ANCHOR_GRAPH:
		return t->family == TFH_FAM_GRAPH_LAUNCH;
	case TFH_ANCHOR_KERNEL:
		return t->family == TFH_FAM_LAUNCH && t->what == a->what;
	}
	return false;
}

/* Where a batch begins a step, waits and fetches are no part of what comes again: many jobs look at
 * the loss in every second step only. */
static inline void add(struct tfh_cutter *c, const struct tfh_token *t)
{
	struct tfh_lap *s = &c->now;
	bool graph = t->family == TFH_FAM_GRAPH_LAUNCH;

	if (!c->bare && (c->anchor->kind != TFH_ANCHOR_UPLOAD || !is_wait(t)))
		s->exact += t->hash;
	if (!tfh_is_launch(t))
		return;
	if (!s->launches && c->anchor->kind == TFH_ANCHOR_WAIT && !c->open) {
		c->open = true;
		s->t0 = t->t0;
	}
	s->launches += graph ? TFH_LOOPS_GRAPH_LAUNCHES : 1;
	if (!c->bare)
		s->rough += tfh_hash_u64(graph ? 1 : ((uint64_t)t->what << 8) + 2);
}

static void begin(struct tfh_cutter *c, const struct tfh_token *t)
{
	c->now = (struct tfh_lap){.t0 = t->t0, .t1 = t->t1, .from = c->n};
	c->open = true;
}

static bool cut_wait(struct tfh_cutter *c, const struct tfh_token *t, struct tfh_lap *out)
{
	if (!is_anchor(c, t)) {
		add(c, t);
		return false;
	}
	if (!c->open)
		return false;
	if (!c->now.launches) { /* waits in a row are one */
		c->now.t0 = t->t1 > c->now.t0 ? t->t1 : c->now.t0;
		return false;
	}
	c->now.t1 = t->t1;
	c->now.to = c->n;
	*out = c->now;
	c->now = (struct tfh_lap){.t0 = t->t1, .from = c->n + 1};
	return true;
}

static bool cut_begin(struct tfh_cutter *c, const struct tfh_token *t, struct tfh_lap *out)
{
	bool cut = is_anchor(c, t) && (!c->open || c->now.launches), whole = cut && c->open;

	if (whole) {
		c->now.to = c->n;
		*out = c->now;
	}
	if (cut)
		begin(c, t);
	if (c->open && !(cut && c->anchor->kind == TFH_ANCHOR_UPLOAD))
		add(c, t);
	return whole;
}

bool tfh_cut(struct tfh_cutter *c, const struct tfh_token *t, struct tfh_lap *out)
{
	/* Most tokens are launches, which only anchors of kernels look at. */
	if (t->family == TFH_FAM_LAUNCH && c->anchor->kind != TFH_ANCHOR_KERNEL) {
		c->n++;
		if (c->open || c->anchor->kind == TFH_ANCHOR_WAIT)
			add(c, t);
		return false;
	}
	bool whole =
		c->anchor->kind == TFH_ANCHOR_WAIT ? cut_wait(c, t, out) : cut_begin(c, t, out);

	c->n++;
	return whole;
}

bool tfh_cut_last(struct tfh_cutter *c, struct tfh_lap *out)
{
	if (c->anchor->kind == TFH_ANCHOR_WAIT || !c->open || !c->now.launches)
		return false;
	c->now.to = c->n;
	*out = c->now;
	return true;
}
