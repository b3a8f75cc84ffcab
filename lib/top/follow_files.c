/* Reads what is new in the segment files of a process. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "format/head.h"
#include "format/reader.h"
#include "format/tft_write.h"
#include "top/follow_part.h"

static void path_of(const struct tfh_follow *f, uint32_t segment, char *out, size_t size)
{
	snprintf(out, size, "%s/%s.%u.tft", f->dir, f->prefix, segment);
}

static bool exists(const struct tfh_follow *f, uint32_t segment, struct stat *st)
{
	char path[4600];

	path_of(f, segment, path, sizeof(path));
	return !stat(path, st);
}

/* Copies HEAD, which must outlive the reader. */
static int take_head(struct tfh_follow *f, const struct tft_head *head)
{
	size_t n = tft_head_pack(head, NULL, 0);
	void *text = malloc(n);
	int rc = text ? 0 : -ENOMEM;

	if (!rc) {
		tft_head_pack(head, text, n);
		rc = tft_head_unpack(&f->head, &f->arena, text, n);
	}
	free(text);
	f->has_head = !rc;
	f->live.fn = f->head.fn;
	f->live.n_fn = f->head.fn_count;
	return rc == -ENOMEM ? rc : 0;
}

static int take_run(struct tfh_follow *f, const struct tft_events *events, uint32_t run,
		    bool first_segment, struct tfh_rec *room)
{
	const struct tft_run *r = tft_run(events, run);
	struct tft_cursor c;
	uint32_t n = 0;

	if (r->thread == TFT_THREAD_SALVAGE)
		return 0;
	tft_cursor_init(&c, events, run);
	while (n < r->count && tft_next(&c, &room[n]))
		n++;
	if (n && room[0].flags & TFT_F_REPEAT) {
		if (first_segment) /* later ones repeat what is known */
			tfh_follow_repeated(f, room, n);
		return 0;
	}
	return tfh_follow_take(f, r->thread, r->tid, r->first, room, n);
}

static int take_events(struct tfh_follow *f, struct tft_reader *r, uint32_t chunk, bool first)
{
	struct tfh_rec *room = malloc(TFT_MAX_EVENTS * sizeof(*room));
	struct tft_events *events;
	struct tfh_err err = {0};
	int rc = room ? 0 : -ENOMEM;

	if (!rc && tft_events_open(r, chunk, &events, &err) < 0) {
		free(room);
		return err.code == -ENOMEM ? -ENOMEM : 0; /* damaged: skipped */
	}
	for (uint32_t i = 0; !rc && i < tft_run_count(events); i++)
		rc = take_run(f, events, i, first, room);
	if (room)
		tft_events_close(events);
	free(room);
	return rc;
}

static int take_chunk(struct tfh_follow *f, struct tft_reader *r, uint32_t chunk, bool first)
{
	const struct tft_chunk_info *c = tft_chunk(r, chunk);
	const void *data;
	size_t bytes;

	switch (c->type) {
	case TFT_EVNT:
		return take_events(f, r, chunk, first);
	case TFT_HEAD:
	case TFT_INDX:
	case TFT_DGST:
		return 0;
	}
	if (c->t_last && c->t_last < f->cut)
		return 0;
	if (tft_chunk_raw(r, chunk, true, &data, &bytes, NULL) < 0)
		return 0;
	/* Tables apply to all records, whenever they were written. */
	bool table = c->type == TFT_BTRC || c->type == TFT_MODS || c->type == TFT_PYCO ||
		     c->type == TFT_PYFR || c->type == TFT_NOTE;
	return tfh_follow_keep(f, table ? 0 : c->t_last, data, bytes);
}

/* A segment begins with the state before it. So it is enough to start with the last segment, or
 * with the one before it if the window does. */
static void find_begin(struct tfh_follow *f, double window)
{
	uint32_t newest = f->segment;
	struct stat st;

	while (exists(f, newest + 1, &st))
		newest++;
	f->segment = newest;
	if (newest && exists(f, newest - 1, &st) && difftime(time(NULL), st.st_mtime) < window)
		f->segment = newest - 1;
}

/* Reads a segment from the next chunk on. 1: it is finished, and another one follows. */
static int read_segment(struct tfh_follow *f, double window)
{
	bool first = !f->begun, has_next;
	struct tft_reader *r;
	struct stat st;
	char path[4600];
	int rc = 0;

	has_next = exists(f, f->segment + 1, &st);
	if (!exists(f, f->segment, &st))
		return has_next;
	if ((uint64_t)st.st_size == f->bytes)
		return has_next;
	path_of(f, f->segment, path, sizeof(path));
	if (tft_open(path, &r, NULL) < 0)
		return has_next; /* its first chunk may still be written */
	f->bytes = (uint64_t)st.st_size;
	if (!f->has_head)
		rc = take_head(f, tft_head(r));
	for (; !rc && f->chunk < tft_chunk_count(r); f->chunk++) {
		rc = take_chunk(f, r, f->chunk, first);
		if (!rc && first && f->records > TFH_FOLLOW_RECORDS)
			tfh_follow_forget(f, (uint64_t)(window * tfh_follow_hz(f)));
	}
	f->begun |= !rc;
	tft_close(r);
	return rc ? rc : has_next;
}

int tfh_follow_files(struct tfh_follow *f, double window)
{
	int rc;

	if (!f->begun && !f->chunk)
		find_begin(f, window);
	while ((rc = read_segment(f, window)) == 1) {
		f->segment++;
		f->chunk = 0;
		f->bytes = 0;
	}
	return rc;
}

int tfh_follow_head(struct tfh_follow *f, uint64_t *written)
{
	uint32_t newest = f->segment;
	struct tft_reader *r;
	struct stat st;
	char path[4600];

	*written = 0;
	while (exists(f, newest + 1, &st))
		newest++;
	path_of(f, newest, path, sizeof(path));
	if (tft_open(path, &r, NULL) < 0)
		return 0; /* its first chunk may still be written */
	int rc = take_head(f, tft_head(r));
	for (uint32_t i = 0; i < tft_chunk_count(r); i++)
		if (tft_chunk(r, i)->t_last > *written)
			*written = tft_chunk(r, i)->t_last;
	tft_close(r);
	return rc;
}
