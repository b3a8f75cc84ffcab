/* Exchanges that take longer than others of their kind, measured from the arrival of their last
 * rank, and hosts whose clocks differ from the others'. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "ranks/ranks_parts.h"

struct links {
	struct tfh_ranks *job;
	double *v;     /* room */
	bool *slow;    /* by communicator */
	double *usual; /* of its kind */
};

/* Whether `c` is of that kind, and the time of its exchanges is known. */
static bool is_timed(const struct tfh_ranks_comm *kind, const struct tfh_ranks_comm *c)
{
	return kind->kind == c->kind && kind->ranks == c->ranks &&
	       (kind->hosts > 1) == (c->hosts > 1) && !isnan(c->transfer_s);
}

/* Communicators are sorted by their size, so those of a kind are among those of a size. */
static void find_slow(struct links *x)
{
	struct tfh_ranks *job = x->job;

	for (uint32_t from = 0, to; from < job->comms; from = to) {
		for (to = from; to < job->comms && job->comm[to].ranks == job->comm[from].ranks;)
			to++;
		for (int kind = 0; kind < 2 * TFH_RANKS_KINDS; kind++) {
			struct tfh_ranks_comm like = {.kind = kind / 2,
						      .ranks = job->comm[from].ranks,
						      .hosts = 1 + kind % 2};
			uint32_t n = 0;
			for (uint32_t c = from; c < to; c++)
				if (is_timed(&like, &job->comm[c]))
					x->v[n++] = job->comm[c].transfer_s;
			double usual = tfh_ranks_median(x->v, n);
			double spread = tfh_ranks_spread(x->v, n, usual);
			for (uint32_t c = from; c < to && n >= TFH_RANKS_LINK_FEWEST; c++) {
				if (!is_timed(&like, &job->comm[c]))
					continue;
				double s = job->comm[c].transfer_s;
				x->usual[c] = usual;
				x->slow[c] = s > TFH_RANKS_LINK_TIMES * usual &&
					     s > usual + TFH_RANKS_SIGMAS * spread &&
					     s - usual > 0.002 * job->step_s;
			}
		}
	}
}

typedef uint32_t (*link_of_fn)(const struct tfh_ranks_comm *c);

static uint32_t rail_of(const struct tfh_ranks_comm *c)
{
	return c->hosts > 1 && c->local >= 0 && c->local < 4096 ? (uint32_t)c->local : UINT32_MAX;
}

static uint32_t rack_of(const struct tfh_ranks_comm *c)
{
	return c->hosts > 1 ? c->rack : UINT32_MAX;
}

static uint32_t fabric_of(const struct tfh_ranks_comm *c)
{
	return c->hosts > 1 ? c->fabric : UINT32_MAX;
}

static int report(struct links *x, enum tfh_ranks_what what, uint32_t c, double s)
{
	const struct tfh_ranks_comm *comm = &x->job->comm[c];
	struct tfh_ranks_finding *f = tfh_ranks_add(x->job, what);

	if (!f)
		return -ENOMEM;
	f->comm = c;
	f->rank = comm->rank[0];
	f->host = x->job->rank[f->rank].host;
	f->rack = comm->rack;
	f->local = comm->local;
	f->ranks = comm->ranks;
	f->s = s;
	f->usual_s = x->usual[c];
	f->until = 1;
	return 0;
}

struct link_sum {
	uint32_t all, slow, first;
};

static double median_of(struct links *x, link_of_fn of, uint32_t k)
{
	uint32_t n = 0;

	for (uint32_t c = 0; c < x->job->comms; c++)
		if (x->slow[c] && of(&x->job->comm[c]) == k)
			x->v[n++] = x->job->comm[c].transfer_s;
	return tfh_ranks_median(x->v, n);
}

/* Reports a rail or switch most of whose communicators are slow. `done`: communicators that are
 * explained by it. */
static int report_groups(struct links *x, enum tfh_ranks_what what, link_of_fn of, uint32_t n,
			 bool *done)
{
	struct tfh_ranks *job = x->job;
	struct link_sum *g = calloc(n + 1u, sizeof(*g));
	int rc = g ? 0 : -ENOMEM;

	for (uint32_t c = job->comms; c-- && !rc;) {
		uint32_t k = of(&job->comm[c]);
		if (k >= n || isnan(x->usual[c]))
			continue;
		g[k].all++;
		if (!x->slow[c])
			continue;
		g[k].slow++;
		g[k].first = c;
	}
	for (uint32_t k = 0; k < n && !rc; k++) {
		bool most = g[k].slow >= 2 && g[k].slow >= TFH_RANKS_MOST_OF * g[k].all;
		if (most)
			rc = report(x, what, g[k].first, median_of(x, of, k));
		for (uint32_t c = 0; c < job->comms && most; c++)
			done[c] |= of(&job->comm[c]) == k;
	}
	free(g);
	return rc;
}

static uint32_t places(const struct tfh_ranks *job)
{
	int32_t most = -1;

	for (uint32_t i = 0; i < job->n; i++)
		most = job->rank[i].local > most ? job->rank[i].local : most;
	return most < 4096 ? (uint32_t)(most + 1) : 4096;
}

static int find_links(struct links *x)
{
	struct tfh_ranks *job = x->job;
	bool *done = calloc(job->comms + 1u, 1);
	int rc = done ? 0 : -ENOMEM;

	for (uint32_t c = 0; c < job->comms; c++)
		x->usual[c] = NAN;
	find_slow(x);
	if (!rc)
		rc = report_groups(x, TFH_RANKS_SLOW_RAIL, rail_of, places(job), done);
	if (!rc && job->fabrics > 1)
		rc = report_groups(x, TFH_RANKS_SLOW_NVLINK, fabric_of, job->fabrics, done);
	if (!rc && job->racks > 1)
		rc = report_groups(x, TFH_RANKS_SLOW_SWITCH, rack_of, job->racks, done);
	for (uint32_t c = 0; c < job->comms && !rc; c++)
		if (x->slow[c] && !done[c])
			rc = report(x, TFH_RANKS_SLOW_COMM, c, job->comm[c].transfer_s);
	free(done);
	return rc;
}

/* ---- clocks ---- */

static double spread_of(const struct tfh_ranks *job, bool drift, double *room)
{
	uint32_t n = 0;

	for (uint32_t h = 0; h < job->hosts; h++)
		if (job->host[h].aligned)
			room[n++] = drift ? job->host[h].drift : job->host[h].offset_s;
	return tfh_ranks_spread(room, n, 0);
}

static int find_clocks(struct tfh_ranks *job, double *room)
{
	double offset = fmax(TFH_RANKS_CLOCK_S,
			     TFH_RANKS_CLOCK_SIGMAS * spread_of(job, false, room)),
	       drift = fmax(TFH_RANKS_DRIFT, TFH_RANKS_CLOCK_SIGMAS * spread_of(job, true, room));

	for (uint32_t h = 0; h < job->hosts; h++) {
		const struct tfh_ranks_host *x = &job->host[h];
		if (!x->aligned || (fabs(x->offset_s) < offset && fabs(x->drift) < drift))
			continue;
		struct tfh_ranks_finding *f = tfh_ranks_add(job, TFH_RANKS_CLOCK);
		if (!f)
			return -ENOMEM;
		f->host = h;
		f->rack = x->rack;
		f->rank = UINT32_MAX;
		f->s = x->offset_s;
		f->until = 1;
	}
	return 0;
}

int tfh_ranks_find_links(struct tfh_ranks *job)
{
	size_t most = job->comms > job->hosts ? job->comms : job->hosts;
	struct links x = {.job = job,
			  .v = malloc((most + 1) * sizeof(double)),
			  .slow = calloc(job->comms + 1u, 1),
			  .usual = malloc((job->comms + 1u) * sizeof(double))};
	int rc = x.v && x.slow && x.usual ? find_links(&x) : -ENOMEM;

	if (!rc)
		rc = find_clocks(job, x.v);
	free(x.v);
	free(x.slow);
	free(x.usual);
	return rc;
}
