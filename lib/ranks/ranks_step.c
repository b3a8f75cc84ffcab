/*
 * The slowest path of one step across ranks. It is walked backwards in time, as in the what-if
 * analysis of "Understanding Stragglers in Large Model Training Using What-if Analysis" (Lin et
 * al., 2025): an exchange begins when its last rank enters it, so that rank is on the path; if it
 * came late because it had waited in an exchange before, the last rank of that one is. The rank at
 * which this ends was late by itself, or an exchange took longer than usual. Only exchanges that
 * are known of all ranks of their communicator count.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "ranks/ranks_parts.h"

struct exchange {
	uint32_t comm, number, last; /* last: row of the rank that entered last */
	double last_s, wait_s, most_s,
		transfer_s; /* wait: of the median rank; most: of the first one */
};

struct walking {
	const struct tfh_ranks *job;
	uint32_t k; /* the step, as an index of tfh_ranks.slowest */
	bool *in;   /* [n]: ranks that have it */
	double *v;  /* [n]: room */
	struct exchange *ex;
	uint32_t n_ex;
	double least_s;
};

static double time_of(const struct tfh_ranks *job, const struct tfh_ranks_rank *r, int64_t ns)
{
	return tfh_ranks_time(job, r->host, ns);
}

/* ---- who has the step ---- */

/* Steps with the same number may be different ones, as of a rank that was restarted. A rank counts
 * if its step overlaps that of most ranks. */
static void find_ranks(struct walking *x, struct tfh_ranks_step *step)
{
	const struct tfh_ranks *job = x->job;
	uint32_t n = 0;

	for (uint32_t i = 0; i < job->n; i++)
		if (job->rank[i].in_step[x->k].wall_s > 0)
			x->v[n++] =
				time_of(job, &job->rank[i], job->rank[i].in_step[x->k].begin_ns);
	double begin = tfh_ranks_median(x->v, n);
	n = 0;
	for (uint32_t i = 0; i < job->n; i++)
		if (job->rank[i].in_step[x->k].wall_s > 0)
			x->v[n++] = job->rank[i].in_step[x->k].wall_s;
	step->wall_s = tfh_ranks_median(x->v, n);
	step->ranks = 0;
	for (uint32_t i = 0; i < job->n; i++) {
		const struct tfh_ranks_rank *r = &job->rank[i];
		const struct tfh_ranks_in_step *in = &r->in_step[x->k];
		x->in[i] = in->wall_s > 0 && time_of(job, r, in->begin_ns) < begin + step->wall_s &&
			   time_of(job, r, in->end_ns) > begin;
		step->ranks += x->in[i];
	}
}

/* ---- exchanges ---- */

static const struct tfh_ranks_sample *sample_of(const struct walking *x, uint32_t rank,
						uint32_t comm, uint32_t number)
{
	const struct tfh_ranks_rank *r = &x->job->rank[rank];
	const struct tfh_ranks_in_step *in = &r->in_step[x->k];

	for (uint32_t i = 0; x->in[rank] && i < in->samples; i++)
		if (in->sample[i].number == number && r->member[in->sample[i].member].comm == comm)
			return &in->sample[i];
	return NULL;
}

static void add_exchange(struct walking *x, uint32_t c, uint32_t number)
{
	const struct tfh_ranks_comm *comm = &x->job->comm[c];
	struct exchange e = {.comm = c, .number = number, .last_s = -INFINITY};
	double leave = INFINITY, first = INFINITY;

	for (uint32_t i = 0; i < comm->n; i++) {
		const struct tfh_ranks_rank *r = &x->job->rank[comm->rank[i]];
		const struct tfh_ranks_sample *s = sample_of(x, comm->rank[i], c, number);
		if (!s)
			return;
		x->v[i] = time_of(x->job, r, s->enter_ns);
		first = fmin(first, x->v[i]);
		leave = fmin(leave, time_of(x->job, r, s->leave_ns));
		if (x->v[i] > e.last_s) {
			e.last_s = x->v[i];
			e.last = comm->rank[i];
		}
	}
	e.wait_s = e.last_s - tfh_ranks_median(x->v, comm->n);
	e.most_s = e.last_s - first;
	e.transfer_s = leave - e.last_s;
	x->ex[x->n_ex++] = e;
}

/* Finds the exchanges in the samples of the first rank of each communicator. */
static void find_exchanges(struct walking *x)
{
	x->n_ex = 0;
	for (uint32_t c = 0; c < x->job->comms; c++) {
		const struct tfh_ranks_comm *comm = &x->job->comm[c];
		const struct tfh_ranks_rank *r = &x->job->rank[comm->rank[0]];
		const struct tfh_ranks_in_step *in = &r->in_step[x->k];
		for (uint32_t i = 0; comm->n > 1 && x->in[comm->rank[0]] && i < in->samples; i++)
			if (r->member[in->sample[i].member].comm == c)
				add_exchange(x, c, in->sample[i].number);
	}
}

static int by_comm(const void *a, const void *b)
{
	const struct exchange *x = a, *y = b;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* The last exchange that a rank entered before a time. NULL: none is known. */
static const struct exchange *before(const struct walking *x, uint32_t rank, double s,
				     double *enter_s)
{
	const struct tfh_ranks_rank *r = &x->job->rank[rank];
	const struct tfh_ranks_in_step *in = &r->in_step[x->k];
	const struct exchange *best = NULL;

	for (uint32_t i = 0; i < in->samples; i++) {
		const struct exchange key = {.comm = r->member[in->sample[i].member].comm,
					     .number = in->sample[i].number},
				      *e = x->n_ex ? bsearch(&key, x->ex, x->n_ex, sizeof(*x->ex),
							     by_comm)
						   : NULL;
		double at = time_of(x->job, r, in->sample[i].enter_ns);
		if (e && at < s && (!best || at > *enter_s)) {
			best = e;
			*enter_s = at;
		}
	}
	return best;
}

/* ---- the path ---- */

/* The last one of those in which ranks waited; NULL: they waited in none. */
static const struct exchange *last_exchange(const struct walking *x)
{
	const struct exchange *best = NULL;
	double most = x->least_s;

	for (uint32_t i = 0; i < x->n_ex; i++)
		most = fmax(most, x->ex[i].most_s);
	for (uint32_t i = 0; i < x->n_ex; i++)
		if (x->ex[i].most_s >= fmax(most / 2, x->least_s) &&
		    (!best || x->ex[i].last_s > best->last_s))
			best = &x->ex[i];
	return best;
}

static void add_link(struct tfh_ranks_step *step, const struct exchange *e, double wait_s)
{
	step->link[step->links++] = (struct tfh_ranks_link){e->last, e->comm, e->number, wait_s};
}

static void note_transfer(const struct walking *x, struct tfh_ranks_step *step,
			  const struct exchange *e)
{
	double over = e->transfer_s - x->job->comm[e->comm].transfer_s,
	       most = step->comm == UINT32_MAX
			      ? x->least_s
			      : step->transfer_s - x->job->comm[step->comm].transfer_s;

	if (over > most) { /* false for an unknown one */
		step->comm = e->comm;
		step->transfer_s = e->transfer_s;
	}
}

static void walk(const struct walking *x, struct tfh_ranks_step *step)
{
	const struct exchange *e = last_exchange(x);
	uint32_t at = e ? e->last : 0;
	double s = e ? e->last_s : 0, enter = 0;

	if (!e)
		return;
	add_link(step, e, e->wait_s);
	note_transfer(x, step, e);
	while ((e = before(x, at, s, &enter))) {
		note_transfer(x, step, e);
		s = enter;
		if (e->last == at || e->last_s - enter < x->least_s)
			continue;
		if (step->links == TFH_RANKS_LINKS)
			return;
		add_link(step, e, e->last_s - enter);
		at = e->last;
		s = e->last_s;
	}
}

/* ---- where it ends ---- */

static double usual_part(const struct tfh_ranks_rank *r, int part)
{
	double n = r->steady ? (double)r->steady : NAN, known = 0;

	if (part < TFH_CAUSE_COUNT)
		return (r->cause_s[part] - r->slow_cause_s[part]) / n;
	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		if (tfh_cause_part((enum tfh_cause)c) != TFH_PART_COMMUNICATION)
			known += r->cause_s[c] - r->slow_cause_s[c];
	return (r->steady_s - known) / n;
}

double tfh_ranks_over(const struct tfh_ranks_rank *r, const struct tfh_ranks_in_step *in)
{
	return in->own_s - (r->steady ? r->steady_s / (double)r->steady : r->usual_s);
}

int tfh_ranks_over_cause(const struct tfh_ranks_rank *r, const struct tfh_ranks_in_step *in,
			 double *s)
{
	int cause = -1;

	*s = 0;
	for (uint32_t i = 0; i < TFH_RANKS_PARTS; i++) {
		double over = (double)in->part_s[i] - usual_part(r, in->part[i]);
		if (over > *s) {
			*s = over;
			cause = in->part[i];
		}
	}
	return cause;
}

/* The last rank of the path, or, if it was not slow itself, the slowest one. */
static void find_rank(const struct walking *x, struct tfh_ranks_step *step)
{
	const struct tfh_ranks *job = x->job;
	uint32_t best = step->links ? step->link[step->links - 1].rank : UINT32_MAX;
	/* A rank's excess has to explain at least half of the step's. */
	double least = fmax(x->least_s, (step->wall_s - job->usual_s) / 2), over = NAN;

	if (best != UINT32_MAX)
		over = tfh_ranks_over(&job->rank[best], &job->rank[best].in_step[x->k]);
	bool path_is_slow = over >= least;
	for (uint32_t i = 0; !path_is_slow && i < job->n; i++) {
		double of = tfh_ranks_over(&job->rank[i], &job->rank[i].in_step[x->k]);
		if (x->in[i] && of >= least && !(over >= of)) {
			over = of;
			best = i;
		}
	}
	step->rank = over >= least ? best : UINT32_MAX;
	step->over_s = over;
	if (step->rank != UINT32_MAX)
		step->cause = tfh_ranks_over_cause(&job->rank[best], &job->rank[best].in_step[x->k],
						   &step->cause_s);
}

static void find_step(struct walking *x, struct tfh_ranks_step *step)
{
	step->links = 0;
	step->comm = step->rank = UINT32_MAX;
	step->cause = -1;
	find_ranks(x, step);
	x->least_s = TFH_RANKS_LEAST * (step->wall_s > 0 ? step->wall_s : 0);
	find_exchanges(x);
	walk(x, step);
	find_rank(x, step);
}

static int slowest_first(const void *a, const void *b)
{
	const struct tfh_ranks_step *x = a, *y = b;

	return x->wall_s != y->wall_s ? (x->wall_s > y->wall_s ? -1 : 1)
				      : (x->index > y->index) - (x->index < y->index);
}

int tfh_ranks_find_steps(struct tfh_ranks *job)
{
	size_t most = 1;
	uint32_t kept = 0;

	for (uint32_t c = 0; c < job->comms; c++)
		most += TFH_RANKS_IN_STEP;
	struct walking x = {.job = job,
			    .in = calloc(job->n + 1u, 1),
			    .v = malloc((job->n + 1u) * sizeof(double)),
			    .ex = malloc(most * sizeof(*x.ex))};
	int rc = x.in && x.v && x.ex ? 0 : -ENOMEM;

	for (; !rc && x.k < job->steps_kept; x.k++) {
		struct tfh_ranks_step *step = &job->slowest[x.k];
		find_step(&x, step);
		/* Slow for one rank alone: nobody waited for it. */
		if (job->asked || (step->ranks * 2 >= job->n &&
				   step->wall_s >= TFH_RANKS_STEP_TIMES * job->usual_s))
			job->slowest[kept++] = *step;
	}
	job->steps_kept = kept;
	if (kept)
		qsort(job->slowest, kept, sizeof(*job->slowest), slowest_first);
	free(x.in);
	free(x.v);
	free(x.ex);
	return rc;
}
