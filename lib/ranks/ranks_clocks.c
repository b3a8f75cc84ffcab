/*
 * Aligns the hosts' clocks. An exchange ends at about the same moment in all its ranks, so its ends
 * show how the clocks differ: by an offset, and by a drift that grows with time. From one host on,
 * communicators reach all others; then each host is fitted to the median of those that it exchanges
 * with, a few times.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "ranks/ranks_parts.h"

#define ROUNDS 4u   /* after all hosts were reached */
#define NUMBERS 64u /* exchanges of a communicator */
#define PAIRS 1024u /* exchanges of a host */

/* The end of an exchange on one host. */
struct exchange_end {
	uint32_t number, host;
	double s; /* by the host's clock, since `epoch` */
};

struct exchange_ends {
	struct exchange_end *v;
	uint32_t n;
};

struct pairs {
	/* [PAIRS]: the host's time since its start, what the others say it is */
	double (*v)[2];
	uint32_t n;
};

struct aligning {
	struct tfh_ranks *job;
	struct exchange_ends *of; /* by communicator */
	struct pairs *pair;	  /* by host */
	bool *known;
};

static int by_number(const void *a, const void *b)
{
	const struct exchange_end *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->host < y->host ? -1 : x->host > y->host;
}

/* ---- what is known of exchanges ---- */

/* One rank represents each host. */
static int collect(struct aligning *x, uint32_t c)
{
	const struct tfh_ranks_comm *comm = &x->job->comm[c];
	struct exchange_ends *m = &x->of[c];
	uint32_t mask = 0, cap = 0, seen = 0;

	if (comm->hosts < 2)
		return 0;
	while (comm->top / (mask + 1u) > NUMBERS)
		mask = mask * 2 + 1;
	for (uint32_t i = 0; i < comm->n; i++) {
		const struct tfh_ranks_rank *r = &x->job->rank[comm->rank[i]];
		if (i && r->host == x->job->rank[comm->rank[i - 1]].host)
			continue;
		for (seen = 0; seen < r->samples; seen++) {
			const struct tfh_ranks_sample *s = &r->sample[seen];
			if (r->member[s->member].comm != c || s->number & mask)
				continue;
			if (m->n == cap) {
				cap = cap ? cap * 2 : 64;
				struct exchange_end *grown = realloc(m->v, cap * sizeof(*grown));
				if (!grown)
					return -ENOMEM;
				m->v = grown;
			}
			m->v[m->n++] =
				(struct exchange_end){s->number, r->host,
						      (double)(x->job->host[r->host].start_ns -
							       x->job->epoch_ns + s->leave_ns) *
							      1e-9};
		}
	}
	if (m->n)
		qsort(m->v, m->n, sizeof(*m->v), by_number);
	return 0;
}

/* Since `epoch`. Drifts count from the host's own start: clocks may be days apart. */
static double start_of(const struct tfh_ranks *job, const struct tfh_ranks_host *h)
{
	return (double)(h->start_ns - job->epoch_ns) * 1e-9;
}

static double corrected(const struct tfh_ranks *job, uint32_t host, double s)
{
	const struct tfh_ranks_host *h = &job->host[host];

	return s - h->offset_s - h->drift * (s - start_of(job, h));
}

double tfh_ranks_time(const struct tfh_ranks *job, uint32_t host, int64_t ns)
{
	const struct tfh_ranks_host *h = &job->host[host];
	double s = (double)(h->start_ns - job->epoch_ns + ns) * 1e-9;

	return isnan(h->offset_s) ? s : corrected(job, host, s);
}

/* ---- one round ---- */

/* What the known hosts say about one exchange. */
static void compare(struct aligning *x, const struct exchange_end *v, uint32_t n, double *room)
{
	uint32_t known = 0;

	/* A hostile digest may repeat an exchange. */
	n = n < x->job->hosts ? n : x->job->hosts;
	for (uint32_t i = 0; i < n; i++)
		if (x->known[v[i].host])
			room[known++] = corrected(x->job, v[i].host, v[i].s);
	double at = tfh_ranks_median(room, known);
	for (uint32_t i = 0; i < n && known; i++) {
		struct pairs *p = &x->pair[v[i].host];
		if (known == 1 && x->known[v[i].host])
			continue;
		if (!p->v)
			p->v = malloc(PAIRS * sizeof(*p->v));
		if (!p->v || p->n == PAIRS)
			continue;
		double start = start_of(x->job, &x->job->host[v[i].host]);
		p->v[p->n][0] = v[i].s - start;
		p->v[p->n++][1] = at - start;
	}
}

/* Least squares: host time - true time = offset + drift * host time, without pairs farther off than
 * `within`. */
static uint32_t fit(const struct pairs *p, double offset, double drift, double within,
		    double out[2])
{
	double n = 0, t = 0, d = 0, tt = 0, td = 0, first = INFINITY, last = -INFINITY;

	for (uint32_t i = 0; i < p->n; i++) {
		double s = p->v[i][0], off = s - p->v[i][1];
		if (fabs(off - offset - drift * s) > within)
			continue;
		n++;
		t += s;
		d += off;
		first = fmin(first, s);
		last = fmax(last, s);
	}
	if (n < 1)
		return 0;
	t /= n;
	d /= n;
	for (uint32_t i = 0; i < p->n; i++) {
		double s = p->v[i][0], off = s - p->v[i][1];
		if (fabs(off - offset - drift * s) > within)
			continue;
		tt += (s - t) * (s - t);
		td += (s - t) * (off - d);
	}
	double slope = n >= TFH_RANKS_DRIFT_FEWEST && tt > 0 ? td / tt : 0;
	if (fabs(slope) > TFH_RANKS_DRIFT_MOST)
		slope = 0;
	out[0] = d - slope * t;
	out[1] = slope;
	return (uint32_t)n;
}

static double residual(const struct pairs *p, const double at[2], double *room)
{
	for (uint32_t i = 0; i < p->n; i++)
		room[i] = fabs(p->v[i][0] - p->v[i][1] - at[0] - at[1] * p->v[i][0]);
	return tfh_ranks_median(room, p->n);
}

static void fit_host(struct aligning *x, uint32_t host, double *room)
{
	struct tfh_ranks_host *h = &x->job->host[host];
	struct pairs *p = &x->pair[host];
	double at[2];

	if (!p->n || !fit(p, 0, 0, INFINITY, at))
		return;
	double off = residual(p, at, room);
	/* Again without outliers; the rest still counts if the line barely changes. */
	if (fit(p, at[0], at[1], 4 * off + 1e-9, at))
		off = residual(p, at, room);
	h->offset_s = at[0];
	h->drift = at[1];
	h->residual_s = off;
	h->aligned = p->n;
	x->known[host] = true;
	p->n = 0;
}

/* One round over all exchanges. Returns how many hosts are known. */
static uint32_t go_round(struct aligning *x, double *room)
{
	uint32_t n = 0;

	for (uint32_t c = 0; c < x->job->comms; c++) {
		const struct exchange_ends *m = &x->of[c];
		for (uint32_t from = 0, to; from < m->n; from = to) {
			for (to = from; to < m->n && m->v[to].number == m->v[from].number;)
				to++;
			compare(x, m->v + from, to - from, room);
		}
	}
	for (uint32_t h = 0; h < x->job->hosts; h++) {
		fit_host(x, h, room);
		n += x->known[h];
	}
	return n;
}

static double median_of(const struct tfh_ranks *job,
			double (*of)(const struct tfh_ranks *, uint32_t), double *room)
{
	uint32_t n = 0;

	for (uint32_t h = 0; h < job->hosts; h++)
		if (!isnan(job->host[h].offset_s))
			room[n++] = of(job, h);
	return tfh_ranks_median(room, n);
}

static double offset_of(const struct tfh_ranks *job, uint32_t host)
{
	return job->host[host].offset_s;
}

static double drift_of(const struct tfh_ranks *job, uint32_t host)
{
	return job->host[host].drift;
}

static double began(const struct tfh_ranks *job, uint32_t host)
{
	return corrected(job, host, start_of(job, &job->host[host]));
}

/* Makes offsets relative to the median host, since no host's clock is right by itself: all
 * corrected times change by the median offset and, from the median start on, by the median
 * drift. */
static void centre(struct tfh_ranks *job, double *room)
{
	double offset = median_of(job, offset_of, room), drift = median_of(job, drift_of, room),
	       start = median_of(job, began, room);

	for (uint32_t i = 0; i < job->hosts; i++) {
		struct tfh_ranks_host *h = &job->host[i];
		h->offset_s -= offset + drift * (began(job, i) - start);
		h->drift -= drift * (1 - h->drift);
	}
}

static int align(struct aligning *x)
{
	struct tfh_ranks *job = x->job;
	double *room = malloc(((size_t)job->hosts + PAIRS) * sizeof(*room));
	uint32_t first = UINT32_MAX, known = 1, before = 0;
	int rc = room ? 0 : -ENOMEM;

	for (uint32_t c = 0; c < job->comms && !rc; c++) {
		rc = collect(x, c);
		if (first == UINT32_MAX && x->of[c].n)
			first = x->of[c].v[0].host;
	}
	if (!rc && first != UINT32_MAX) {
		x->known[first] = true;
		job->host[first].offset_s = job->host[first].drift = 0;
		while (known > before) {
			before = known;
			known = go_round(x, room);
		}
		for (uint32_t i = 0; i < ROUNDS; i++)
			go_round(x, room);
		centre(job, room);
	}
	free(room);
	return rc;
}

int tfh_ranks_align(struct tfh_ranks *job)
{
	struct aligning x = {.job = job,
			     .of = calloc(job->comms + 1u, sizeof(*x.of)),
			     .pair = calloc(job->hosts + 1u, sizeof(*x.pair)),
			     .known = calloc(job->hosts + 1u, 1)};
	int rc = x.of && x.pair && x.known ? align(&x) : -ENOMEM;

	for (uint32_t c = 0; x.of && c < job->comms; c++)
		free(x.of[c].v);
	for (uint32_t h = 0; x.pair && h < job->hosts; h++)
		free(x.pair[h].v);
	free(x.of);
	free(x.pair);
	free(x.known);
	return rc;
}
