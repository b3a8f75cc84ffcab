/*
 * Events are pushed onto a stack. If its last p items equal the p items before them, both become
 * one loop of two iterations; if they equal the body of the loop below them, or of the loop that
 * ends its body, that loop gets one iteration more. The smallest p wins, and the result may fold
 * again with the items below it. Each event costs one search of TFH_LOOPS_BODY keys.
 */
#include "judge/loops/fold.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "judge/numbers.h"
#include "model/vec.h"

static const uint64_t loop_salt = 0x6c6f6f70,
		      base = 0x9e3779b97f4a7c15; /* base of the rolling hash, must be odd */

struct tfh_fold {
	struct tfh_node *v; /* [TFH_LOOPS_UNFOLDED + 1] */
	uint64_t *key;	    /* of each node; a separate array makes the search fast */
	uint64_t *sum;	    /* rolling hash of the keys up to and including each one */
	uint32_t n;
	bool begins; /* record the begin of each iteration */
	uint64_t power[TFH_LOOPS_BODY + 1];
};

struct tfh_fold *tfh_fold_new(bool begins)
{
	struct tfh_fold *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->begins = begins;
	f->v = malloc((TFH_LOOPS_UNFOLDED + 1) * sizeof(*f->v));
	f->key = malloc((TFH_LOOPS_UNFOLDED + 1) * sizeof(*f->key));
	f->sum = malloc((TFH_LOOPS_UNFOLDED + 1) * sizeof(*f->sum));
	if (!f->v || !f->key || !f->sum) {
		tfh_fold_free(f);
		return NULL;
	}
	f->power[0] = 1;
	for (uint32_t i = 1; i <= TFH_LOOPS_BODY; i++)
		f->power[i] = f->power[i - 1] * base;
	return f;
}

void tfh_node_clear(struct tfh_node *node)
{
	for (uint32_t i = 0; i < node->n_body; i++)
		tfh_node_clear(&node->body[i]);
	free(node->body);
	free(node->begin);
	node->begin = NULL;
	node->n_begin = node->room = 0;
	node->body = NULL;
	node->n_body = 0;
}

/* Without memory, the loop has no recorded begins. */
void tfh_node_begin(struct tfh_node *loop, int64_t t)
{
	if (!loop->n_begin)
		return;
	if (loop->n_begin == loop->room &&
	    tfh_vec_grow((void **)&loop->begin, &loop->room, loop->n_begin, sizeof(t)))
		loop->n_begin = 0;
	else
		loop->begin[loop->n_begin++] = t;
}

void tfh_node_take_begins(struct tfh_node *loop, struct tfh_node *from)
{
	for (size_t i = 0; i < from->n_begin; i++)
		tfh_node_begin(loop, from->begin[i]);
	free(from->begin);
	from->begin = NULL;
	from->n_begin = from->room = 0;
}

void tfh_fold_free(struct tfh_fold *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; i < f->n; i++)
		tfh_node_clear(&f->v[i]);
	free(f->v);
	free(f->key);
	free(f->sum);
	free(f);
}

/* Adds b, which is equal, to a, and leaves b empty. */
static void merge(struct tfh_node *a, struct tfh_node *b)
{
	tfh_node_add(a, b);
	a->first_ns += b->first_ns;
	a->n += b->n;
	a->runs += b->runs;
	tfh_node_take_begins(a, b);
	for (uint32_t i = 0; i < a->n_body; i++)
		merge(&a->body[i], &b->body[i]);
	free(b->body);
	b->body = NULL;
	b->n_body = 0;
}

static void put(struct tfh_fold *f, const struct tfh_node *item)
{
	uint32_t i = f->n++;

	f->v[i] = *item;
	f->key[i] = item->key;
	f->sum[i] = (i ? f->sum[i - 1] * base : 0) + item->key;
}

/* Hash of the p keys that end before item `end`. */
static uint64_t hash_of(const struct tfh_fold *f, uint32_t end, uint32_t p)
{
	uint64_t before = end > p ? f->sum[end - p - 1] : 0;

	return f->sum[end - 1] - before * f->power[p];
}

static bool is_body(const struct tfh_node *loop, const struct tfh_node *item, uint32_t p)
{
	uint32_t i = 0;

	if (loop->n_body != p)
		return false;
	while (i < p && loop->body[i].key == item[i].key)
		i++;
	return i == p;
}

/* Tries the last p items as one more iteration of the loop below them, or of the loop that ends its
 * body: an outer loop is recognised before the last run of its inner loop is over. False: they are
 * neither. */
static bool one_more(struct tfh_fold *f, uint32_t p)
{
	struct tfh_node *loop = &f->v[f->n - p - 1], *item = loop + 1, *inner = loop;
	struct tfh_node more = {0};

	while (inner->body && !is_body(inner, item, p))
		inner = &inner->body[inner->n_body - 1];
	if (!inner->body)
		return false;
	tfh_node_begin(inner, item->t0);
	for (uint32_t i = 0; i < p; i++) {
		tfh_node_add(&more, &item[i]);
		merge(&inner->body[i], &item[i]);
	}
	inner->n++;
	f->n -= p;
	for (;; loop = &loop->body[loop->n_body - 1]) {
		tfh_node_add(loop, &more);
		if (loop == inner)
			return true;
	}
}

/* Makes a loop of two iterations from the last p items and the equal p items before them. */
static int new_loop(struct tfh_fold *f, uint32_t p)
{
	struct tfh_node *a = &f->v[f->n - 2 * p], *b = a + p;
	struct tfh_node loop = {.t0 = a->t0, .n = 2, .runs = 1, .n_body = p};

	loop.body = malloc(p * sizeof(*loop.body));
	if (!loop.body)
		return -ENOMEM;
	if (f->begins && !tfh_vec_grow((void **)&loop.begin, &loop.room, 0, sizeof(*loop.begin))) {
		loop.begin[loop.n_begin++] = a->t0;
		tfh_node_begin(&loop, b->t0);
	}
	loop.key = loop_salt;
	for (uint32_t i = 0; i < p; i++) {
		loop.body[i] = a[i];
		loop.first_ns += a[i].ns;
		loop.key = tfh_hash_add(loop.key, a[i].key);
		merge(&loop.body[i], &b[i]);
		tfh_node_add(&loop, &loop.body[i]);
	}
	f->n -= 2 * p;
	put(f, &loop);
	return 0;
}

/* Joins two adjacent runs of the same loop. */
static void join_loops(struct tfh_fold *f)
{
	struct tfh_node *a = &f->v[f->n - 2], *b = a + 1;
	int64_t first_ns = a->first_ns;
	uint64_t runs = a->runs;

	merge(a, b);
	a->first_ns = first_ns;
	a->runs = runs;
	f->n--;
}

/* An iteration could begin with any of its repeating events. The one of highest rank begins it, so
 * that the same loop always looks the same. If it contains loops, the first position is kept. */
static bool begins(const struct tfh_fold *f, uint32_t at, uint32_t p)
{
	uint32_t best = at;

	for (uint32_t i = at; i < at + p; i++) {
		const struct tfh_node *v = &f->v[i];
		if (v->body)
			return true;
		if (v->rank > f->v[best].rank ||
		    (v->rank == f->v[best].rank && v->key > f->v[best].key))
			best = i;
	}
	return f->key[best] == f->key[at];
}

/* Folds the end of the stack once; 1: it did, 0: nothing to fold, or -ENOMEM. */
static int fold_once(struct tfh_fold *f)
{
	uint32_t n = f->n, most = n - 1 < TFH_LOOPS_BODY ? n - 1 : TFH_LOOPS_BODY;
	uint64_t last = f->key[n - 1];

	for (uint32_t p = 1; p <= most; p++) {
		const struct tfh_node *below = &f->v[n - p - 1];
		if (below->body && one_more(f, p))
			return 1;
		if (f->key[n - 1 - p] != last || 2 * p > n ||
		    hash_of(f, n, p) != hash_of(f, n - p, p) || !begins(f, n - 2 * p, p))
			continue;
		if (p == 1 && below->body) {
			join_loops(f);
			return 1;
		}
		int rc = new_loop(f, p);
		return rc ? rc : 1;
	}
	return 0;
}

/* Adds b, which differs, to a; the result has no known kind. */
static void blur(struct tfh_node *a, struct tfh_node *b)
{
	tfh_node_clear(a);
	tfh_node_clear(b);
	a->key = tfh_hash_add(a->key, b->key);
	a->kind = 0;
	a->n = 1;
	a->runs = 0;
	tfh_node_add(a, b);
}

/* Makes room when too many items do not fold: adds up neighbours that are not loops, and if that is
 * not enough, the whole older half. */
static void make_room(struct tfh_fold *f)
{
	uint32_t n = f->n, whole = 0;

	for (uint32_t i = 0; i < n; i++)
		whole += f->v[i].body != NULL;
	whole = whole > TFH_LOOPS_UNFOLDED / 4 ? n / 2 : 0;
	f->n = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct tfh_node item = f->v[i];
		struct tfh_node *last = f->n ? &f->v[f->n - 1] : NULL;
		bool apart = item.body || i + TFH_LOOPS_BODY >= n || !last || last->body;
		if (last && (!apart || i < whole))
			blur(last, &item);
		else
			put(f, &item);
	}
}

int tfh_fold_add(struct tfh_fold *f, const struct tfh_node *event)
{
	int rc = 1;

	if (f->n == TFH_LOOPS_UNFOLDED)
		make_room(f);
	put(f, event);
	while (rc > 0 && f->n > 1)
		rc = fold_once(f);
	return rc < 0 ? rc : 0;
}

void tfh_fold_end(struct tfh_fold *f, struct tfh_node *root)
{
	*root = (struct tfh_node){.n = 1, .runs = 1, .body = f->v, .n_body = f->n};
	for (uint32_t i = 0; i < f->n; i++)
		tfh_node_add(root, &f->v[i]);
	root->t0 = f->n ? f->v[0].t0 : 0;
	f->v = NULL;
	f->n = 0;
	tfh_fold_free(f);
}
