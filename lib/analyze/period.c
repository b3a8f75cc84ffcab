/*
 * Steps of a job that tells nothing but its driver calls: the period of its sequence of launches,
 * copies and waits. One kind of call, told by function, size and kernel, begins every step: the
 * anchor. It is good when what lies between two of its calls is mostly the same every time and
 * contains launches. Copies to the device come first, as a new batch is what makes a step; then
 * waits, copies back, graph launches, kernels. Where nothing comes again like that, batches may be
 * of different sizes (sentences, requests): then sizes and grids are left out of account. Kernels
 * come after that: one that a step launches again and again would make many steps of one.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#include "analyze/internal.h"

#define MAX_KINDS 4096
#define PURITY 0.6
#define MAX_ROUGH 1000000

struct kind {
	uint64_t hash, count;
	uint8_t rank;
};

static uint8_t rank_of(const struct tfh_token *t)
{
	if (t->family == TFH_FAM_COPY)
		return t->dir == TFH_DIR_H2D ? 5 : t->dir == TFH_DIR_D2H ? 3 : 0;
	if (t->family == TFH_FAM_SYNC)
		return 4;
	return t->family == TFH_FAM_GRAPH_LAUNCH ? 2 : 1;
}

static struct kind *kind_of(struct kind *table, uint64_t hash)
{
	for (uint64_t i = tfh_hash_u64(hash), n = 0; n < MAX_KINDS; i++, n++) {
		struct kind *k = &table[i % MAX_KINDS];
		if (k->hash == hash || !k->count) {
			k->hash = hash;
			return k;
		}
	}
	return NULL;
}

static bool is_launch(const struct tfh_token *t)
{
	return t->family == TFH_FAM_LAUNCH || t->family == TFH_FAM_GRAPH_LAUNCH;
}

/* Content of the stretch up to the next call of one kind: order-free sum of hashes, so that threads
 * do not matter. Where a batch begins the step, waits and fetches are no part of it: many jobs look
 * at the loss in every second step only. */
static uint64_t stretch(const struct tfh_job *job, size_t *i, const struct kind *k,
			uint64_t *launches)
{
	uint64_t sum = 0;

	*launches = 0;
	for (; *i < job->token.n && job->token.v[*i].hash != k->hash; (*i)++) {
		const struct tfh_token *t = &job->token.v[*i];
		uint8_t rank = rank_of(t);
		if (k->rank != 5 || (rank != 4 && rank != 3))
			sum += tfh_hash_u64(t->hash);
		*launches += is_launch(t);
	}
	return sum;
}

static double purity(const struct tfh_job *job, const struct kind *k, bool self_launch)
{
	uint64_t majority = 0, vote = 0, same = 0, all = 0, launches;

	for (int pass = 0; pass < 2; pass++) {
		size_t i = 0;
		stretch(job, &i, k, &launches);
		while (i < job->token.n) {
			i++;
			uint64_t c = stretch(job, &i, k, &launches);
			if (i >= job->token.n)
				break;
			if (!launches && !self_launch)
				c = (uint64_t)-1 -
				    i; /* nothing launched: no step, equals nothing */
			if (pass) {
				all++;
				same += c == majority;
			} else if (!vote) {
				majority = c;
				vote = 1;
			} else {
				vote += c == majority ? 1 : (uint64_t)-1;
			}
		}
	}
	return all ? (double)same / (double)all : 0;
}

static int by_begin(const void *a, const void *b)
{
	const struct tfh_token *x = a, *y = b;

	if (x->t0 != y->t0)
		return x->t0 < y->t0 ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static int by_number(const void *a, const void *b)
{
	const struct tfh_token *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* Calls of one thread come in this order anyway. */
static void sort_tokens(struct tfh_job *job)
{
	for (size_t i = 1; i < job->token.n; i++)
		if (by_begin(&job->token.v[i - 1], &job->token.v[i]) > 0) {
			qsort(job->token.v, job->token.n, sizeof(*job->token.v), by_begin);
			return;
		}
}

/* What tells the kinds of calls apart. */
struct eye {
	bool rough;    /* no sizes, no grids, and copies in a row are one */
	uint64_t copy; /* the last one, while nothing was launched since */
};

static bool see(struct eye *e, const struct tfh_event *ev, struct tfh_token *t)
{
	struct tfh_piece p;

	if (!tfh_event_label(ev, &p) || p.passive || !tfh_token_of(ev, &p, t))
		return false;
	if (!e->rough)
		return true;
	t->hash = tfh_hash_add(t->family,
			       is_launch(t) ? ev->w[0] & 0xffffffffu : tfh_hash_str(ev->fn->name));
	bool again = t->family == TFH_FAM_COPY && t->hash == e->copy;
	if (t->family == TFH_FAM_COPY)
		e->copy = t->hash;
	else if (is_launch(t))
		e->copy = 0;
	return !again;
}

/* A step begins with its batch, or ends with its wait: then it began where the one before ended,
 * the first one with the first call that launched for it. */
struct marker {
	const struct kind *anchor;
	bool ends;
	int64_t begin;
};

static int mark_token(struct tfh_job *job, struct marker *m, const struct tfh_token *t)
{
	struct tfh_tick tick = {.t0 = m->ends ? m->begin : t->t0, .t1 = t->t1};

	if (m->begin == INT64_MIN && is_launch(t))
		m->begin = t->t0;
	if (t->hash != m->anchor->hash || (m->ends && m->begin == INT64_MIN))
		return 0;
	m->begin = t->t1;
	return TFH_PUSH_BIG(job->mark, tick);
}

/* Of the tokens that were kept. */
static int mark_kept(struct tfh_job *job, struct marker *m)
{
	TFH_VEC(struct tfh_token) hit = {0};
	int rc = 0;

	for (size_t i = 0; i < job->token.n && !rc; i++)
		if (job->token.v[i].hash == m->anchor->hash)
			rc = TFH_PUSH(hit, job->token.v[i]);
	if (!rc && hit.n)
		qsort(hit.v, hit.n, sizeof(*hit.v), by_number);
	for (size_t i = 0; i < hit.n && !rc; i++) {
		if (m->begin == INT64_MIN && hit.v[i].number > job->first_launch)
			m->begin = job->first_launch_t0;
		rc = mark_token(job, m, &hit.v[i]);
	}
	if (m->begin == INT64_MIN)
		m->begin = job->first_launch_t0;
	for (size_t i = 0; i < job->late.n && !rc; tfh_big_pass(++i))
		rc = mark_token(job, m, &job->late.v[i]);
	free(hit.v);
	return rc;
}

/* Of all: a pass of its own where too few were kept, or `again`: others. */
static int mark_steps(struct tfh_job *job, const struct kind *anchor, bool rough, bool again,
		      struct tfh_err *err)
{
	const struct tfh_feed *f = job->feed;
	struct marker m = {anchor, anchor->rank == 4 || anchor->rank == 3, INT64_MIN};
	struct eye e = {.rough = rough};
	struct tfh_event ev;
	struct tfh_token t;
	int rc;

	if (!again && job->first_launch && !job->late_lost &&
	    !(job->late_launch && anchor->rank == 1))
		return mark_kept(job, &m);
	rc = f->rewind(f->arg, job->process, err);
	while (!rc && f->next(f->arg, &ev))
		if (see(&e, &ev, &t))
			rc = mark_token(job, &m, &t);
	return rc ? rc : f->error(f->arg, err);
}

/* The tokens once more, in rough. */
static int read_rough(struct tfh_job *job, struct tfh_err *err)
{
	const struct tfh_feed *f = job->feed;
	struct eye e = {.rough = true};
	struct tfh_event ev;
	struct tfh_token t;
	int rc = f->rewind(f->arg, job->process, err);

	job->token.n = 0;
	while (!rc && job->token.n < MAX_ROUGH && f->next(f->arg, &ev)) {
		if (!see(&e, &ev, &t))
			continue;
		t.number = (uint32_t)job->token.n + 1;
		rc = TFH_PUSH(job->token, t);
	}
	return rc ? rc : f->error(f->arg, err);
}

/* The most frequent kind of a rank that is good enough; rare ones are not tried, every try reads
 * all tokens. */
static const struct kind *best_of(const struct tfh_job *job, struct kind *table, uint8_t rank)
{
	for (int tries = 0; tries < 32; tries++) {
		struct kind *k = NULL;
		for (size_t i = 0; i < MAX_KINDS; i++)
			if (table[i].rank == rank && table[i].count >= 4 &&
			    (!k || table[i].count > k->count))
				k = &table[i];
		if (!k || purity(job, k, rank <= 2) >= PURITY)
			return k;
		k->count = 0;
	}
	return NULL;
}

static void count_kinds(struct tfh_job *job, struct kind *table)
{
	memset(table, 0, MAX_KINDS * sizeof(*table));
	sort_tokens(job);
	for (size_t i = 0; i < job->token.n; i++) {
		struct kind *k = kind_of(table, job->token.v[i].hash);
		if (k) {
			k->count++;
			k->rank = rank_of(&job->token.v[i]);
		}
	}
}

/* The best of ranks `from` down to `to`; no hash: none. */
static struct kind find_anchor(const struct tfh_job *job, struct kind *table, int from, int to)
{
	const struct kind *best = NULL;

	for (int rank = from; rank >= to && !best; rank--)
		best = best_of(job, table, (uint8_t)rank);
	return best ? *best : (struct kind){0};
}

/* Leaves in job->mark one entry per step, as if the job had marked them. 0, or a negative errno. No
 * period: none. */
int tfh_find_period(struct tfh_job *job, struct tfh_err *err)
{
	struct kind *table = calloc(MAX_KINDS, sizeof(*table));
	struct kind best, kernel = {0};
	bool again = false;
	int rc = 0;

	if (!table)
		return -ENOMEM;
	count_kinds(job, table);
	best = find_anchor(job, table, 5, 2);
	if (!best.count && job->launches) {
		kernel = find_anchor(job, table, 1, 1);
		again = true;
		rc = read_rough(job, err);
		count_kinds(job, table);
		best = find_anchor(job, table, 5, kernel.count ? 2 : 1);
	}
	if (!rc && best.count)
		rc = mark_steps(job, &best, again, again, err);
	else if (!rc && kernel.count)
		rc = mark_steps(job, &kernel, false, true, err);
	free(table);
	return rc;
}
