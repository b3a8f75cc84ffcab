/*
 * Spans of a run whose records were discarded to keep the recording within TFHOOK_MAX_SIZE: the
 * oldest segments but the first. The sketches of their chunks remain.
 */
#include <errno.h>
#include <stdlib.h>

#include "model/open/opening.h"

static int by_first(const void *a, const void *b)
{
	const struct tfh_chunk *x = a, *y = b;

	return x->first_ns < y->first_ns ? -1 : x->first_ns > y->first_ns;
}

static const struct tft_chunk_info *info_of(const struct tfh_run *run, const struct tfh_chunk *c)
{
	return tft_chunk(run->file[c->file].reader, c->chunk);
}

/* Consecutive discarded chunks, without other records between them, form one span. */
static int spans_of(struct tfh_run *run, uint32_t process)
{
	const struct tfh_model_proc *p = &run->proc[process];
	struct tfh_discarded_span *s = NULL;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < p->n_digest; i++) {
		const struct tfh_chunk *c = &p->digest[i];
		uint32_t before = kept;
		while (kept < p->n_chunk && p->chunk[kept].first_ns < c->first_ns)
			kept++;
		if (!s || kept != before) {
			if (tfh_room_for((void **)&run->discarded, &run->cap_discarded,
					 run->n_discarded, sizeof(*run->discarded)))
				return -ENOMEM;
			s = &run->discarded[run->n_discarded++];
			*s = (struct tfh_discarded_span){
				.process = process, .t0 = c->first_ns, .t1 = c->first_ns};
		}
		int64_t last = tfh_run_ns(run, c->file, c->t_last);
		s->t1 = last > s->t1 ? last : s->t1;
		s->events += info_of(run, c)->events;
	}
	return 0;
}

int tfh_run_find_discarded_spans(struct tfh_run *run)
{
	int rc = 0;

	for (uint32_t i = 0; i < run->n_proc && !rc; i++) {
		struct tfh_model_proc *p = &run->proc[i];
		for (uint32_t k = 0; k < p->n_digest; k++)
			p->digest[k].first_ns =
				tfh_run_ns(run, p->digest[k].file, p->digest[k].t_first);
		if (p->n_digest)
			qsort(p->digest, p->n_digest, sizeof(*p->digest), by_first);
		rc = spans_of(run, i);
	}
	return rc;
}

uint32_t tfh_run_discarded_spans(const struct tfh_run *run, const struct tfh_discarded_span **out)
{
	*out = run->discarded;
	return run->n_discarded;
}

static void fill(struct tfh_digest *d, const struct tfh_run *run, const struct tfh_chunk *c,
		 const struct tft_sketch *s)
{
	const struct tfh_file *f = &run->file[c->file];
	uint32_t fns = tft_head(f->reader)->fn_count;
	int64_t t0 = c->first_ns;

	d->t0 = t0;
	d->t1 = tfh_run_ns(run, c->file, c->t_last);
	d->launches = s->launches;
	d->n_fn = d->n_clock = 0;
	for (uint32_t i = 0; i < s->n_fn && i < TFT_SKETCH_FNS; i++)
		if (s->fn[i].fn < fns)
			d->fn[d->n_fn++] = (struct tfh_digest_fn){
				f->fn[s->fn[i].fn], s->fn[i].count,
				tfh_run_ns(run, c->file, c->t_first + s->fn[i].ticks) - t0};
	for (uint32_t i = 0; i < s->n_clock && i < TFT_SKETCH_CLOCKS; i++)
		if (s->clock[i].fn < fns)
			d->clock[d->n_clock++] = (struct tfh_digest_clock){
				f->fn[s->clock[i].fn], s->clock[i].key, s->clock[i].count,
				tfh_run_ns(run, c->file, s->clock[i].t_first),
				tfh_run_ns(run, c->file, s->clock[i].t_last)};
	d->knows_anchors = s->knows_anchors;
	for (uint32_t i = 0; i < TFT_SKETCH_ANCHORS; i++)
		d->anchor[i] = (struct tfh_sketched){
			s->anchor[i].count, s->anchor[i].bytes,
			tfh_run_ns(run, c->file, c->t_first + s->anchor[i].ticks) - t0};
}

int tfh_run_digests(struct tfh_run *run, uint32_t process, tfh_digest_cb cb, void *arg)
{
	struct tfh_digest *d = malloc(sizeof(*d));
	int rc = d ? 0 : -ENOMEM;

	for (uint32_t i = 0; process < run->n_proc && i < run->proc[process].n_digest && !rc; i++) {
		const struct tfh_chunk *c = &run->proc[process].digest[i];
		const struct tft_sketch *s;
		struct tfh_err err;
		if (tft_chunk_sketch(run->file[c->file].reader, c->chunk, &s, &err))
			continue; /* damaged: the reader has counted it */
		fill(d, run, c, s);
		rc = cb(arg, d);
	}
	free(d);
	return rc;
}
