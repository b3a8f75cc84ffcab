/*
 * Which ranks are late to exchanges, from the exchanges that all ranks of a communicator have
 * sampled, on the hosts' common time axis. The exchange itself begins when its last rank enters.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "ranks/ranks_parts.h"

/* A rank at an exchange. */
struct arrival {
	uint32_t number, rank; /* rank: index in the communicator */
	double enter_s, leave_s;
};

struct sums {
	double late_s, held_s;
	uint64_t last, compared;
};

static int by_number(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static uint32_t arrivals_of(const struct tfh_ranks *job, uint32_t c, struct arrival *out)
{
	const struct tfh_ranks_comm *comm = &job->comm[c];
	uint32_t n = 0;

	for (uint32_t i = 0; i < comm->n; i++) {
		const struct tfh_ranks_rank *r = &job->rank[comm->rank[i]];
		for (uint32_t k = 0; k < r->samples; k++)
			if (r->member[r->sample[k].member].comm == c)
				out[n++] = (struct arrival){
					r->sample[k].number, i,
					tfh_ranks_time(job, r->host, r->sample[k].enter_ns),
					tfh_ranks_time(job, r->host, r->sample[k].leave_ns)};
	}
	qsort(out, n, sizeof(*out), by_number);
	return n;
}

struct exchange_sums {
	struct sums *rank;		    /* by row of job->rank */
	uint32_t *last;			    /* how often each was: by index in the communicator */
	double *transfer, *wait, *held, *v; /* of each exchange; v: room */
	uint32_t *who;			    /* was last in it: index in the communicator */
	uint32_t n;
};

static void add_exchange(const struct tfh_ranks_comm *c, const struct arrival *a,
			 struct exchange_sums *x)
{
	double first = INFINITY, before = -INFINITY, last = -INFINITY, leave = INFINITY;
	uint32_t at = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		first = fmin(first, a[i].enter_s);
		leave = fmin(leave, a[i].leave_s);
		if (a[i].enter_s > last) {
			before = last;
			last = a[i].enter_s;
			at = i;
		} else {
			before = fmax(before, a[i].enter_s);
		}
		x->v[i] = a[i].enter_s;
	}
	double held = c->n > 1 ? last - before : 0;
	for (uint32_t i = 0; i < c->n; i++) {
		struct sums *s = &x->rank[c->rank[a[i].rank]];
		s->late_s += a[i].enter_s - first;
		s->compared++;
	}
	x->rank[c->rank[a[at].rank]].held_s += held;
	x->rank[c->rank[a[at].rank]].last++;
	x->last[a[at].rank]++;
	x->who[x->n] = a[at].rank;
	x->held[x->n] = held;
	x->wait[x->n] = last - tfh_ranks_median(x->v, c->n);
	x->transfer[x->n++] = fmax(leave - last, 0);
}

static void add_exchanges(struct tfh_ranks_comm *c, const struct arrival *a, uint32_t n,
			  struct exchange_sums *x)
{
	uint32_t top = 0;

	x->n = 0;
	for (uint32_t i = 0; i < c->n; i++)
		x->last[i] = 0;
	for (uint32_t from = 0, to; from < n; from = to) {
		for (to = from; to < n && a[to].number == a[from].number;)
			to++;
		/* The last ones may never have been completed. */
		if (to - from == c->n && a[from].number < c->top)
			add_exchange(c, a + from, x);
	}
	c->compared = x->n;
	if (!x->n)
		return;
	if (c->n == c->ranks)
		c->transfer_s = tfh_ranks_median(x->transfer, x->n);
	c->wait_s = tfh_ranks_median(x->wait, x->n);
	for (uint32_t i = 1; i < c->n; i++)
		top = x->last[i] > x->last[top] ? i : top;
	c->last_rank = c->rank[top];
	c->last_share = (double)x->last[top] / (double)x->n;
	uint32_t held = 0;
	for (uint32_t i = 0; i < x->n; i++)
		if (x->who[i] == top)
			x->held[held++] = x->held[i];
	c->last_s = tfh_ranks_median(x->held, held);
}

/* ---- who waits for whom ---- */

/* The communicator in which a rank waits most clearly for one other rank; UINT32_MAX: in none. */
static uint32_t waits_in(const struct tfh_ranks *job, uint32_t rank)
{
	const struct tfh_ranks_rank *r = &job->rank[rank];
	uint32_t best = UINT32_MAX;

	for (uint32_t k = 0; k < r->members; k++) {
		const struct tfh_ranks_comm *c = &job->comm[r->member[k].comm];
		if (!c->compared || c->last_rank == rank || c->last_share < TFH_RANKS_MOSTLY ||
		    c->last_s < TFH_RANKS_LEAST * job->step_s)
			continue;
		if (best == UINT32_MAX || c->last_s > job->comm[best].last_s)
			best = r->member[k].comm;
	}
	return best;
}

/* From a rank that waits longest to the one that waits for none. */
static void find_path(struct tfh_ranks *job)
{
	uint32_t most = sizeof(job->path) / sizeof(*job->path), in = UINT32_MAX, at;

	for (uint32_t c = 0; c < job->comms; c++) {
		const struct tfh_ranks_comm *x = &job->comm[c];
		if (x->compared && x->last_share >= TFH_RANKS_MOSTLY &&
		    x->last_s >= TFH_RANKS_LEAST * job->step_s &&
		    (in == UINT32_MAX || x->last_s > job->comm[in].last_s))
			in = c;
	}
	if (in == UINT32_MAX)
		return;
	at = job->comm[in].rank[job->comm[in].rank[0] == job->comm[in].last_rank];
	while (in != UINT32_MAX && job->path_n + 1 < most) {
		job->path[job->path_n] = at;
		job->path_comm[job->path_n++] = in;
		at = job->comm[in].last_rank;
		for (uint32_t i = 0; i < job->path_n; i++)
			if (job->path[i] == at) /* two that wait for each other */
				return;
		in = waits_in(job, at);
	}
	job->path[job->path_n++] = at;
}

static void finish(struct tfh_ranks *job, const struct sums *s)
{
	for (uint32_t i = 0; i < job->n; i++) {
		struct tfh_ranks_rank *r = &job->rank[i];
		if (!s[i].compared)
			continue;
		r->late_s = s[i].late_s / (double)s[i].compared;
		r->held_s = s[i].held_s / (double)s[i].compared;
		r->last = (double)s[i].last / (double)s[i].compared;
	}
	/* The largest communicator shows how long a usual rank waits. */
	job->wait_s = NAN;
	for (uint32_t c = 0; c < job->comms && isnan(job->wait_s); c++)
		if (job->comm[c].compared)
			job->wait_s = job->comm[c].wait_s * fmin(job->comm[c].per_step, 1);
	find_path(job);
}

int tfh_ranks_find_late(struct tfh_ranks *job)
{
	size_t most = 1, members = 1;

	for (uint32_t c = 0; c < job->comms; c++) {
		size_t n = (size_t)job->comm[c].n * TFH_RANKS_SAMPLES;
		most = n > most ? n : most;
		members = job->comm[c].n > members ? job->comm[c].n : members;
	}
	struct arrival *a = malloc(most * sizeof(*a));
	struct exchange_sums x = {.rank = calloc(job->n + 1u, sizeof(*x.rank)),
				  .last = calloc(members, sizeof(*x.last)),
				  .transfer = calloc(TFH_RANKS_SAMPLES, sizeof(double)),
				  .wait = calloc(TFH_RANKS_SAMPLES, sizeof(double)),
				  .held = calloc(TFH_RANKS_SAMPLES, sizeof(double)),
				  .who = calloc(TFH_RANKS_SAMPLES, sizeof(*x.who)),
				  .v = calloc(members, sizeof(double))};
	bool full = !a || !x.rank || !x.last || !x.transfer || !x.wait || !x.held || !x.who || !x.v;

	for (uint32_t c = 0; c < job->comms && !full; c++)
		if (job->comm[c].n > 1)
			add_exchanges(&job->comm[c], a, arrivals_of(job, c, a), &x);
	if (!full)
		finish(job, x.rank);
	free(a);
	free(x.rank);
	free(x.last);
	free(x.transfer);
	free(x.wait);
	free(x.held);
	free(x.who);
	free(x.v);
	return full ? -ENOMEM : 0;
}
