#include "base/bisect.h"
#include "judge/chain.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/drawn.h"

void tfh_chain_init(struct tfh_chain *c, uint32_t process, uint64_t step)
{
	memset(c, 0, sizeof(*c));
	c->process = process;
	c->step = step;
	c->window = TFH_NO_STEP;
	c->most = TFH_CHAIN_LINKS;
	tfh_arena_init(&c->arena, 0);
}

void tfh_chain_init_step(struct tfh_chain *c, uint32_t process, const struct tfh_step *step)
{
	tfh_chain_init(c, process, step->index);
	c->from = llround(step->start_s * 1e9);
	c->to = c->from + llround(step->dur_s * 1e9);
}

void tfh_chain_free(struct tfh_chain *c)
{
	free(c->link.v);
	tfh_arena_free(&c->arena);
}

void tfh_likely_init(struct tfh_likely *l, uint64_t step)
{
	l->step = step;
	for (int i = 0; i < TFH_CHAIN_LIKELY; i++) {
		tfh_chain_init(&l->chain[i], UINT32_MAX, TFH_NO_STEP);
		l->chain[i].most = TFH_CHAIN_LIKELY_LINKS;
		l->chain[i].next = i + 1 < TFH_CHAIN_LIKELY ? &l->chain[i + 1] : NULL;
	}
}

void tfh_likely_free(struct tfh_likely *l)
{
	for (int i = 0; i < TFH_CHAIN_LIKELY; i++)
		tfh_chain_free(&l->chain[i]);
}

static struct tfh_chain *likely_of(struct tfh_likely *l, const struct tfh_chain *c)
{
	for (int i = 0; i < TFH_CHAIN_LIKELY; i++)
		if (l->chain[i].step == c->step && l->chain[i].process == c->process &&
		    !l->chain[i].cut)
			return &l->chain[i];
	return NULL;
}

bool tfh_likely_give(struct tfh_likely *l, struct tfh_chain *to)
{
	for (struct tfh_chain *c = to; c; c = c->next)
		if (!likely_of(l, c))
			return false;
	for (struct tfh_chain *c = to; c; c = c->next) {
		struct tfh_chain *from = likely_of(l, c);
		c->link = from->link;
		c->rc = from->rc;
		memset(&from->link, 0, sizeof(from->link));
	}
	return true;
}

void tfh_chain_add(struct tfh_chain *c, const struct tfh_link *link)
{
	if (link->t1 <= link->t0)
		return;
	c->cut |= c->link.n == c->most;
	if (!c->cut && TFH_PUSH(c->link, *link))
		c->rc = -ENOMEM;
}

static void settle(struct tfh_chain *c, bool busy, enum tfh_cause device)
{
	for (; c->settled < c->link.n; c->settled++) {
		struct tfh_link *l = &c->link.v[c->settled];
		if (l->tentative && busy)
			l->cause = device;
		l->tentative = false;
	}
}

void tfh_chain_settle(struct tfh_chain *c, bool busy, enum tfh_cause device)
{
	for (; c; c = c->next)
		settle(c, busy, device);
}

/* ---- names ---- */

static int by_time(const void *a, const void *b)
{
	const struct tfh_link *x = a, *y = b;

	return x->t0 < y->t0 ? -1 : x->t0 > y->t0;
}

/* How well [t0, t1) and a link coincide: their overlap as a share of their union. */
static double alike(const struct tfh_link *l, int64_t t0, int64_t t1)
{
	int64_t a = l->t0 > t0 ? l->t0 : t0, b = l->t1 < t1 ? l->t1 : t1;
	int64_t from = l->t0 < t0 ? l->t0 : t0, to = l->t1 > t1 ? l->t1 : t1;

	return b > a ? (double)(b - a) / (double)(to - from) : 0;
}

/* The first link that ends after t. */
static size_t first_after(const struct tfh_chain *c, int64_t t)
{
	return TFH_BISECT(i, 0, c->link.n, c->link.v[i].t1 <= t);
}

/* Whether the cause belongs to pauses, not to calls. */
static bool between(enum tfh_cause cause)
{
	return tfh_cause_part(cause) == TFH_PART_HOST && cause != TFH_CAUSE_HOST_ALLOC &&
	       cause != TFH_CAUSE_HOST_COMPILE && cause != TFH_CAUSE_HOST_CHECKPOINT;
}

/* The naming of a chain. */
struct naming {
	struct tfh_chain *c;
	double *best;	  /* by link: how well the call or op that named it coincides */
	int64_t from, to; /* the time that is read for it */
};

/* Names a link after the call or op that coincides with it best. */
static void offer(struct naming *n, int64_t t0, int64_t t1, bool device, const char *what,
		  const char *where)
{
	struct tfh_chain *c = n->c;
	size_t first = first_after(c, t0);

	for (size_t i = first; i < c->link.n && c->link.v[i].t0 < t1 && i - first < TFH_CHAIN_REACH;
	     i++) {
		struct tfh_link *l = &c->link.v[i];
		enum tfh_part part =
			l->cause == TFH_CAUSE_NONE ? TFH_PART_COMPUTE : tfh_cause_part(l->cause);
		bool ran = part == TFH_PART_COMPUTE || part == TFH_PART_COMMUNICATION;
		double like = alike(l, t0, t1);
		/* Links of computing are named after ops; links of the host after calls of about
		 * the same duration, except for what the host does between its calls. */
		if (ran ? !device : (device && part != TFH_PART_TRANSFER) || between(l->cause))
			continue;
		if (like <= n->best[i] || (!ran && like < TFH_CHAIN_ALIKE))
			continue;
		n->best[i] = like;
		l->what = what;
		l->where = where;
	}
}

static int take_call(struct naming *n, const struct tfh_feed *f, const struct tfh_event *ev)
{
	if (ev->t1 <= n->from || ev->t0 >= n->to || !ev->fn)
		return 0;
	if (ev->kind != TFT_RANGE)
		offer(n, ev->t0, ev->t1, false, ev->fn->name,
		      ev->stack && f->site ? f->site(f->arg, n->c->process, ev->stack) : "");
	return n->c->drawn ? tfh_draw_call(n->c->drawn, f, n->c->process, ev) : 0;
}

static int take_op(struct naming *n, const struct tfh_op *op)
{
	if (op->t1 <= n->from || op->t0 >= n->to)
		return 0;
	if (op->name && *op->name)
		offer(n, op->t0, op->t1, true, op->name, "");
	return n->c->drawn ? tfh_draw_op(n->c->drawn, op) : 0;
}

static int read_calls(struct naming *n, size_t chains, const struct tfh_feed *f,
		      struct tfh_err *err)
{
	struct tfh_event room;
	const struct tfh_event *ev;
	int rc = f->rewind(f->arg, n->c->process, err);

	while (!rc && (ev = tfh_feed_borrow(f, &room)))
		for (size_t i = 0; i < chains && !rc; i++)
			rc = take_call(&n[i], f, ev);
	return rc ? rc : f->error ? f->error(f->arg, err) : 0;
}

static int read_ops(struct naming *n, size_t chains, const struct tfh_feed *f, struct tfh_err *err)
{
	struct tfh_op room;
	const struct tfh_op *op;
	int64_t last = INT64_MIN;
	int rc = f->rewind_ops ? f->rewind_ops(f->arg, n->c->process, err) : 0;

	for (size_t i = 0; i < chains; i++) {
		memset(n[i].best, 0, n[i].c->link.n * sizeof(*n[i].best));
		last = n[i].to > last ? n[i].to : last;
	}
	while (!rc && f->rewind_ops && (op = tfh_feed_borrow_op(f, &room)) && op->t0 < last)
		for (size_t i = 0; i < chains && !rc; i++)
			rc = take_op(&n[i], op);
	return rc;
}

static bool follows(const struct tfh_link *a, const struct tfh_link *b)
{
	return a->t1 == b->t0 && a->cause == b->cause && !strcmp(a->what, b->what) &&
	       !strcmp(a->where, b->where);
}

static void join(struct tfh_chain *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->link.n; i++) {
		if (n && follows(&c->link.v[n - 1], &c->link.v[i]))
			c->link.v[n - 1].t1 = c->link.v[i].t1;
		else
			c->link.v[n++] = c->link.v[i];
	}
	c->link.n = n;
}

/* Copies the texts, because those of the feed do not outlive it. */
static int keep_texts(struct tfh_chain *c)
{
	for (size_t i = 0; i < c->link.n; i++) {
		struct tfh_link *l = &c->link.v[i];
		l->what = tfh_arena_strdup(&c->arena, l->what);
		l->where = tfh_arena_strdup(&c->arena, l->where);
		if (!l->what || !l->where)
			return -ENOMEM;
	}
	return 0;
}

/* Drops what lies outside of the step, if it is only a part of its window. */
static void cut_to_step(struct tfh_chain *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->link.n && c->to > c->from; i++) {
		struct tfh_link l = c->link.v[i];
		l.t0 = l.t0 > c->from ? l.t0 : c->from;
		l.t1 = l.t1 < c->to ? l.t1 : c->to;
		if (l.t1 > l.t0)
			c->link.v[n++] = l;
	}
	c->link.n = c->to > c->from ? n : c->link.n;
}

/* Sorts the links and resets their names. Nothing is read for a chain that has no links and is not
 * drawn. */
static int begin_naming(struct naming *n, struct tfh_chain *c)
{
	*n = (struct naming){.c = c, .from = INT64_MAX, .to = INT64_MIN};
	cut_to_step(c);
	for (size_t i = 0; i < c->link.n; i++)
		c->link.v[i].what = c->link.v[i].where = "";
	if (c->link.n) {
		qsort(c->link.v, c->link.n, sizeof(*c->link.v), by_time);
		n->from = c->link.v[0].t0;
		n->to = c->link.v[c->link.n - 1].t1;
	}
	if (c->drawn) {
		n->from = c->drawn->from < n->from ? c->drawn->from : n->from;
		n->to = c->drawn->to > n->to ? c->drawn->to : n->to;
	}
	n->best = calloc(c->link.n + 1, sizeof(*n->best));
	return c->rc || !n->best ? -ENOMEM : 0;
}

int tfh_chain_finish(struct tfh_chain *first, const struct tfh_feed *f, struct tfh_err *err)
{
	size_t chains = 0, begun = 0;
	int rc = 0;

	for (struct tfh_chain *c = first; c; c = c->next)
		chains++;
	struct naming *n = calloc(chains, sizeof(*n));
	for (struct tfh_chain *c = first; c && n && !rc; c = c->next)
		rc = begin_naming(&n[begun++], c);
	rc = n ? rc : -ENOMEM;
	if (!rc)
		rc = read_calls(n, chains, f, err);
	if (!rc)
		rc = read_ops(n, chains, f, err);
	for (struct tfh_chain *c = first; c && !rc; c = c->next) {
		join(c);
		rc = keep_texts(c);
	}
	if (rc == -ENOMEM)
		tfh_err_set(err, rc, "out of memory");
	for (size_t i = 0; i < begun; i++)
		free(n[i].best);
	free(n);
	return rc;
}
