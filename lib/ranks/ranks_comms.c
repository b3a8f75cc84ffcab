/* Communicators: their members, what they are for, and which ranks do the same work. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "ranks/ranks_parts.h"

double tfh_ranks_median(double *v, uint32_t n)
{
	if (!n)
		return NAN;
	qsort(v, n, sizeof(*v), tfh_by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

double tfh_ranks_spread(double *v, uint32_t n, double from)
{
	for (uint32_t i = 0; i < n; i++)
		v[i] = fabs(v[i] - from);
	return 1.4826 * tfh_ranks_median(v, n);
}

struct part_of_comm {
	uint64_t key;
	uint32_t rank;
	uint8_t member;
};

static int by_key(const void *a, const void *b)
{
	const struct part_of_comm *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int largest_first(const void *a, const void *b)
{
	const struct tfh_ranks_comm *x = a, *y = b;

	if (x->ranks != y->ranks)
		return x->ranks > y->ranks ? -1 : 1;
	return x->rank[0] != y->rank[0] ? (x->rank[0] < y->rank[0] ? -1 : 1)
					: (x->key < y->key ? -1 : x->key > y->key);
}

/* What all members have in common. */
static void describe(const struct tfh_ranks *job, struct tfh_ranks_comm *c)
{
	const struct tfh_ranks_rank *first = &job->rank[c->rank[0]];

	c->local = first->local;
	c->rack = job->host[first->host].rack;
	c->fabric = first->fabric;
	c->nic = first->nic;
	c->stride = c->n > 1 ? (uint32_t)(job->rank[c->rank[1]].rank - first->rank) : 1;
	c->hosts = 1;
	for (uint32_t i = 1; i < c->n; i++) {
		const struct tfh_ranks_rank *r = &job->rank[c->rank[i]],
					    *before = &job->rank[c->rank[i - 1]];
		c->hosts += r->host != before->host;
		if (r->local != c->local)
			c->local = -1;
		if (job->host[r->host].rack != c->rack)
			c->rack = UINT32_MAX;
		if (r->fabric != c->fabric)
			c->fabric = UINT32_MAX;
		if (strcmp(r->nic, c->nic) != 0)
			c->nic = "";
		if ((uint32_t)(r->rank - before->rank) != c->stride)
			c->stride = 0;
	}
	c->ranks = c->ranks > c->n ? c->ranks : c->n;
	c->kind = c->ranks >= job->world && job->world > 1 ? TFH_RANKS_ALL
		  : c->messages && !c->top		   ? TFH_RANKS_PIPELINE
		  : c->hosts == 1			   ? TFH_RANKS_TENSOR
							   : TFH_RANKS_DATA;
}

static int make_comms(struct tfh_ranks *job, struct part_of_comm *part, uint32_t n)
{
	uint32_t *rank = tfh_arena_array(&job->arena, n + 1, sizeof(*rank)), from = 0;

	job->comm = calloc(n + 1, sizeof(*job->comm));
	if (!rank || !job->comm)
		return -ENOMEM;
	while (from < n) {
		struct tfh_ranks_comm *c = &job->comm[job->comms++];
		uint64_t collectives = 0, steps = 0;
		*c = (struct tfh_ranks_comm){.key = part[from].key,
					     .rank = rank + from,
					     .transfer_s = NAN,
					     .wait_s = NAN,
					     .last_rank = UINT32_MAX};
		for (; from + c->n < n && part[from + c->n].key == c->key; c->n++) {
			const struct part_of_comm *p = &part[from + c->n];
			const struct tfh_ranks_rank *r = &job->rank[p->rank];
			const struct tfh_ranks_member *m = &r->member[p->member];
			c->rank[c->n] = p->rank;
			c->ranks = m->ranks > c->ranks ? m->ranks : c->ranks;
			c->messages += m->messages;
			c->top = m->last > c->top ? m->last : c->top;
			collectives += m->collectives;
			steps += r->last_step - r->first_step + (r->steps > 0);
		}
		c->per_step = steps ? (double)collectives / (double)steps : NAN;
		from += c->n;
		describe(job, c);
	}
	qsort(job->comm, job->comms, sizeof(*job->comm), largest_first);
	return 0;
}

static void tell_members(struct tfh_ranks *job)
{
	for (uint32_t c = 0; c < job->comms; c++)
		for (uint32_t i = 0; i < job->comm[c].n; i++) {
			struct tfh_ranks_rank *r = &job->rank[job->comm[c].rank[i]];
			for (uint32_t k = 0; k < r->members; k++)
				if (r->member[k].key == job->comm[c].key)
					r->member[k].comm = c;
		}
}

/* The ranks that a rank is compared with: those of its largest data-parallel group, which do the
 * same work on other data. Stages of a pipeline do not. A median needs a few of them. */
#define PEERS 4u

static void choose_peers(struct tfh_ranks *job)
{
	for (uint32_t i = 0; i < job->n; i++) {
		struct tfh_ranks_rank *r = &job->rank[i];
		for (uint32_t k = 0; k < r->members; k++) {
			const struct tfh_ranks_comm *c = &job->comm[r->member[k].comm];
			if (c->kind == TFH_RANKS_DATA && c->n >= PEERS &&
			    (r->peers == UINT32_MAX || c->n > job->comm[r->peers].n))
				r->peers = r->member[k].comm;
		}
	}
}

/* ---- racks ---- */

/* A host's name without its last number: of rack07-node13.example that is rack07-node. */
static size_t rack_length(const char *name)
{
	size_t n = strcspn(name, ".");

	while (n && name[n - 1] >= '0' && name[n - 1] <= '9')
		n--;
	return n;
}

/* Hosts share a rack if their names differ in the last number only. If that is so for all hosts,
 * names say nothing. */
static int find_racks(struct tfh_ranks *job)
{
	job->rack = tfh_arena_array(&job->arena, job->hosts + 1u, sizeof(*job->rack));
	if (!job->rack)
		return -ENOMEM;
	for (uint32_t h = 0; h < job->hosts; h++) {
		const char *name = job->host[h].name ? job->host[h].name : "";
		size_t n = rack_length(name);
		uint32_t k = job->racks;
		/* Digests are sorted by name. */
		if (k && strlen(job->rack[k - 1]) == n && !strncmp(job->rack[k - 1], name, n))
			k--;
		else
			job->rack[job->racks++] = tfh_arena_strndup(&job->arena, name, n);
		job->host[h].rack = k;
		if (!job->rack[k])
			return -ENOMEM;
	}
	return 0;
}

int tfh_ranks_join(struct tfh_ranks *job)
{
	struct part_of_comm *part;
	uint32_t n = 0;
	size_t most = 0;
	int rc = find_racks(job);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < job->n; i++)
		most += job->rank[i].members;
	part = malloc((most + 1) * sizeof(*part));
	if (!part)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->n; i++) {
		const struct tfh_ranks_rank *r = &job->rank[i];
		if ((uint32_t)r->rank + 1 > job->world)
			job->world = (uint32_t)r->rank + 1;
		for (uint32_t k = 0; k < r->members; k++)
			part[n++] = (struct part_of_comm){r->member[k].key, i, (uint8_t)k};
	}
	qsort(part, n, sizeof(*part), by_key);
	rc = make_comms(job, part, n);
	free(part);
	if (rc)
		return rc;
	tell_members(job);
	choose_peers(job);
	return 0;
}
