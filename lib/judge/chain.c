#include "judge/chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void tfh_chain_init(struct tfh_chain *c, uint32_t process, uint64_t step)
{
	memset(c, 0, sizeof(*c));
	c->process = process;
	c->step = step;
	tfh_arena_init(&c->arena, 0);
}

void tfh_chain_free(struct tfh_chain *c)
{
	free(c->link.v);
	tfh_arena_free(&c->arena);
}

void tfh_chain_add(struct tfh_chain *c, const struct tfh_link *link)
{
	if (link->t1 > link->t0 && c->link.n < TFH_CHAIN_LINKS && TFH_PUSH(c->link, *link))
		c->rc = -ENOMEM;
}

void tfh_chain_settle(struct tfh_chain *c, bool busy, enum tfh_cause device)
{
	for (size_t i = 0; i < c->link.n; i++) {
		struct tfh_link *l = &c->link.v[i];
		if (l->tentative && busy) {
			l->cause = device;
			l->pause = false;
		}
		l->tentative = false;
	}
}

/* ---- names ---- */

static int by_time(const void *a, const void *b)
{
	const struct tfh_link *x = a, *y = b;

	return x->t0 < y->t0 ? -1 : x->t0 > y->t0;
}

/* How well [t0, t1) and a link are the same time: what they share of what either has. */
static double alike(const struct tfh_link *l, int64_t t0, int64_t t1)
{
	int64_t a = l->t0 > t0 ? l->t0 : t0, b = l->t1 < t1 ? l->t1 : t1;
	int64_t from = l->t0 < t0 ? l->t0 : t0, to = l->t1 > t1 ? l->t1 : t1;

	return b > a ? (double)(b - a) / (double)(to - from) : 0;
}

/* The first link that ends behind t. */
static size_t first_behind(const struct tfh_chain *c, int64_t t)
{
	size_t lo = 0, hi = c->link.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (c->link.v[mid].t1 > t)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* Causes that pauses have, and no calls. */
static bool between(enum tfh_cause cause)
{
	return tfh_cause_part(cause) == TFH_PART_HOST && cause != TFH_CAUSE_HOST_ALLOC &&
	       cause != TFH_CAUSE_HOST_COMPILE && cause != TFH_CAUSE_HOST_CHECKPOINT;
}

/* Names a link after what is most like it in time. `best`: by link, how much that is so far. */
static void offer(struct tfh_chain *c, double *best, int64_t t0, int64_t t1, bool device,
		  const char *what, const char *where)
{
	size_t first = first_behind(c, t0);

	for (size_t i = first; i < c->link.n && c->link.v[i].t0 < t1 && i - first < TFH_CHAIN_REACH;
	     i++) {
		struct tfh_link *l = &c->link.v[i];
		enum tfh_part part =
			l->cause == TFH_CAUSE_NONE ? TFH_PART_COMPUTE : tfh_cause_part(l->cause);
		bool ran = part == TFH_PART_COMPUTE || part == TFH_PART_COMMUNICATION;
		double like = alike(l, t0, t1);
		/* What computes is named after ops; what the host does after calls that are about as long,
		 * but for what it does between its calls. */
		if (ran ? !device : (device && part != TFH_PART_TRANSFER) || between(l->cause))
			continue;
		if (like <= best[i] || (!ran && like < TFH_CHAIN_ALIKE))
			continue;
		best[i] = like;
		l->what = what;
		l->where = where;
	}
}

static int name_by_calls(struct tfh_chain *c, double *best, int64_t from, int64_t to,
			 const struct tfh_feed *f, struct tfh_err *err)
{
	struct tfh_event room;
	const struct tfh_event *ev;
	int rc = f->rewind(f->arg, c->process, err);

	while (!rc && (ev = tfh_feed_look(f, &room))) {
		if (ev->t1 <= from || ev->t0 >= to || !ev->fn || ev->kind == TFT_RANGE)
			continue;
		offer(c, best, ev->t0, ev->t1, false, ev->fn->name,
		      ev->stack && f->site ? f->site(f->arg, c->process, ev->stack) : "");
	}
	return rc ? rc : f->error ? f->error(f->arg, err) : 0;
}

static int name_by_ops(struct tfh_chain *c, double *best, int64_t from, int64_t to,
		       const struct tfh_feed *f, struct tfh_err *err)
{
	struct tfh_op room;
	const struct tfh_op *op;
	int rc = f->rewind_ops ? f->rewind_ops(f->arg, c->process, err) : 0;

	while (!rc && f->rewind_ops && (op = tfh_feed_look_op(f, &room)) && op->t0 < to)
		if (op->t1 > from && op->name && *op->name)
			offer(c, best, op->t0, op->t1, true, op->name, "");
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

/* The feed's texts do not outlive it. */
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

int tfh_chain_finish(struct tfh_chain *c, const struct tfh_feed *f, struct tfh_err *err)
{
	double *best = calloc(c->link.n + 1, sizeof(*best));
	int rc = c->rc || !best ? -ENOMEM : 0;

	if (rc)
		tfh_err_set(err, rc, "out of memory");
	for (size_t i = 0; i < c->link.n; i++)
		c->link.v[i].what = c->link.v[i].where = "";
	if (!rc && c->link.n) {
		qsort(c->link.v, c->link.n, sizeof(*c->link.v), by_time);
		int64_t from = c->link.v[0].t0, to = c->link.v[c->link.n - 1].t1;
		rc = name_by_calls(c, best, from, to, f, err);
		memset(best, 0, c->link.n * sizeof(*best));
		if (!rc)
			rc = name_by_ops(c, best, from, to, f, err);
		join(c);
		if (!rc && (rc = keep_texts(c)))
			tfh_err_set(err, rc, "out of memory");
	}
	free(best);
	return rc;
}
