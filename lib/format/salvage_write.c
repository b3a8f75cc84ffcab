/* The segment with the missing records, and the losses that no segment reports. */
#include "format/salvage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/tft_write.h"

/* Number of losses already written. If the process was killed between writing a LOSS chunk and
 * noting it, the chunk itself is the evidence. */
static uint64_t losses_seen(const struct tft_salvage *s, uint64_t seen, uint64_t writing,
			    uint64_t mark)
{
	return writing > seen && mark <= s->last_loss ? writing : seen;
}

static uint64_t ring_losses(const struct tft_salvage *s, const struct tft_ring *ring)
{
	uint64_t seen = losses_seen(s, ring->drop_seen, ring->drop_writing, ring->drop_mark);

	return ring->dropped > seen ? ring->dropped - seen : 0;
}

static uint64_t beyond_losses(const struct tft_salvage *s)
{
	const struct tft_journal *j = &s->copy.header;
	uint64_t seen = losses_seen(s, j->beyond_seen, j->beyond_writing, j->beyond_mark);

	return j->beyond > seen ? j->beyond - seen : 0;
}

/* All records may have been written even though the process was killed before it wrote its
 * losses. */
bool tft_salvage_any_losses(const struct tft_salvage *s)
{
	bool any = beyond_losses(s) > 0;

	for (uint32_t i = 0; i < s->copy.n_rings && !any; i++)
		any = ring_losses(s, &s->copy.ring[i]->ring) > 0;
	return any && !s->done_before;
}

static int write_loss(struct tft_salvage *s, struct tft_writer *w, struct tft_loss loss,
		      uint64_t *dropped)
{
	*dropped += loss.count;
	return s->done_before ? 0 : tft_write_loss(w, &loss, 1, *dropped);
}

static int write_losses(struct tft_salvage *s, struct tft_writer *w, uint64_t *dropped)
{
	const struct tft_journal *j = &s->copy.header;
	uint64_t n = beyond_losses(s);
	int code = 0;

	if (n)
		code = write_loss(s, w,
				  (struct tft_loss){.cause = TFT_LOSS_THREAD,
						    .count = n,
						    .t_first = j->beyond_first,
						    .t_last = j->beyond_last},
				  dropped);
	for (uint32_t i = 0; i < s->copy.n_rings && code == 0; i++) {
		const struct tft_ring *ring = &s->copy.ring[i]->ring;
		n = ring_losses(s, ring);
		if (n)
			code = write_loss(s, w,
					  (struct tft_loss){.thread = ring->thread,
							    .cause = TFT_LOSS_RING,
							    .count = n,
							    .t_first = ring->drop_first,
							    .t_last = ring->drop_last
									      ? ring->drop_last
									      : ring->drop_first},
					  dropped);
	}
	return code;
}

static int write_missing(struct tft_salvage *s, struct tft_writer *w, uint64_t dropped)
{
	struct tft_batch *batch = malloc((s->missing.n + 1) * sizeof(*batch));
	uint32_t n = 0, records = 0;
	int code = batch ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < s->missing.n && code == 0;) {
		struct tft_piece *p = &s->missing.v[i];
		uint32_t take =
			p->count < TFT_MAX_EVENTS - records ? p->count : TFT_MAX_EVENTS - records;
		batch[n++] = (struct tft_batch){p->records, take, p->thread, p->tid, p->first};
		records += take;
		p->records += take;
		p->first += take;
		p->count -= take;
		if (p->count == 0)
			i++;
		if (records == TFT_MAX_EVENTS || i == s->missing.n) {
			code = tft_write_events(w, batch, n, dropped);
			s->result->records += records;
			n = records = 0;
		}
	}
	free(batch);
	return code;
}

static int write_parts(struct tft_salvage *s, struct tft_writer *w, const char *journal)
{
	const struct tft_journal *j = &s->copy.header;
	struct tft_clock_triple clocks[3] = {j->start, j->clock[0], j->clock[1]};
	uint32_t n_clocks = j->clock_n < 2 ? 1 + j->clock_n : 3;
	uint64_t dropped = j->dropped;
	char note[8192];

	int code = tft_write_clocks(w, clocks, n_clocks);
	int len = snprintf(note, sizeof(note),
			   TFT_NOTE_SALVAGED "%s\nsalvaged.open=%u\nsalvaged.torn=%llu\n", journal,
			   s->result->open, (unsigned long long)s->result->torn);
	if (code == 0 && len > 0 && (size_t)len < sizeof(note))
		code = tft_write_chunk(w, TFT_NOTE, note, (uint32_t)len);
	if (code == 0)
		code = write_losses(s, w, &dropped);
	return code == 0 ? write_missing(s, w, dropped) : code;
}

int tft_salvage_write(struct tft_salvage *s, const char *journal, struct tfh_err *err)
{
	struct tfh_access access = tfh_access_like(tft_view_stat(s->view));
	struct tft_salvaged *result = s->result;
	struct tft_writer *w;
	int code;

	do {
		s->head.segment = s->next_segment;
		snprintf(result->path, sizeof(result->path), "%s/%s.%u.tft", s->out_dir, s->prefix,
			 s->next_segment++);
		code = tft_writer_create(result->path, &access, &s->head, &w);
	} while (code == -EEXIST && s->next_segment < UINT32_MAX);
	if (code < 0)
		return tfh_err_set(err, code, "%s: cannot be created: %s", result->path,
				   strerror(-code));
	code = write_parts(s, w, journal);
	int end = tft_writer_finish(w, false);
	if (code == 0)
		code = end;
	if (code < 0) {
		unlink(result->path);
		return tfh_err_set(err, code, "%s: writing failed: %s; the journal %s is kept",
				   result->path, strerror(-code), journal);
	}
	return 0;
}
