/*
 * Files of a process that are not there (deleted, not copied), and when what they held took place.
 * Files are numbered, and records are, in each thread: records that are missing in a thread lie
 * between its last one before and its first one after. A thread that was idle around a lost file
 * tells little of the time, one that was busy tells it to a chunk: a long gap that holds a shorter
 * one is of the same loss.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/layout.h"

#include "model/open/opening.h"

/* Records `first` to `end` of a thread, all of one chunk, which ended between t0 and t1. */
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

/* A process that called exec goes on under its name, and its files' numbers go on, too. */
static bool same_name(const struct tft_head *a, const struct tft_head *b)
{
	return a->pid == b->pid && !strcmp(a->host, b->host);
}

/* How many files are missing right before this one. */
static uint32_t missing_before(const struct tfh_run *run, uint32_t file)
{
	const struct tft_head *own = tft_head(run->file[file].reader);
	uint32_t next = 0; /* after the one before */

	for (uint32_t f = 0; f < run->n_file; f++) {
		const struct tft_head *h = tft_head(run->file[f].reader);
		if (f == file || !same_name(h, own))
			continue;
		if (h->segment == own->segment)
			return 0; /* of another of that name: numbers tell nothing */
		if (h->segment < own->segment && h->segment >= next)
			next = h->segment + 1;
	}
	return own->segment > next ? own->segment - next : 0;
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
			continue; /* no thread of the job's */
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

/* Makes spans into what is missing between them, in place: there are never more gaps than spans. */
static void turn_into_gaps(struct spans *s, int64_t start)
{
	struct span before = {.t1 = start};
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		struct span at = s->v[i];
		if (at.thread != before.thread)
			before = (struct span){.thread = at.thread, .t1 = start};
		if (at.first > before.end) {
			/* Rings are emptied one after the other, so chunks overlap a little. */
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

static int add_holes(struct tfh_run *run, uint32_t process, const struct spans *gaps)
{
	uint32_t begin = run->n_hole;

	for (uint32_t i = 0; i < gaps->n; i++) {
		const struct span *g = &gaps->v[i];
		bool told = false;
		for (uint32_t h = begin; h < run->n_hole && !told; h++) {
			told = run->hole[h].t0 <= g->t1 && run->hole[h].t1 >= g->t0;
			if (told)
				run->hole[h].count += g->end - g->first;
		}
		if (told)
			continue;
		if (tfh_room_for((void **)&run->hole, &run->cap_hole, run->n_hole,
				 sizeof(*run->hole)))
			return -ENOMEM;
		run->hole[run->n_hole++] = (struct tfh_hole){.process = process,
							     .thread = UINT32_MAX,
							     .t0 = g->t0,
							     .t1 = g->t1,
							     .count = g->end - g->first};
	}
	return 0;
}

static int find_holes(struct tfh_run *run, uint32_t process)
{
	struct spans s = {NULL, 0, 0};
	int64_t start = INT64_MIN;
	int rc = 0;

	for (uint32_t f = 0; f < run->n_file && !rc; f++) {
		struct tft_reader *r = run->file[f].reader;
		if (run->file[f].process != process)
			continue;
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
		rc = add_holes(run, process, &s);
	free(s.v);
	return rc;
}

int tfh_run_find_missing(struct tfh_run *run)
{
	int rc = 0;

	for (uint32_t f = 0; f < run->n_file; f++)
		run->proc[run->file[f].process].pub.segments_missing += missing_before(run, f);
	/* Run tables are read once more where something is missing, and nowhere else. */
	for (uint32_t i = 0; i < run->n_proc && !rc; i++)
		if (run->proc[i].pub.segments_missing)
			rc = find_holes(run, i);
	return rc;
}
