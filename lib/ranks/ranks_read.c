/* Reads all digests of a job on a few threads, each a file at a time, so that memory does not
 * depend on their sizes. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "ranks/ranks_parts.h"
#include "report/report.h"

#define THREADS 8
#define GENERATIONS 4096u

struct job_reading {
	struct tfh_ranks *job;
	char *const *path;
	uint32_t n, next;
	struct tfh_ranks_rank **part; /* [n]: ranks of each file */
	pthread_mutex_t lock;
	struct tfh_err err;
	int rc;
};

/* ---- one digest ---- */

static int fill_rank(struct tfh_ranks_rank *r, const struct tfh_digest_rank *row, uint32_t steps)
{
	*r = (struct tfh_ranks_rank){
		.rank = row->rank && row->rank <= TFH_RANKS_MOST ? (int32_t)row->rank - 1 : -1,
		.local = row->local && row->local <= TFH_RANKS_MOST ? (int32_t)row->local - 1 : -1,
		.peers = UINT32_MAX,
		.processes = row->processes,
		.end = row->end && row->end <= TFH_END_COUNT ? row->end - 1 : TFH_END_NONE,
		.code = row->code,
		.closed = row->state & TFH_DIGEST_CLOSED,
		.recording = row->state & TFH_DIGEST_RECORDING,
		.begin_ns = row->begin_ns < INT64_MAX / 4 ? (int64_t)row->begin_ns : 0,
		.heard_ns = row->heard_ns < INT64_MAX / 4 ? (int64_t)row->heard_ns : 0,
		.world = row->world <= TFH_RANKS_MOST ? row->world : 0,
		.generation = row->generation <= GENERATIONS ? row->generation : GENERATIONS,
		.late_s = NAN,
		.held_s = NAN,
		.last = NAN,
		.links = (int)row->links - 1,
		.in_step = calloc(steps + 1u, sizeof(*r->in_step))};
	return r->in_step ? 0 : -ENOMEM;
}

static const char *kept_text(struct tfh_arena *arena, const struct tfh_digest_part *p,
			     uint32_t offset)
{
	const char *text = tfh_digest_text(p, offset),
		   *kept = *text ? tfh_arena_strdup(arena, text) : NULL;

	return kept ? kept : "";
}

static void take_places(struct job_reading *x, const struct tfh_digest_part *p,
			struct tfh_ranks_rank *rank)
{
	const struct tfh_digest_rank *row = p->row;
	struct tfh_arena *arena = &x->job->arena;

	for (uint32_t i = 0; i < p->n; i++) {
		rank[i].bus = kept_text(arena, p, row[i].bus);
		rank[i].nic = kept_text(arena, p, row[i].nic);
		rank[i].pcie_name = kept_text(arena, p, row[i].pcie);
		rank[i].fabric_name = kept_text(arena, p, row[i].fabric);
	}
}

/* The longest open call of each rank. */
static void take_opens(struct job_reading *x, const struct tfh_run_digest *d,
		       struct tfh_ranks_rank *rank, uint32_t n)
{
	const struct tfh_digest_part *p = tfh_digest_part_of(d, TFT_DOPN);
	const struct tfh_digest_open *row = p->row;
	struct tfh_arena *arena = &x->job->arena;

	for (uint32_t i = 0; i < p->n; i++) {
		struct tfh_ranks_rank *r = row[i].rank < n ? &rank[row[i].rank] : NULL;
		double open_s = (double)row[i].open_ns * 1e-9;
		if (!r || (r->open && r->open_s >= open_s))
			continue;
		r->open = tfh_arena_strdup(arena, tfh_digest_text(p, row[i].name));
		r->open_s = open_s;
		r->open_line = row[i].line;
		r->open_state = row[i].state;
		r->open_file = tfh_arena_strdup(arena, tfh_digest_text(p, row[i].file));
		r->open_function = tfh_arena_strdup(arena, tfh_digest_text(p, row[i].function));
	}
}

static const char *kept_fact(struct tfh_ranks *job, const struct tfh_run_digest *d,
			     const char *name)
{
	const char *text = tfh_digest_fact(d, name);

	return text ? tfh_arena_strdup(&job->arena, text) : NULL;
}

static const char *command_of(struct tfh_ranks *job, const struct tfh_run_digest *d)
{
	const char *argv[8];
	uint32_t n = 0;

	for (; n < sizeof(argv) / sizeof(*argv); n++) {
		char name[32];
		snprintf(name, sizeof(name), "command.%u", n);
		argv[n] = kept_fact(job, d, name);
		if (!argv[n])
			break;
	}
	return n ? tfh_report_job(argv, n) : NULL;
}

static void take_facts(struct tfh_ranks *job, const struct tfh_run_digest *d,
		       struct tfh_ranks_host *h)
{
	double world = tfh_digest_number(d, "ranks"), wall = tfh_digest_number(d, "wall_s");

	h->command = command_of(job, d);
	h->world = world > 0 && world <= TFH_RANKS_MOST ? (uint32_t)world : 0;
	h->wall_s = wall > 0 && wall < 1e10 ? wall : 0;
}

static uint64_t bytes_of(const struct tfh_run_digest *d)
{
	const struct tfh_digest_part *p = tfh_digest_part_of(d, TFT_DINP);
	const struct tfh_digest_input *row = p->row;
	uint64_t all = 0;

	for (uint32_t i = 0; i < p->n; i++)
		if (tfh_ends_with(tfh_digest_text(p, row[i].name), ".tft"))
			all += row[i].bytes;
	return all;
}

static void take_host(struct job_reading *x, struct tfh_run_digest *d, uint32_t at,
		      struct tfh_ranks_rank *rank, uint32_t n)
{
	struct tfh_ranks_host *h = &x->job->host[at];
	const struct tfh_digest_part *p = tfh_digest_part_of(d, TFT_DRNK);
	const struct tfh_digest_rank *row = p->row;
	const char *judge = tfh_digest_fact(d, "judge"), *name = tfh_digest_fact(d, "run.host");
	double start = tfh_digest_number(d, "start_ns");

	name = n ? tfh_digest_text(p, row[0].host) : name;
	h->name = tfh_arena_strdup(&x->job->arena, name ? name : "");
	h->start_ns = start > 0 && start < 4e18 ? (int64_t)start : 0;
	h->other_judge = !judge || strcmp(judge, tfh_judge_id());
	h->offset_s = h->drift = h->residual_s = NAN;
	h->ranks = n;
	h->bytes = bytes_of(d);
	x->part[at] = rank;
	take_places(x, p, rank);
	take_opens(x, d, rank, n);
	take_facts(x->job, d, h);
}

static int read_one(struct job_reading *x, struct tfh_ranks_folding *folding, uint32_t at,
		    struct tfh_err *err)
{
	struct tfh_run_digest *d;
	int rc = tfh_digest_open(x->path[at], &d, err);

	if (rc)
		return rc;
	const struct tfh_digest_part *p = tfh_digest_part_of(d, TFT_DRNK);
	struct tfh_ranks_rank *rank = calloc(p->n + 1u, sizeof(*rank));
	rc = rank ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < p->n && !rc; i++)
		rc = fill_rank(&rank[i], (const struct tfh_digest_rank *)p->row + i,
			       x->job->steps_kept);
	if (!rc)
		rc = tfh_ranks_fold(folding, d, rank, err);
	if (!rc)
		rc = tfh_ranks_take_anchors(d, x->job->steps_kept, rank, err);
	pthread_mutex_lock(&x->lock);
	if (!rc)
		take_host(x, d, at, rank, p->n);
	pthread_mutex_unlock(&x->lock);
	if (rc) {
		for (uint32_t i = 0; rank && i < p->n; i++)
			tfh_ranks_drop(&rank[i]);
		free(rank);
	}
	tfh_digest_close(d);
	return rc;
}

/* A damaged digest does not prevent reading the others. */
static void *read_some(void *arg)
{
	struct job_reading *x = arg;
	struct tfh_ranks_folding *folding = tfh_ranks_folding_new(x->job);
	uint32_t at = x->n;

	do {
		struct tfh_err err = {0};
		int rc = 0;
		if (!folding)
			rc = -ENOMEM;
		else if (at < x->n)
			rc = read_one(x, folding, at, &err);
		pthread_mutex_lock(&x->lock);
		if (rc == -ENOMEM) {
			x->rc = rc;
		} else if (rc) {
			if (!x->job->unread++)
				x->job->unread_why = tfh_arena_strdup(&x->job->arena, err.text);
			x->err = err;
		}
		at = x->rc || x->next >= x->n ? x->n : x->next++;
		pthread_mutex_unlock(&x->lock);
	} while (at < x->n);
	free(folding);
	return NULL;
}

/* ---- all ---- */

static int by_rank(const void *a, const void *b)
{
	const struct tfh_ranks_rank *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->host < y->host ? -1 : x->host > y->host;
}

/* Only hosts of the job whose digest was read remain. */
static void keep_hosts(struct job_reading *x, const bool *other)
{
	struct tfh_ranks *job = x->job;
	uint32_t kept = 0;

	for (uint32_t h = 0; h < x->n; h++) {
		struct tfh_ranks_rank *part = x->part[h];
		const struct tfh_ranks_host host = job->host[h];
		if (!part)
			continue;
		for (uint32_t i = 0; i < host.ranks; i++) {
			part[i].host = kept;
			if (part[i].rank < 0 || other[h])
				tfh_ranks_drop(&part[i]);
			else
				job->rank[job->n++] = part[i];
		}
		if (other[h])
			continue;
		job->host[kept++] = host;
		job->command = job->command ? job->command : host.command;
		job->world = host.world > job->world ? host.world : job->world;
		job->wall_s = fmax(host.wall_s, job->wall_s);
	}
	job->hosts = job->hosts_read = kept;
}

/* Joins the ranks of all files. Processes without a rank are left out. Of a rank that was on
 * several hosts, one process is kept. */
static int join_parts(struct job_reading *x)
{
	struct tfh_ranks *job = x->job;
	bool *other = calloc(x->n + 1u, sizeof(*other));
	size_t n = 0;

	for (uint32_t h = 0; h < x->n; h++)
		n += x->part[h] ? job->host[h].ranks : 0;
	job->rank = calloc(n + 1, sizeof(*job->rank));
	int rc = job->rank && other && n <= TFH_RANKS_MOST
			 ? tfh_ranks_find_others(job, x->path, x->part, other)
			 : -ENOMEM;
	if (!rc)
		keep_hosts(x, other);
	free(other);
	if (!rc)
		rc = tfh_ranks_split(job);
	if (rc)
		return rc;
	qsort(job->rank, job->n, sizeof(*job->rank), by_rank);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < job->n; i++) {
		struct tfh_ranks_rank *r = &job->rank[i],
				      *last = kept ? &job->rank[kept - 1] : NULL;
		if (!last || last->rank != r->rank) {
			job->rank[kept++] = *r;
			continue;
		}
		/* It was restarted on another host: the one that did more counts. */
		bool more = r->steps > last->steps;
		uint32_t processes = last->processes + r->processes;
		tfh_ranks_drop(more ? last : r);
		if (more)
			*last = *r;
		last->processes = processes;
	}
	job->n = kept;
	return 0;
}

static unsigned threads(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n > THREADS ? THREADS : (unsigned)n;
}

int tfh_ranks_read(struct tfh_ranks *job, char *const *digest, uint32_t n, struct tfh_err *err)
{
	struct job_reading x = {
		.job = job, .path = digest, .n = n, .lock = PTHREAD_MUTEX_INITIALIZER};
	pthread_t thread[THREADS];
	unsigned started = 0;

	job->host = calloc(n + 1, sizeof(*job->host));
	job->hosts = n;
	x.part = calloc(n + 1, sizeof(struct tfh_ranks_rank *));
	bool ready = job->host && x.part;
	x.rc = ready ? 0 : -ENOMEM;
	for (; ready && started + 1 < threads() && started + 1 < n; started++)
		if (pthread_create(&thread[started], NULL, read_some, &x))
			break;
	if (ready)
		read_some(&x);
	for (unsigned i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	if (!x.rc)
		x.rc = join_parts(&x);
	for (uint32_t i = 0; x.part && i < n; i++) {
		for (uint32_t k = 0; x.rc && x.part[i] && k < job->host[i].ranks; k++)
			tfh_ranks_drop(&x.part[i][k]);
		free(x.part[i]);
	}
	free(x.part);
	if (x.rc)
		return tfh_err_set(err, x.rc, "%s", x.rc == -ENOMEM ? "out of memory" : x.err.text);
	if (!job->n && job->unread) {
		*err = x.err;
		return x.err.code ? x.err.code : -EBADMSG;
	}
	return job->n ? 0 : tfh_err_set(err, -ENODATA, "no rank in %u digests", n);
}
