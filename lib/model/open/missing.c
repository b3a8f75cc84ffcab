/*
 * Finds files of a process that are missing (deleted, not copied), and the time that they covered.
 * Files are numbered, and so are the records of each thread. A thread's missing records are between
 * its last record before the gap and its first one after it. A thread that was idle around a lost
 * file bounds the time loosely, a busy one to within a chunk. So if one gap contains another, the
 * shorter one describes the loss.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "format/layout.h"

#include "model/open/opening.h"

/* Records `first` to `end` of one thread in one chunk. They ended between t0 and t1. */
struct span {
	uint32_t thread;
	uint64_t first, end;
	int64_t t0, t1;
};

struct spans {
	struct span *v;
	uint32_t n, cap;
};

/* ---- numbers of files ---- */

/* Whether two files have the same process name. A process that called exec keeps its name, and its
 * files' numbers continue. */
static bool same_name(const struct tft_head *a, const struct tft_head *b)
{
	return a->pid == b->pid && !strcmp(a->host, b->host);
}

struct numbered {
	const struct tft_head *head;
	uint32_t process;
};

static int by_segment(const void *a, const void *b)
{
	const struct tft_head *x = ((const struct numbered *)a)->head;
	const struct tft_head *y = ((const struct numbered *)b)->head;
	int host = strcmp(x->host, y->host);

	if (host || x->pid != y->pid)
		return host ? host : x->pid < y->pid ? -1 : 1;
	return x->segment < y->segment ? -1 : x->segment > y->segment;
}

/* How many files are missing directly before file i. */
static uint32_t missing_before(const struct numbered *v, uint32_t i, uint32_t n)
{
	const struct tft_head *own = v[i].head, *before = i ? v[i - 1].head : NULL;
	const struct tft_head *after = i + 1 < n ? v[i + 1].head : NULL;
	uint32_t next = 0;

	if (after && same_name(after, own) && after->segment == own->segment)
		return 0; /* the preceding file has another name: numbers say nothing */
	if (before && same_name(before, own)) {
		if (before->segment == own->segment)
			return 0;
		next = before->segment + 1;
	}
	return own->segment - next;
}

static int count_missing(struct tfh_run *run)
{
	struct numbered *v = malloc((run->n_file + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (uint32_t f = 0; f < run->n_file; f++)
		v[f] = (struct numbered){tft_head(run->file[f].reader), run->file[f].process};
	qsort(v, run->n_file, sizeof(*v), by_segment);
	for (uint32_t i = 0; i < run->n_file; i++)
		run->proc[v[i].process].pub.segments_missing += missing_before(v, i, run->n_file);
	free(v);
	return 0;
}

/* ---- numbers of records ---- */

static int add_chunk(struct tfh_run *run, uint32_t file, uint32_t chunk, struct spans *s)
{
	struct tft_reader *r = run->file[file].reader;
	const struct tft_chunk_info *c = tft_chunk(r, chunk);
	const struct tft_run *runs;
	struct tfh_err err;
	uint32_t n;

	if ((c->type != TFT_EVNT && c->type != TFT_DGST) ||
	    tft_chunk_runs(r, chunk, &runs, &n, &err))
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		if (!runs[i].thread || runs[i].thread == TFT_THREAD_SALVAGE)
			continue; /* not one of the job's threads */
		if (tfh_room_for((void **)&s->v, &s->cap, s->n, sizeof(*s->v)))
			return -ENOMEM;
		s->v[s->n++] = (struct span){
			runs[i].thread, runs[i].first, runs[i].first + runs[i].count,
			tfh_run_ns(run, file, c->t_first), tfh_run_ns(run, file, c->t_last)};
	}
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static int by_length(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	int64_t m = x->t1 - x->t0, n = y->t1 - y->t0;

	return m < n ? -1 : m > n;
}

/* Replaces the spans by the gaps between them, in place: there are never more gaps than spans. */
static void turn_into_gaps(struct spans *s, int64_t start)
{
	struct span before = {.t1 = start};
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		struct span at = s->v[i];
		if (at.thread != before.thread)
			before = (struct span){.thread = at.thread, .t1 = start};
		if (at.first > before.end) {
			/* Rings are emptied one after another, so chunks overlap a little. */
			bool apart = before.t1 < at.t0;
			s->v[n++] =
				(struct span){at.thread, before.end, at.first,
					      apart ? before.t1 : at.t0, apart ? at.t0 : before.t1};
		}
		if (at.end > before.end)
			before = at;
	}
	s->n = n;
}

/* Position of a gap among holes that do not overlap: the first hole that does not end before it. */
static uint32_t place_of(const struct tfh_run *run, const uint32_t *hole, uint32_t n,
			 const struct span *gap)
{
	return (uint32_t)TFH_BISECT(i, 0, n, run->hole[hole[i]].t1 < gap->t0);
}

/* Gaps must be sorted by length, shortest first. */
static int add_holes(struct tfh_run *run, uint32_t process, const struct spans *gaps)
{
	uint32_t *hole = malloc((gaps->n + 1ull) * sizeof(*hole)), n = 0; /* by time */
	int rc = hole ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < gaps->n && !rc; i++) {
		const struct span *g = &gaps->v[i];
		uint32_t at = place_of(run, hole, n, g);
		if (at < n && run->hole[hole[at]].t0 <= g->t1) {
			run->hole[hole[at]].count += g->end - g->first;
			continue;
		}
		rc = tfh_room_for((void **)&run->hole, &run->cap_hole, run->n_hole,
				  sizeof(*run->hole));
		if (rc)
			break;
		memmove(hole + at + 1, hole + at, (n - at) * sizeof(*hole));
		hole[at] = run->n_hole;
		n++;
		run->hole[run->n_hole++] = (struct tfh_hole){
			.process = process, .t0 = g->t0, .t1 = g->t1, .count = g->end - g->first};
	}
	free(hole);
	return rc;
}

/* Finds the holes of one process, whose n files are given. */
static int find_holes(struct tfh_run *run, const uint32_t *file, uint32_t n)
{
	struct spans s = {NULL, 0, 0};
	int64_t start = INT64_MIN;
	int rc = 0;

	for (uint32_t i = 0; i < n && !rc; i++) {
		uint32_t f = file[i];
		struct tft_reader *r = run->file[f].reader;
		start = tfh_run_ns(run, f, tft_head(r)->start_ticks);
		for (uint32_t c = 0; c < tft_chunk_count(r) && !rc; c++)
			rc = add_chunk(run, f, c, &s);
	}
	if (s.n) {
		qsort(s.v, s.n, sizeof(*s.v), by_number);
		turn_into_gaps(&s, start);
	}
	if (s.n)
		qsort(s.v, s.n, sizeof(*s.v), by_length);
	if (!rc)
		rc = add_holes(run, run->file[*file].process, &s);
	free(s.v);
	return rc;
}

int tfh_run_find_missing(struct tfh_run *run)
{
	uint32_t *file = tfh_files_by_process(run);
	int rc = file ? count_missing(run) : -ENOMEM;

	/* Only where files are missing are the run tables read once more. */
	for (uint32_t at = 0, n; at < run->n_file && !rc; at += n) {
		uint32_t p = run->file[file[at]].process;
		for (n = 1; at + n < run->n_file && run->file[file[at + n]].process == p;)
			n++;
		if (run->proc[p].pub.segments_missing)
			rc = find_holes(run, file + at, n);
	}
	free(file);
	return rc;
}
