/*
 * Ranks that take longer than their peers. Exchanges hide this: all ranks of a job have steps of
 * the same length, and the slow ones only wait less. So a step's own time, without exchanges, is
 * compared with the median of ranks that do the same work. If most ranks of a rack, a host or a
 * place on the hosts are slow, that is what is reported.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "ranks/ranks_parts.h"

#define QUARTERS 4u /* of the run: a rank may be slow in one of them */

struct slowness {
	struct tfh_ranks *job;
	uint32_t *order; /* rows, peers together */
	double *v;	 /* [n]: room */
	double *excess;	 /* by row: a step's own time beyond the peers' median, NAN: no steps */
	double (*quarter)[QUARTERS];
	bool *slow;
};

static double own_of(const struct tfh_ranks_rank *r)
{
	return r->steady ? r->steady_s / (double)r->steady : NAN;
}

/* ---- peers ---- */

/* Peers in the upper half, the row in the lower one. */
static int by_peers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int find_order(struct slowness *x)
{
	uint64_t *v = malloc((x->job->n + 1u) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < x->job->n; i++)
		v[i] = (uint64_t)x->job->rank[i].peers << 32 | i;
	qsort(v, x->job->n, sizeof(*v), by_peers);
	for (uint32_t i = 0; i < x->job->n; i++)
		x->order[i] = (uint32_t)v[i];
	free(v);
	return 0;
}

static double value_of(const struct tfh_ranks_rank *r, uint32_t interval)
{
	if (interval == UINT32_MAX)
		return own_of(r);
	return r->time[interval].steps ? (double)r->time[interval].own_s / r->time[interval].steps
				       : NAN;
}

static double median_of(struct slowness *x, const uint32_t *row, uint32_t n, uint32_t interval)
{
	uint32_t m = 0;

	for (uint32_t i = 0; i < n; i++) {
		double s = value_of(&x->job->rank[row[i]], interval);
		if (!isnan(s))
			x->v[m++] = s;
	}
	return tfh_ranks_median(x->v, m);
}

/* Replaces the intervals' own times by what they exceed the peers' by. */
static void compare(struct slowness *x, const uint32_t *row, uint32_t n)
{
	struct tfh_ranks *job = x->job;
	double usual = median_of(x, row, n, UINT32_MAX);

	for (uint32_t i = 0; i < n; i++)
		x->excess[row[i]] = own_of(&job->rank[row[i]]) - usual;
	for (uint32_t t = 0; t < job->times; t++) {
		usual = median_of(x, row, n, t);
		for (uint32_t i = 0; i < n; i++) {
			struct tfh_ranks_rank *r = &job->rank[row[i]];
			r->time[t].own_s = (float)(value_of(r, t) - usual);
		}
	}
}

/* The rows that are compared with a rank. */
static uint32_t peers_of(const struct slowness *x, uint32_t rank, const uint32_t **row)
{
	const struct tfh_ranks *job = x->job;
	uint32_t p = job->rank[rank].peers, from = 0, to;

	if (p != UINT32_MAX) {
		*row = job->comm[p].rank;
		return job->comm[p].n;
	}
	while (from < job->n && job->rank[x->order[from]].peers != p)
		from++;
	for (to = from; to < job->n && job->rank[x->order[to]].peers == p;)
		to++;
	*row = x->order + from;
	return to - from;
}

static void compare_all(struct slowness *x)
{
	struct tfh_ranks *job = x->job;

	for (uint32_t from = 0, to; from < job->n; from = to) {
		for (to = from; to < job->n &&
				job->rank[x->order[to]].peers == job->rank[x->order[from]].peers;)
			to++;
		compare(x, x->order + from, to - from);
	}
}

/* ---- which ranks are slow ---- */

static void fill_quarters(struct slowness *x)
{
	for (uint32_t i = 0; i < x->job->n; i++) {
		const struct tfh_ranks_rank *r = &x->job->rank[i];
		for (uint32_t q = 0; q < QUARTERS; q++) {
			double sum = 0, steps = 0;
			for (uint32_t t = x->job->times * q / QUARTERS;
			     t < x->job->times * (q + 1) / QUARTERS; t++) {
				sum += r->time[t].steps
					       ? (double)r->time[t].own_s * (double)r->time[t].steps
					       : 0;
				steps += (double)r->time[t].steps;
			}
			x->quarter[i][q] = steps > 0 ? sum / steps : NAN;
		}
	}
}

static double least_of(struct slowness *x, const double *v, uint32_t stride)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < x->job->n; i++)
		if (!isnan(v[i * stride]))
			x->v[n++] = v[i * stride];
	double spread = tfh_ranks_spread(x->v, n, 0);
	return fmax(TFH_RANKS_LEAST * x->job->step_s,
		    isnan(spread) ? 0 : TFH_RANKS_SIGMAS * spread);
}

/* How exactly the mean of a part of a rank's steps is known. */
static double error_of(const struct tfh_ranks_rank *r, double part)
{
	double n = (double)r->steady, mean = n > 0 ? r->steady_s / n : NAN;

	return n * part > 1 ? sqrt(fmax(r->square_s / n - mean * mean, 0) / (n * part)) : INFINITY;
}

static void find_slow(struct slowness *x)
{
	double least = least_of(x, x->excess, 1);

	for (uint32_t i = 0; i < x->job->n; i++)
		x->slow[i] = x->excess[i] >
			     fmax(least, TFH_RANKS_ERRORS * error_of(&x->job->rank[i], 1));
	for (uint32_t q = 0; q < QUARTERS; q++) {
		least = least_of(x, x->quarter[0] + q, QUARTERS);
		for (uint32_t i = 0; i < x->job->n; i++)
			x->slow[i] |= x->quarter[i][q] >
				      fmax(least, TFH_RANKS_ERRORS * error_of(&x->job->rank[i],
									      1.0 / QUARTERS));
	}
}

/* ---- findings ---- */

/* Seconds of a cause in a usual step; TFH_CAUSE_COUNT: of computing. */
static double cause_of(const struct tfh_ranks_rank *r, int c)
{
	double known = 0;

	if (!r->steady)
		return NAN;
	if (c < TFH_CAUSE_COUNT)
		return (r->cause_s[c] - r->slow_cause_s[c]) / (double)r->steady;
	for (int k = 0; k < TFH_CAUSE_COUNT; k++)
		known += tfh_cause_part((enum tfh_cause)k) == TFH_PART_COMMUNICATION
				 ? 0
				 : cause_of(r, k);
	return own_of(r) - known;
}

static void find_cause(struct slowness *x, struct tfh_ranks_finding *f)
{
	const struct tfh_ranks_rank *r = &x->job->rank[f->rank];
	const uint32_t *row;
	uint32_t n = peers_of(x, f->rank, &row);

	f->cause = TFH_CAUSE_COUNT;
	f->cause_s = 0;
	for (int c = 0; c <= TFH_CAUSE_COUNT; c++) {
		uint32_t m = 0;
		if (c < TFH_CAUSE_COUNT &&
		    tfh_cause_part((enum tfh_cause)c) == TFH_PART_COMMUNICATION)
			continue;
		for (uint32_t i = 0; i < n; i++) {
			double s = cause_of(&x->job->rank[row[i]], c);
			if (!isnan(s))
				x->v[m++] = s;
		}
		double over = cause_of(r, c) - tfh_ranks_median(x->v, m);
		if (over > f->cause_s) {
			f->cause = c;
			f->cause_s = over;
		}
	}
}

/* When it was slow: from the first to the last interval with half of what the slowest quarter
 * has. */
static void find_span(struct slowness *x, struct tfh_ranks_finding *f)
{
	const struct tfh_ranks_rank *r = &x->job->rank[f->rank];
	double most = 0;
	uint32_t first = UINT32_MAX, last = 0, seen = 0, begin = UINT32_MAX;

	for (uint32_t q = 0; q < QUARTERS; q++)
		most = fmax(most, x->quarter[f->rank][q]);
	for (uint32_t t = 0; t < x->job->times; t++) {
		seen = r->time[t].steps ? t + 1 : seen;
		begin = r->time[t].steps && begin == UINT32_MAX ? t : begin;
		if (!r->time[t].steps || (double)r->time[t].own_s < most / 2)
			continue;
		first = first == UINT32_MAX ? t : first;
		last = t + 1;
	}
	f->until = 1;
	if (first == UINT32_MAX || !seen)
		return;
	uint32_t n = seen - begin;
	if (first - begin >= n / 16 + 1)
		f->since = (double)(first - begin) / n;
	if (seen - last >= n / 16 + 1)
		f->until = (double)(last - begin) / n;
	f->since_step =
		r->first_step + (uint64_t)(f->since * (double)(r->last_step - r->first_step));
	if (f->since > 0 || f->until < 1)
		f->s = fmax(f->s, most);
}

static int report(struct slowness *x, enum tfh_ranks_what what, uint32_t first, uint32_t n,
		  double sum)
{
	const struct tfh_ranks_rank *r = &x->job->rank[first];
	struct tfh_ranks_finding *f = tfh_ranks_add(x->job, what);

	if (!f)
		return -ENOMEM;
	f->rank = first;
	f->host = r->host;
	f->rack = x->job->host[r->host].rack;
	f->local = r->local;
	f->ranks = n;
	f->s = sum / n;
	f->usual_s = own_of(r) - x->excess[first];
	find_cause(x, f);
	find_span(x, f);
	return 0;
}

/* ---- groups ---- */

typedef uint32_t (*group_of_fn)(const struct tfh_ranks *job, const struct tfh_ranks_rank *r);

static uint32_t rack_of(const struct tfh_ranks *job, const struct tfh_ranks_rank *r)
{
	return job->host[r->host].rack;
}

static uint32_t fabric_of(const struct tfh_ranks *job, const struct tfh_ranks_rank *r)
{
	(void)job;
	return r->fabric;
}

static uint32_t pcie_of(const struct tfh_ranks *job, const struct tfh_ranks_rank *r)
{
	(void)job;
	return r->pcie;
}

static uint32_t host_of(const struct tfh_ranks *job, const struct tfh_ranks_rank *r)
{
	(void)job;
	return r->host;
}

static uint32_t local_of(const struct tfh_ranks *job, const struct tfh_ranks_rank *r)
{
	(void)job;
	return r->local >= 0 && r->local < 4096 ? (uint32_t)r->local : UINT32_MAX;
}

struct group {
	uint32_t ranks, slow, first;
	double sum;
};

/* Reports the groups most of whose ranks are slow, and takes these off the list. A group needs a
 * few ranks, and there must be several groups. */
static int report_groups(struct slowness *x, enum tfh_ranks_what what, group_of_fn of, uint32_t n,
			 uint32_t fewest)
{
	struct tfh_ranks *job = x->job;
	struct group *g = n > 1 ? calloc(n, sizeof(*g)) : NULL;
	int rc = 0;

	if (n < 2)
		return 0;
	if (!g)
		return -ENOMEM;
	for (uint32_t i = job->n; i--;) {
		uint32_t k = of(job, &job->rank[i]);
		if (k >= n)
			continue;
		g[k].ranks++;
		if (!x->slow[i])
			continue;
		g[k].slow++;
		g[k].first = i;
		g[k].sum += x->excess[i];
	}
	for (uint32_t k = 0; k < n && !rc; k++) {
		if (g[k].slow < fewest || g[k].slow < TFH_RANKS_MOST_OF * g[k].ranks)
			g[k].slow = 0;
		else
			rc = report(x, what, g[k].first, g[k].slow, g[k].sum);
	}
	for (uint32_t i = 0; i < job->n; i++) {
		uint32_t k = of(job, &job->rank[i]);
		if (k < n && g[k].slow)
			x->slow[i] = false;
	}
	free(g);
	return rc;
}

static uint32_t largest_host(const struct tfh_ranks *job)
{
	uint32_t most = 0;

	for (uint32_t h = 0; h < job->hosts; h++)
		most = job->host[h].ranks > most ? job->host[h].ranks : most;
	return most;
}

static int tell_all(struct slowness *x)
{
	struct tfh_ranks *job = x->job;
	uint32_t on_host = largest_host(job);
	int rc = report_groups(x, TFH_RANKS_SLOW_FABRIC, fabric_of, job->fabrics, on_host + 1);

	if (!rc)
		rc = report_groups(x, TFH_RANKS_SLOW_RACK, rack_of, job->racks, 3 * on_host);

	if (!rc)
		rc = report_groups(x, TFH_RANKS_SLOW_HOST, host_of, job->hosts, 2);
	if (!rc)
		rc = report_groups(x, TFH_RANKS_SLOW_PCIE, pcie_of, job->pcies, 2);
	if (!rc && job->hosts > 2)
		rc = report_groups(x, TFH_RANKS_SLOW_LOCAL, local_of, on_host, 3);
	for (uint32_t i = 0; i < job->n && !rc; i++)
		if (x->slow[i])
			rc = report(x, TFH_RANKS_SLOW_RANK, i, 1, x->excess[i]);
	return rc;
}

static void use_common_width(struct tfh_ranks *job)
{
	for (uint32_t i = 0; i < job->n; i++)
		job->width_s = fmax(job->width_s, job->rank[i].steps ? job->rank[i].width_s : 0);
	for (uint32_t i = 0; i < job->n; i++) {
		struct tfh_ranks_rank *r = &job->rank[i];
		tfh_ranks_widen(r, job->width_s);
		for (uint32_t t = 0; t < TFH_RANKS_TIMES; t++)
			if (r->time[t].steps && t >= job->times)
				job->times = t + 1;
	}
}

int tfh_ranks_find_slow(struct tfh_ranks *job)
{
	struct slowness x = {.job = job,
			     .order = malloc((job->n + 1u) * sizeof(*x.order)),
			     .v = malloc((job->n + 1u) * sizeof(double)),
			     .excess = malloc((job->n + 1u) * sizeof(double)),
			     .quarter = malloc((job->n + 1u) * sizeof(*x.quarter)),
			     .slow = calloc(job->n + 1u, 1)};
	int rc = x.order && x.v && x.excess && x.quarter && x.slow ? 0 : -ENOMEM;

	if (!rc)
		rc = find_order(&x);
	if (!rc) {
		use_common_width(job);
		compare_all(&x);
		fill_quarters(&x);
		find_slow(&x);
		rc = tell_all(&x);
	}
	free(x.order);
	free(x.v);
	free(x.excess);
	free(x.quarter);
	free(x.slow);
	return rc;
}
