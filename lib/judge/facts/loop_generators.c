/*
 * A loop over a generator of the program is seen as one of two: in the frame that has it while the
 * generator is suspended, and as the generator's own loop while that one runs. Both show how far
 * the same iterator has come, so they are one loop, that of the outer frame.
 */
#include <errno.h>
#include <stdlib.h>

#include "judge/facts/loop_entries.h"

static bool same_iteration(const struct tfh_loop_entry *a, const struct tfh_loop_entry *b)
{
	return a->parent == b->parent && a->parent_done == b->parent_done && a->left >= 0 &&
	       b->left >= 0 && a->done + (uint64_t)a->left == b->done + (uint64_t)b->left;
}

void tfh_note_resumed(struct tfh_loop_samples *l, uint32_t path)
{
	struct tfh_loop_path *p = &l->path.v[path - 1];
	const struct tfh_loop_entry *e = &l->entry.v[p->open - 1];

	for (uint32_t i = 1; i <= l->path.n; i++) {
		const struct tfh_loop_path *q = &l->path.v[i - 1];
		const struct tfh_loop_entry *other = q->open ? &l->entry.v[q->open - 1] : NULL;
		if (!other || q->depth >= p->depth || other->last <= e->last ||
		    !same_iteration(e, other))
			continue;
		p->twins = p->twin == i ? p->twins + 1 : 1;
		p->twin = i;
	}
}

/* Whether b, which was seen later, may be the rest of a. */
static bool continues(const struct tfh_loop_entry *a, const struct tfh_loop_entry *b)
{
	return b->first <= a->last || (a->left > 0 && b->done >= a->done);
}

/* The entry of path `a` in the same iteration of the loop around them; NULL: there is none. */
static struct tfh_loop_entry *match(const struct tfh_loop_samples *l, uint32_t a,
				    const struct tfh_loop_entry *y)
{
	for (size_t i = y->parent; i < l->entry.n; i++) {
		struct tfh_loop_entry *x = &l->entry.v[i];
		if (x->path == a && same_iteration(x, y) &&
		    (x->first < y->first ? continues(x, y) : continues(y, x)))
			return x;
		if (x->parent == y->parent && x->parent_done > y->parent_done)
			break;
	}
	return NULL;
}

static void add(struct tfh_loop_entry *x, const struct tfh_loop_entry *y)
{
	x->first = y->first < x->first ? y->first : x->first;
	x->last = y->last > x->last ? y->last : x->last;
	x->left = y->done > x->done ? y->left : x->left;
	x->done = y->done > x->done ? y->done : x->done;
	x->ns += y->ns;
	x->waits += y->waits;
}

/* Makes the entries of path `b` entries of path `a`, or adds them to those. to: where each entry
 * has gone, itself otherwise. */
static void unite(struct tfh_loop_samples *l, uint32_t a, uint32_t b, uint32_t *to)
{
	struct tfh_loop_entry *x, *like = NULL, *v = l->entry.v;

	for (uint32_t i = 0; i < l->entry.n && !like; i++)
		like = v[i].path == b ? match(l, a, &v[i]) : NULL;
	for (uint32_t i = 0; i < l->entry.n && like; i++) {
		if (v[i].path != b || to[i] != i)
			continue;
		x = match(l, a, &v[i]);
		v[i].path = a;
		if (x) {
			add(x, &v[i]);
			to[i] = (uint32_t)(x - v);
		} else {
			v[i].lo = like->lo;
			v[i].hi = like->hi;
		}
	}
}

/* Leaves out the entries that were added to others. */
static void close_up(struct tfh_loop_samples *l, const uint32_t *to, uint32_t *now)
{
	struct tfh_loop_entry *v = l->entry.v;
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->entry.n; i++)
		now[i] = to[i] == i ? n++ : 0;
	for (uint32_t i = 0, at; i < l->entry.n; i++) {
		for (at = i; to[at] != at;)
			at = to[at];
		now[i] = now[at];
		if (at == i)
			v[now[i]] = v[i];
	}
	l->entry.n = n;
	for (size_t i = 0; i < n; i++)
		v[i].parent = v[i].parent ? now[v[i].parent - 1] + 1 : 0;
	for (size_t i = 0; i < l->at.n; i++)
		l->at.v[i].entry = now[l->at.v[i].entry];
	for (size_t i = 0; i < l->span.n; i++)
		l->span.v[i].entry = now[l->span.v[i].entry];
}

int tfh_join_generators(struct tfh_loop_samples *l)
{
	const size_t n = l->entry.n;
	uint32_t *to = calloc(2 * n + 1, sizeof(*to));

	for (uint32_t i = 0; to && i < n; i++)
		to[i] = i;
	for (uint32_t i = 0; to && i < l->path.n; i++)
		if (TFH_DETECT_GENERATORS && l->path.v[i].twins >= TFH_VERDICT_LINE_SAMPLES)
			unite(l, l->path.v[i].twin - 1, i, to);
	if (to)
		close_up(l, to, to + n);
	free(to);
	return to ? 0 : -ENOMEM;
}
