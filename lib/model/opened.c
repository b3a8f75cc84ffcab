/* Helpers for all parts of the model: array growth, time conversion, unreadable files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/opened.h"

int tfh_room_for(void **v, uint32_t *cap, uint32_t n, size_t size)
{
	if (n < *cap)
		return 0;
	uint32_t want = *cap ? *cap * 2 : 16;
	void *p = want > *cap ? realloc(*v, want * size) : NULL;
	if (!p)
		return -ENOMEM;
	*v = p;
	*cap = want;
	return 0;
}

#define THREADS 1024u /* per page of tfh_model_proc.thread_page */

uint32_t tfh_thread_at(const struct tfh_model_proc *p, uint32_t index)
{
	const uint32_t *page = index < p->n_thread ? p->thread_page[index / THREADS] : NULL;

	return page ? page[index % THREADS] - 1 : UINT32_MAX;
}

int tfh_thread_put(struct tfh_model_proc *p, uint32_t index, uint32_t in_run)
{
	uint32_t pages = (p->n_thread + THREADS - 1) / THREADS, want = index / THREADS + 1;

	if (want > pages) {
		uint32_t **v = realloc(p->thread_page, want * sizeof(*v));
		if (!v)
			return -ENOMEM;
		memset(v + pages, 0, (want - pages) * sizeof(*v));
		p->thread_page = v;
	}
	if (index >= p->n_thread)
		p->n_thread = index + 1;
	uint32_t **page = &p->thread_page[index / THREADS];
	if (!*page && !(*page = calloc(THREADS, sizeof(**page))))
		return -ENOMEM;
	(*page)[index % THREADS] = in_run + 1;
	return 0;
}

void tfh_threads_free(struct tfh_model_proc *p)
{
	for (uint32_t i = 0; p->thread_page && i < p->n_thread; i += THREADS)
		free(p->thread_page[i / THREADS]);
	free(p->thread_page);
}

int64_t tfh_run_ns(const struct tfh_run *run, uint32_t file, uint64_t ticks)
{
	/* Unsigned: a hostile file names any time, and a sum of signed ones must not overflow. */
	return (int64_t)((uint64_t)tft_monotonic_ns(run->file[file].reader, ticks) +
			 (uint64_t)run->proc[run->file[file].process].shift);
}

int tfh_run_leave_out(struct tfh_run *run, const char *why)
{
	if (tfh_room_for((void **)&run->unreadable, &run->cap_unreadable, run->n_unreadable,
			 sizeof(*run->unreadable)) ||
	    !(run->unreadable[run->n_unreadable] = tfh_arena_strdup(&run->arena, why)))
		return -ENOMEM;
	run->n_unreadable++;
	return 0;
}

void tfh_chunk_lost(const struct tfh_run *run, const struct tfh_chunk *c, struct tfh_lost *lost)
{
	const struct tft_run *runs;
	struct tfh_err err;
	uint32_t n;

	*lost = (struct tfh_lost){0, false};
	if (tft_chunk_runs(run->file[c->file].reader, c->chunk, &runs, &n, &err))
		return;
	for (uint32_t i = 0; i < n; i++) {
		if (runs[i].thread && runs[i].thread != TFT_THREAD_SALVAGE)
			lost->records += runs[i].count;
		else
			lost->repeats = true;
	}
}

int tfh_run_note_damage(struct tfh_run *run, uint32_t process, struct tfh_chunk *c,
			const struct tfh_lost *lost)
{
	const struct tfh_model_proc *p = &run->proc[process];
	uint64_t from = c->t_first;

	if (c->damaged)
		return 0;
	c->damaged = true;
	run->process[process].bad_chunks++;
	if (!lost->records)
		return 0;
	/* Such records may be as old as the process, so the header's first time says nothing. The
	 * hole begins no earlier than the end of the preceding chunk. */
	for (uint32_t i = 0; i < p->n_chunk && lost->repeats; i++)
		if (p->chunk[i].t_last < c->t_last && p->chunk[i].t_first > from)
			from = p->chunk[i].t_first;
	if (tfh_room_for((void **)&run->hole, &run->cap_hole, run->n_hole, sizeof(*run->hole)))
		return -ENOMEM;
	run->hole[run->n_hole++] = (struct tfh_hole){.process = process,
						     .t0 = tfh_run_ns(run, c->file, from),
						     .t1 = tfh_run_ns(run, c->file, c->t_last),
						     .count = lost->records};
	return 0;
}
