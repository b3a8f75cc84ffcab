/*
 * Missing ranks, and exchanges that some ranks have entered and others never did. A rank that is
 * behind in one communicator may itself wait in another one; the rank to look at is behind and
 * waits nowhere.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "ranks/ranks_parts.h"

static int find_missing(struct tfh_ranks *job)
{
	uint32_t at = 0;

	job->missing = tfh_arena_array(&job->arena, job->world + 1u, sizeof(*job->missing));
	if (!job->missing)
		return -ENOMEM;
	for (uint32_t k = 0; k < job->world; k++) {
		while (at < job->n && job->rank[at].rank < (int32_t)k)
			at++;
		if (at == job->n || job->rank[at].rank != (int32_t)k)
			job->missing[job->n_missing++] = k;
	}
	return 0;
}

static const struct tfh_ranks_member *member_in(const struct tfh_ranks_rank *r, uint32_t c)
{
	for (uint32_t k = 0; k < r->members; k++)
		if (r->member[k].comm == c)
			return &r->member[k];
	return NULL;
}

/* A communicator's last exchange, if not all ranks have entered it. */
struct unfinished {
	uint32_t behind;  /* members that have not entered it */
	double entered_s; /* when the last one that did, did: on the common axis */
};

static struct unfinished look_at(const struct tfh_ranks *job, uint32_t c)
{
	const struct tfh_ranks_comm *comm = &job->comm[c];
	struct unfinished u = {.entered_s = -INFINITY};

	for (uint32_t i = 0; i < comm->n && comm->top; i++) {
		const struct tfh_ranks_rank *r = &job->rank[comm->rank[i]];
		const struct tfh_ranks_member *m = member_in(r, c);
		if (m && m->last < comm->top) {
			u.behind++;
		} else if (m) {
			u.entered_s = fmax(u.entered_s, tfh_ranks_time(job, r->host, m->last_ns));
		}
	}
	return u;
}

/* How long others have waited for a rank since they entered, as far as is known of it. A rank that
 * still recorded when its digest was made may have gone on since. */
static double waited_for(const struct tfh_ranks *job, const struct tfh_ranks_rank *r,
			 const struct unfinished *u, double end_s)
{
	double heard = tfh_ranks_time(job, r->host, r->heard_ns);

	return (r->recording ? heard : fmax(heard, end_s)) - u->entered_s;
}

struct hanging {
	const struct tfh_ranks *job;
	struct unfinished *of; /* by communicator */
	double end_s;	       /* last sign of life of any rank */
};

/* The communicator in which it is behind, and the others have waited longest; UINT32_MAX: none. */
static uint32_t behind_in(const struct hanging *x, const struct tfh_ranks_rank *r)
{
	uint32_t best = UINT32_MAX;
	double most = TFH_RANKS_HANG_S;

	for (uint32_t k = 0; k < r->members; k++) {
		uint32_t c = r->member[k].comm;
		const struct unfinished *u = &x->of[c];
		if (!u->behind || r->member[k].last >= x->job->comm[c].top)
			continue;
		double s = waited_for(x->job, r, u, x->end_s);
		if (s > most) {
			most = s;
			best = c;
		}
	}
	return best;
}

static bool waits(const struct hanging *x, const struct tfh_ranks_rank *r)
{
	for (uint32_t k = 0; k < r->members; k++) {
		uint32_t c = r->member[k].comm;
		const struct tfh_ranks_comm *comm = &x->job->comm[c];
		bool all = !x->of[c].behind && comm->ranks == comm->n;
		if (!all && r->member[k].last == comm->top && comm->top)
			return true;
	}
	return false;
}

static int add_hang(struct tfh_ranks *job, uint32_t rank, uint32_t c, double since_s)
{
	struct tfh_ranks_hang *grown = realloc(job->hang, (job->hangs + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	job->hang = grown;
	grown[job->hangs++] = (struct tfh_ranks_hang){.rank = rank,
						      .missing = -1,
						      .comm = c,
						      .number = job->comm[c].top,
						      .since_s = since_s};
	return 0;
}

/* A communicator all of whose known ranks wait: for one without a digest. */
static int blame_missing(struct tfh_ranks *job, const struct hanging *x)
{
	for (uint32_t c = job->comms; c--;) {
		const struct tfh_ranks_comm *comm = &job->comm[c];
		double s = x->end_s - x->of[c].entered_s;
		if (!comm->top || x->of[c].behind || comm->ranks <= comm->n ||
		    !(s > TFH_RANKS_HANG_S))
			continue;
		int rc = add_hang(job, UINT32_MAX, c, s);
		if (!rc && job->n_missing == 1)
			job->hang[job->hangs - 1].missing = (int32_t)job->missing[0];
		return rc;
	}
	return 0;
}

/* Ranks that wait for each other in different communicators: reports those that most others wait
 * for. */
static int blame_few(struct tfh_ranks *job, const struct hanging *x)
{
	uint32_t best = UINT32_MAX;
	int rc = 0;

	for (uint32_t c = 0; c < job->comms; c++)
		if (x->of[c].behind && x->end_s - x->of[c].entered_s > TFH_RANKS_HANG_S &&
		    (best == UINT32_MAX || x->of[c].behind < x->of[best].behind))
			best = c;
	for (uint32_t i = 0; best != UINT32_MAX && i < job->comm[best].n && !rc; i++) {
		uint32_t row = job->comm[best].rank[i];
		const struct tfh_ranks_rank *r = &job->rank[row];
		const struct tfh_ranks_member *m = member_in(r, best);
		double s = waited_for(job, r, &x->of[best], x->end_s);
		if (m && m->last < job->comm[best].top && s > TFH_RANKS_HANG_S)
			rc = add_hang(job, row, best, s);
	}
	return rc;
}

static bool ended_well(const struct tfh_ranks *job)
{
	for (uint32_t i = 0; i < job->n; i++)
		if (!job->rank[i].closed)
			return false;
	return true;
}

static int find_hangs(struct tfh_ranks *job, struct hanging *x)
{
	uint32_t waiting = 0, told = 0;
	int rc = 0;

	for (uint32_t i = 0; i < job->n; i++)
		x->end_s = fmax(x->end_s,
				tfh_ranks_time(job, job->rank[i].host, job->rank[i].heard_ns));
	for (uint32_t c = 0; c < job->comms; c++)
		x->of[c] = look_at(job, c);
	for (uint32_t i = 0; i < job->n && !rc; i++) {
		const struct tfh_ranks_rank *r = &job->rank[i];
		uint32_t c = behind_in(x, r);
		bool waiter = waits(x, r);
		waiting += waiter;
		if (c != UINT32_MAX && !waiter)
			rc = add_hang(job, i, c, waited_for(job, r, &x->of[c], x->end_s));
	}
	told = job->hangs;
	if (!rc && !told && job->n_missing)
		rc = blame_missing(job, x);
	if (!rc && !job->hangs)
		rc = blame_few(job, x);
	/* The ranks reported for a deadlock are among those that wait. */
	uint32_t selves = told || !job->hangs || job->hang[0].rank == UINT32_MAX ? 0 : job->hangs;
	for (uint32_t i = 0; i < job->hangs; i++)
		job->hang[i].waiting = waiting > selves ? waiting - selves : 0;
	return rc;
}

int tfh_ranks_find_hangs(struct tfh_ranks *job)
{
	struct hanging x = {.job = job, .end_s = -INFINITY};
	int rc = find_missing(job);

	if (rc || ended_well(job))
		return rc;
	x.of = calloc(job->comms + 1u, sizeof(*x.of));
	rc = x.of ? find_hangs(job, &x) : -ENOMEM;
	free(x.of);
	return rc;
}
