/* The public reading API (tfhook/tft.h), on top of the internal reader. */
#include "tfhook/tft.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/tft_read.h"

struct tft_file {
	struct tft_reader *reader;
	struct tft_events *events; /* events of the current chunk */
	struct tft_cursor cursor;
	uint32_t chunk; /* index of the next chunk to open */
	uint32_t run;	/* index of the next run to start */
	struct tft_run current;
};

struct tft_file *tft_file_open(const char *path, char *error, size_t size)
{
	struct tft_file *f = calloc(1, sizeof(*f));
	struct tfh_err err = {0};

	if (f && tft_open(path, &f->reader, &err) == 0)
		return f;
	if (error && size)
		snprintf(error, size, "%s", f ? err.text : "not enough memory");
	free(f);
	return NULL;
}

void tft_file_close(struct tft_file *f)
{
	if (!f)
		return;
	tft_events_close(f->events);
	tft_close(f->reader);
	free(f);
}

void tft_file_rewind(struct tft_file *f)
{
	tft_events_close(f->events);
	f->events = NULL;
	f->chunk = f->run = 0;
	memset(&f->cursor, 0, sizeof(f->cursor));
}

/* Opens the next readable event chunk. Returns 1, 0 if none is left, or -errno. */
static int next_chunk(struct tft_file *f)
{
	tft_events_close(f->events);
	f->events = NULL;
	while (f->chunk < tft_chunk_count(f->reader)) {
		uint32_t i = f->chunk++;
		if (tft_chunk(f->reader, i)->type != TFT_EVNT)
			continue;
		int err = tft_events_open(f->reader, i, &f->events, NULL);
		if (err == 0) {
			f->run = 0;
			return 1;
		}
		if (err != -EBADMSG)
			return err;
	}
	return 0;
}

static void convert(const struct tft_file *f, const struct tfh_rec *r, struct tft_record *out)
{
	*out = (struct tft_record){.t_begin = r->t_begin,
				   .t_end = r->t_end,
				   .word = {r->w[0], r->w[1], r->w[2]},
				   .number = f->cursor.number - 1,
				   .thread = f->current.thread,
				   .tid = f->current.tid,
				   .stream = r->stream,
				   .ctx = r->ctx,
				   .stack = r->stack,
				   .fn = r->fn,
				   .result = r->result,
				   .kind = r->kind,
				   .flags = r->flags,
				   .depth = r->depth,
				   .flags2 = r->flags2};
}

int tft_file_next(struct tft_file *f, struct tft_record *record)
{
	struct tfh_rec r;

	for (;;) {
		if (f->events && tft_next(&f->cursor, &r)) {
			convert(f, &r, record);
			return 1;
		}
		if (!f->events || f->run == tft_run_count(f->events)) {
			int more = next_chunk(f);
			if (more <= 0)
				return more;
		}
		f->current = *tft_run(f->events, f->run);
		tft_cursor_init(&f->cursor, f->events, f->run++);
	}
}

const char *tft_file_function(const struct tft_file *f, uint16_t fn)
{
	const struct tft_head *head = tft_head(f->reader);

	return fn < head->fn_count ? head->fn[fn].name : "";
}

uint64_t tft_file_monotonic_ns(const struct tft_file *f, uint64_t ticks)
{
	return tft_monotonic_ns(f->reader, ticks);
}

uint64_t tft_file_realtime_ns(const struct tft_file *f, uint64_t ticks)
{
	return tft_realtime_ns(f->reader, ticks);
}

const char *tft_file_text(const struct tft_file *f, const char *key)
{
	const struct tft_head *h = tft_head(f->reader);
	const struct {
		const char *key, *value;
	} table[] = {{"host", h->host},	      {"exe", h->exe},
		     {"command", h->command}, {"boot_id", h->boot_id},
		     {"job", h->job},	      {"tfhook_version", h->tfhook_version}};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (strcmp(table[i].key, key) == 0)
			return table[i].value;
	return "";
}

static uint64_t count_events(const struct tft_reader *r)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < tft_chunk_count(r); i++)
		if (tft_chunk(r, i)->type == TFT_EVNT)
			n += tft_chunk(r, i)->events;
	return n;
}

static uint64_t most_dropped(const struct tft_reader *r)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < tft_chunk_count(r); i++)
		if (tft_chunk(r, i)->dropped > most)
			most = tft_chunk(r, i)->dropped;
	return most;
}

int64_t tft_file_number(const struct tft_file *f, const char *key)
{
	const struct tft_head *h = tft_head(f->reader);
	const struct {
		const char *key;
		int64_t value;
	} table[] = {{"pid", h->pid},
		     {"ppid", h->ppid},
		     {"rank", h->rank},
		     {"world", h->world},
		     {"local_rank", h->local_rank},
		     {"segment", h->segment},
		     {"start_realtime_ns", (int64_t)h->start_realtime_ns},
		     {"events", (int64_t)count_events(f->reader)},
		     {"dropped", (int64_t)most_dropped(f->reader)},
		     {"bad_chunks", (int64_t)tft_bad_chunks(f->reader)},
		     {"tail_bytes", (int64_t)tft_tail_bytes(f->reader)},
		     {"clean_end", tft_clean_end(f->reader)}};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (strcmp(table[i].key, key) == 0)
			return table[i].value;
	return -1;
}
