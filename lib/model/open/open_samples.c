/* Assigns to each call in flight the last sample of its thread. */
#include <errno.h>

#include "model/open/opening.h"

/* Assigns a sample to the calls during which it was taken. */
static void take_sample(struct tfh_run *run, uint32_t file, const struct tfh_rec *rec)
{
	uint32_t process = run->file[file].process;
	uint32_t thread = tfh_thread_at(&run->proc[process], rec->ctx);
	int64_t t = tfh_run_ns(run, file, rec->t_end);

	for (uint32_t i = 0; i < run->n_flight; i++) {
		struct tfh_in_flight *f = &run->flight[i];
		if (f->process != process || f->thread != thread || t < f->begin_ns ||
		    t < f->look_ns)
			continue;
		f->look_ns = t;
		f->state = rec->result;
		/* A sample taken while the thread was running has no line of code; then an earlier
		 * sample's line stays. */
		f->place = rec->stack ? rec->stack : f->place;
	}
}

static int take_chunk(struct tfh_run *run, const struct tfh_chunk *chunk)
{
	struct tft_events *events;
	struct tfh_err err;

	if (tft_events_open(run->file[chunk->file].reader, chunk->chunk, &events, &err))
		return err.code == -ENOMEM ? -ENOMEM : 0; /* damaged: the reader has counted it */
	for (uint32_t i = 0; i < tft_run_count(events); i++) {
		struct tft_cursor c;
		struct tfh_rec rec;
		if (tft_run(events, i)->thread)
			continue;
		tft_cursor_init(&c, events, i);
		while (tft_next(&c, &rec))
			if (rec.kind == TFT_STATE && rec.w[1] >> 16 & 0xffff)
				take_sample(run, chunk->file, &rec);
	}
	tft_events_close(events);
	return 0;
}

/* Begin of the oldest call in flight of a process; INT64_MAX if there is none. */
static int64_t oldest(const struct tfh_run *run, uint32_t process)
{
	int64_t begin = INT64_MAX;

	for (uint32_t i = 0; i < run->n_flight; i++)
		if (run->flight[i].process == process && run->flight[i].begin_ns < begin)
			begin = run->flight[i].begin_ns;
	return begin;
}

int tfh_run_look_at_flight(struct tfh_run *run)
{
	int rc = 0;

	for (uint32_t p = 0; p < run->n_proc && !rc; p++) {
		const struct tfh_model_proc *proc = &run->proc[p];
		int64_t begin = oldest(run, p);
		for (uint32_t i = 0; i < proc->n_chunk && !rc; i++)
			if (tfh_run_ns(run, proc->chunk[i].file, proc->chunk[i].t_last) >= begin)
				rc = take_chunk(run, &proc->chunk[i]);
	}
	return rc;
}
