/*
 * Digests of another job, which somebody copied beside those of this one. Most ranks have the job's
 * command and number of ranks, and ran at the same time. Others are of the job, too, if they share
 * a communicator with those: on a host whose clock is days off, or that left before the job was
 * started again with fewer ranks.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ranks/ranks_parts.h"

struct digest_of {
	const char *command;
	uint32_t world, host, ranks;
	double begin_s, end_s; /* by the host's clock */
};

static int by_job(const void *a, const void *b)
{
	const struct digest_of *x = a, *y = b;
	int order = strcmp(x->command, y->command);

	return order ? order : (x->world > y->world) - (x->world < y->world);
}

static int by_key(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The first digest of the job that has the most ranks; `end`: after its last one. */
static uint32_t largest(const struct digest_of *v, uint32_t n, uint32_t *end)
{
	uint32_t best = 0, most = 0;

	for (uint32_t from = 0, to; from < n; from = to) {
		uint32_t ranks = 0;
		for (to = from; to < n && !by_job(&v[from], &v[to]); to++)
			ranks += v[to].ranks;
		if (from && ranks <= most)
			continue;
		best = from;
		most = ranks;
		*end = to;
	}
	return best;
}

static uint32_t keys_of(const struct tfh_ranks_rank *rank, uint32_t n, uint64_t *out)
{
	uint32_t keys = 0;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < rank[i].members; k++)
			out[keys++] = rank[i].member[k].key;
	return keys;
}

static bool is_at_once(const struct digest_of *a, const struct digest_of *b)
{
	return a->begin_s <= b->end_s && b->begin_s <= a->end_s;
}

/* Puts the digests of that job first, and returns their number. */
static uint32_t choose(struct digest_of *v, uint32_t n)
{
	uint32_t end = 0, from = largest(v, n, &end), kept = 0;
	double *begin = malloc((n + 1u) * sizeof(*begin));

	if (!begin)
		return 0;
	for (uint32_t i = from; i < end; i++)
		begin[i - from] = v[i].begin_s;
	double middle = tfh_ranks_median(begin, end - from);
	free(begin);
	uint32_t best = from;
	for (uint32_t i = from; i < end; i++)
		if (fabs(v[i].begin_s - middle) < fabs(v[best].begin_s - middle))
			best = i;
	const struct digest_of usual = v[best];
	for (uint32_t i = 0; i < n; i++) {
		const struct digest_of x = v[i];
		if (by_job(&x, &usual) || !is_at_once(&x, &usual))
			continue;
		v[i] = v[kept];
		v[kept++] = x;
	}
	return kept;
}

static bool is_other(const struct digest_of *x, const char *command,
		     const struct tfh_ranks_rank *rank, const uint64_t *key, uint32_t keys)
{
	bool exchanges = false;

	for (uint32_t i = 0; i < x->ranks; i++)
		for (uint32_t k = 0; k < rank[i].members; k++) {
			exchanges = true;
			if (keys &&
			    bsearch(&rank[i].member[k].key, key, keys, sizeof(*key), by_key))
				return false;
		}
	return strcmp(x->command, command) != 0 || (exchanges && keys);
}

static int note(struct tfh_ranks *job, const struct digest_of *x, const char *path)
{
	char text[512];

	if (job->others++)
		return 0;
	snprintf(text, sizeof(text), "%.300s (%.80s, %u ranks)", path,
		 *x->command ? tfh_file_of(x->command) : "?", x->world);
	job->others_what = tfh_arena_strdup(&job->arena, text);
	return job->others_what ? 0 : -ENOMEM;
}

static uint32_t list(const struct tfh_ranks *job, struct tfh_ranks_rank *const *part,
		     struct digest_of *v, size_t *room)
{
	uint32_t n = 0;

	for (uint32_t h = 0; h < job->hosts; h++) {
		const struct tfh_ranks_host *x = &job->host[h];
		double begin_s = (double)x->start_ns * 1e-9;
		if (!part[h] || !x->ranks)
			continue;
		v[n++] = (struct digest_of){
			x->command ? x->command : "", x->world, h, x->ranks, begin_s,
			begin_s + x->wall_s};
		*room += (size_t)x->ranks * TFH_RANKS_COMMS;
	}
	if (n)
		qsort(v, n, sizeof(*v), by_job);
	return n;
}

int tfh_ranks_find_others(struct tfh_ranks *job, char *const *path,
			  struct tfh_ranks_rank *const *part, bool *other)
{
	struct digest_of *v = malloc((job->hosts + 1u) * sizeof(*v));
	size_t room = 1;

	if (!v)
		return -ENOMEM;
	uint32_t n = list(job, part, v, &room), kept = choose(v, n), keys = 0;
	uint64_t *key = kept < n ? malloc(room * sizeof(*key)) : NULL;
	int rc = (n && !kept) || (kept < n && !key) ? -ENOMEM : 0;
	for (uint32_t i = 0; i < kept && key; i++)
		keys += keys_of(part[v[i].host], v[i].ranks, key + keys);
	if (keys)
		qsort(key, keys, sizeof(*key), by_key);
	for (uint32_t i = kept; i < n && !rc; i++) {
		uint32_t h = v[i].host;
		other[h] = is_other(&v[i], v[0].command, part[h], key, keys);
		if (other[h])
			rc = note(job, &v[i], path[h]);
	}
	free(key);
	free(v);
	return rc;
}
