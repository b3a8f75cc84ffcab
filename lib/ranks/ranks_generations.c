/*
 * Starts of all ranks, one after another (judge/generations.h). Each host's digest tells apart
 * those that the host took part in. Those of different hosts are the same start if ranks in them
 * share a communicator, which no rank keeps when it is started again; without communicators, if
 * they are of as many ranks and at the same time. The ranks of one start are reported on: the one
 * that made most steps.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "ranks/ranks_parts.h"

/* The ranks of a host from one start. */
struct host_part {
	uint32_t host, up; /* up: leads to the first part of the same start */
	uint32_t world, rows, set;
	int64_t begin_ns, end_ns; /* by the host's clock */
};

struct splitting {
	struct tfh_ranks *job;
	struct host_part *part;
	uint32_t parts;
	uint32_t *base; /* [hosts + 1]: first part of each host */
	uint32_t *of;	/* [ranks]: part of each row */
	uint32_t sets;
};

struct keyed {
	uint64_t key;
	uint32_t part;
};

static bool was_split(const struct tfh_ranks *job)
{
	uint32_t world = 0;

	for (uint32_t i = 0; i < job->n; i++) {
		const struct tfh_ranks_rank *r = &job->rank[i];
		if (r->generation || (world && r->world && r->world != world))
			return true;
		world = r->world ? r->world : world;
	}
	return false;
}

static uint32_t first_of(struct splitting *x, uint32_t part)
{
	while (x->part[part].up != part)
		part = x->part[part].up = x->part[x->part[part].up].up;
	return part;
}

static void unite(struct splitting *x, uint32_t a, uint32_t b)
{
	a = first_of(x, a);
	b = first_of(x, b);
	if (a != b)
		x->part[a > b ? a : b].up = a < b ? a : b;
}

static int by_key(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

static int unite_by_keys(struct splitting *x)
{
	const struct tfh_ranks *job = x->job;
	struct keyed *v = malloc(((size_t)job->n * TFH_RANKS_COMMS + 1) * sizeof(*v));
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->n; i++)
		for (uint32_t k = 0; k < job->rank[i].members; k++)
			v[n++] = (struct keyed){job->rank[i].member[k].key, x->of[i]};
	if (n)
		qsort(v, n, sizeof(*v), by_key);
	for (size_t i = 1; i < n; i++)
		if (v[i].key == v[i - 1].key)
			unite(x, v[i].part, v[i - 1].part);
	free(v);
	return 0;
}

static int make_parts(struct splitting *x)
{
	const struct tfh_ranks *job = x->job;

	x->base = calloc(job->hosts + 1u, sizeof(*x->base));
	x->of = malloc((job->n + 1u) * sizeof(*x->of));
	if (!x->base || !x->of)
		return -ENOMEM;
	/* Numbers of generations are small; a row has at most as many as there are rows. */
	for (uint32_t i = 0; i < job->n; i++) {
		const struct tfh_ranks_rank *r = &job->rank[i];
		uint32_t n = r->generation + 1;
		x->base[r->host + 1] = n > x->base[r->host + 1] ? n : x->base[r->host + 1];
	}
	for (uint32_t h = 0; h < job->hosts; h++)
		x->base[h + 1] += x->base[h];
	x->parts = x->base[job->hosts];
	x->part = calloc(x->parts + 1u, sizeof(*x->part));
	if (!x->part)
		return -ENOMEM;
	for (uint32_t p = 0; p < x->parts; p++)
		x->part[p] = (struct host_part){
			.up = p, .set = UINT32_MAX, .begin_ns = INT64_MAX, .end_ns = INT64_MIN};
	for (uint32_t i = 0; i < job->n; i++)
		x->of[i] = x->base[job->rank[i].host] + job->rank[i].generation;
	return 0;
}

/* What is known of a start goes to its first part. */
static void sum_up(struct splitting *x)
{
	for (uint32_t i = 0; i < x->job->n; i++) {
		const struct tfh_ranks_rank *r = &x->job->rank[i];
		int64_t start = x->job->host[r->host].start_ns;
		struct host_part *p = &x->part[first_of(x, x->of[i])];
		x->part[x->of[i]].host = r->host;
		p->rows++;
		p->world = r->world > p->world ? r->world : p->world;
		if (start + r->begin_ns < p->begin_ns)
			p->begin_ns = start + r->begin_ns;
		if (start + r->heard_ns > p->end_ns)
			p->end_ns = start + r->heard_ns;
	}
}

/* Whether a host takes part in a set already by other ranks than those of part `first`. */
static bool has_its_hosts(struct splitting *x, uint32_t first, uint32_t set)
{
	for (uint32_t p = 0; p < x->parts; p++) {
		uint32_t h = x->part[p].host;
		if (first_of(x, p) != first)
			continue;
		for (uint32_t k = x->base[h]; k < x->base[h + 1]; k++)
			if (x->part[first_of(x, k)].set == set)
				return true;
	}
	return false;
}

/* The set that a part may join, `sets`: none. `in`: the first part of each set. */
static uint32_t set_for(struct splitting *x, uint32_t first, const uint32_t *in)
{
	const struct host_part *p = &x->part[first];

	for (uint32_t s = 0; s < x->sets; s++) {
		const struct host_part *q = &x->part[in[s]];
		if (p->world == q->world && p->begin_ns <= q->end_ns && q->begin_ns <= p->end_ns &&
		    !has_its_hosts(x, first, s))
			return s;
	}
	return x->sets;
}

static int by_begin(const void *a, const void *b)
{
	const struct host_part *const *x = a, *const *y = b;

	if ((*x)->begin_ns != (*y)->begin_ns)
		return (*x)->begin_ns < (*y)->begin_ns ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

/* Sets in order of time. */
static int make_sets(struct splitting *x)
{
	const struct host_part **order = malloc((x->parts + 1u) * sizeof(*order));
	uint32_t *in = malloc((x->parts + 1u) * sizeof(*in)), n = 0;
	int rc = order && in ? 0 : -ENOMEM;

	for (uint32_t p = 0; p < x->parts && !rc; p++)
		if (x->part[p].rows)
			order[n++] = &x->part[p];
	if (n)
		qsort(order, n, sizeof(*order), by_begin);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t first = (uint32_t)(order[i] - x->part), s = set_for(x, first, in);
		if (s == x->sets)
			in[x->sets++] = first;
		x->part[first].set = s;
	}
	free(order);
	free(in);
	return rc;
}

static uint32_t set_of(struct splitting *x, uint32_t row)
{
	return x->part[first_of(x, x->of[row])].set;
}

static bool ended_badly(const struct tfh_ranks_rank *r)
{
	if (r->end == TFH_END_NONE)
		return !r->closed && !r->recording;
	return r->end == TFH_END_SIGNAL || r->code;
}

static int note_failed(struct tfh_ranks *job, struct tfh_ranks_generation *g,
		       const struct tfh_ranks_rank *r, double at_s)
{
	if (g->failed && g->failed_s <= at_s)
		return 0;
	if (!g->failed)
		g->failed = tfh_arena_alloc(&job->arena, sizeof(*g->failed));
	if (!g->failed)
		return -ENOMEM;
	*g->failed = *r;
	g->failed->sample = NULL;
	g->failed->in_step = NULL;
	g->failed_on = job->host[r->host].name;
	g->failed_s = at_s;
	return 0;
}

static int describe(struct splitting *x)
{
	struct tfh_ranks *job = x->job;
	int64_t epoch = INT64_MAX;
	int rc = 0;

	job->generation = tfh_arena_array(&job->arena, x->sets + 1u, sizeof(*job->generation));
	if (!job->generation)
		return -ENOMEM;
	for (uint32_t h = 0; h < job->hosts; h++)
		epoch = job->host[h].start_ns < epoch ? job->host[h].start_ns : epoch;
	job->generations = x->sets;
	for (uint32_t i = 0; i < job->n && !rc; i++) {
		const struct tfh_ranks_rank *r = &job->rank[i];
		double start_s = (double)(job->host[r->host].start_ns - epoch) * 1e-9,
		       begin_s = start_s + (double)r->begin_ns * 1e-9,
		       end_s = start_s + (double)r->heard_ns * 1e-9;
		struct tfh_ranks_generation *g = &job->generation[set_of(x, i)];
		g->begin_s = g->ranks && g->begin_s < begin_s ? g->begin_s : begin_s;
		g->end_s = fmax(g->end_s, end_s);
		g->ranks++;
		g->world = r->world > g->world ? r->world : g->world;
		g->steps = r->steps > g->steps ? r->steps : g->steps;
		if (ended_badly(r))
			rc = note_failed(job, g, r, end_s);
	}
	return rc;
}

/* The rows of one start remain; the hosts that took part in it come first. */
static void keep(struct splitting *x, uint32_t set)
{
	struct tfh_ranks *job = x->job;
	uint32_t *host = x->base, hosts = 0, rows = 0; /* new numbers of the hosts */

	for (uint32_t i = 0; i < job->n; i++) {
		if (set_of(x, i) == set)
			job->rank[rows++] = job->rank[i];
		else
			tfh_ranks_drop(&job->rank[i]);
	}
	job->n = rows;
	for (uint32_t h = 0; h < job->hosts; h++)
		host[h] = UINT32_MAX;
	for (uint32_t i = 0; i < rows; i++)
		host[job->rank[i].host] = 0;
	for (uint32_t h = 0; h < job->hosts; h++) {
		const struct tfh_ranks_host left = job->host[hosts];
		if (host[h] == UINT32_MAX)
			continue;
		job->host[hosts] = job->host[h];
		job->host[h] = left;
		host[h] = hosts++;
	}
	job->hosts = hosts;
	for (uint32_t i = 0; i < rows; i++)
		job->rank[i].host = host[job->rank[i].host];
	if (job->generation[set].world)
		job->world = job->generation[set].world;
}

int tfh_ranks_split(struct tfh_ranks *job)
{
	struct splitting x = {.job = job};
	uint32_t best = 0;

	if (!was_split(job))
		return 0;
	int rc = make_parts(&x);
	if (!rc)
		rc = unite_by_keys(&x);
	if (!rc) {
		sum_up(&x);
		rc = make_sets(&x);
	}
	if (!rc && x.sets > 1)
		rc = describe(&x);
	for (uint32_t s = 0; s < x.sets && !rc && x.sets > 1; s++)
		best = job->generation[s].steps >= job->generation[best].steps ? s : best;
	if (!rc && x.sets > 1) {
		job->generation[best].judged = true;
		keep(&x, best);
	}
	free(x.part);
	free(x.base);
	free(x.of);
	return rc;
}
