/*
 * Copies a trace file with terminal escapes in every text that a trace holds:
 *
 *	evil FROM TO TEXT
 *
 * host, program, command, versions and the function table in HEAD; names of streams, functions,
 * stages, iterators, ops, marks, ranges and threads; what notes say; the modules' paths. TEXT is
 * added to each (instead of a part of a path, so that lengths stay).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/tft_read.h"
#include "format/tft_write.h"

#define EXT_BYTES 36
#define MAX_RECORDS (2 * TFT_MAX_EVENTS)

static const char *evil;
static uint64_t next_number[1024]; /* by thread */

static void must(int code, const char *what)
{
	if (code) {
		fprintf(stderr, "evil: %s: %s\n", what, strerror(-code));
		exit(1);
	}
}

static const char *with(const char *text)
{
	char *out = malloc(strlen(text) + strlen(evil) + 1);

	return strcat(strcpy(out, text), evil);
}

static struct tft_writer *create(const char *path, const struct tft_head *from)
{
	struct tft_head head = *from;
	struct tfh_fn_info *fn = calloc(from->fn_count, sizeof(*fn));
	struct tft_writer *w;

	for (uint32_t i = 0; i < from->fn_count; i++) {
		fn[i] = from->fn[i];
		if (fn[i].name)
			fn[i].name = with(fn[i].name);
	}
	head.fn = fn;
	head.host = with(from->host);
	head.exe = with(from->exe);
	head.command = with(from->command);
	head.boot_id = with(from->boot_id);
	head.tfhook_version = with(from->tfhook_version);
	head.job = with(from->job);
	must(tft_writer_create(path, NULL, &head, &w), path);
	return w;
}

/* The name record and its text, with ours behind it; returns how many records that makes. */
static uint32_t rename_it(struct tfh_rec *out, const struct tfh_rec *name, const char *text,
			  size_t len)
{
	uint32_t n = 0;

	out[n] = *name;
	out[n].flags |= 1;
	out[n++].w[2] = len;
	for (size_t at = 0, part = 0; at < len; at += EXT_BYTES, part++) {
		struct tfh_rec *ext = &out[n++];
		size_t left = len - at;
		memset(ext, 0, sizeof(*ext));
		ext->t_begin = name->t_begin;
		ext->t_end = name->t_end;
		ext->kind = TFT_EXT;
		ext->fn = (uint16_t)part;
		ext->result = (uint16_t)left;
		memcpy((char *)ext + 28, text + at, left < EXT_BYTES ? left : EXT_BYTES);
	}
	return n;
}

static uint32_t copy_run(struct tft_events *ev, uint32_t run, struct tfh_rec *out)
{
	struct tft_cursor cursor;
	struct tfh_rec r;
	uint32_t n = 0;
	bool more;

	tft_cursor_init(&cursor, ev, run);
	for (more = tft_next(&cursor, &r); more;) {
		struct tfh_rec name = r;
		char text[8192];
		size_t len = 0;
		if (r.kind != TFT_NAME) {
			out[n++] = r;
			more = tft_next(&cursor, &r);
			continue;
		}
		while ((more = tft_next(&cursor, &r)) && r.kind == TFT_EXT)
			if (len + EXT_BYTES < sizeof(text) - 1024) {
				size_t left = r.result < EXT_BYTES ? r.result : EXT_BYTES;
				memcpy(text + len, (char *)&r + 28, left);
				len += left;
			}
		if (len > name.w[2])
			len = name.w[2];
		len += (size_t)snprintf(text + len, 1024, "%s", evil);
		n += rename_it(out + n, &name, text, len);
	}
	return n;
}

static void copy_events(struct tft_reader *r, uint32_t chunk, struct tft_writer *w)
{
	static struct tfh_rec records[MAX_RECORDS];
	struct tft_events *ev;
	struct tfh_err err;

	must(tft_events_open(r, chunk, &ev, &err), "events");
	for (uint32_t i = 0; i < tft_run_count(ev); i++) {
		const struct tft_run *run = tft_run(ev, i);
		uint64_t *number = &next_number[run->thread % 1024];
		uint32_t n = copy_run(ev, i, records);
		for (uint32_t at = 0; at < n; at += TFT_MAX_EVENTS) {
			uint32_t part = n - at < TFT_MAX_EVENTS ? n - at : TFT_MAX_EVENTS;
			const struct tft_batch batch = {.records = records + at,
							.count = part,
							.thread = run->thread,
							.tid = run->tid,
							.first = *number};
			for (uint32_t k = 0; k < part; k++)
				records[at + k].seq = (uint32_t)(*number + k);
			must(tft_write_events(w, &batch, 1, 0), "write");
			*number += part;
		}
	}
	tft_events_close(ev);
}

/* "key=value" lines with ours behind each value that is text. */
static void copy_note(struct tft_writer *w, const char *text, size_t len)
{
	char *out = malloc(len * (strlen(evil) + 1) + 1);
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (i && text[i] == '\n' && strncmp(text, "source=", 7) &&
		    !strchr("0123456789", text[i - 1]))
			for (const char *e = evil; *e; e++)
				if (*e != '\n')
					out[n++] = *e;
		out[n++] = text[i];
	}
	must(tft_write_chunk(w, TFT_NOTE, out, (uint32_t)n), "note");
	free(out);
}

static void copy_modules(struct tft_writer *w, const char *data, size_t len)
{
	char *out = malloc(len + 1);

	memcpy(out, data, len);
	for (size_t i = 0; i + 4 < len; i++)
		if (!memcmp(out + i, "/lib", 4))
			memcpy(out + i + 1, "\033[m", 3);
	must(tft_write_chunk(w, TFT_MODS, out, (uint32_t)len), "modules");
	free(out);
}

int main(int argc, char **argv)
{
	struct tft_reader *r;
	struct tft_writer *w;
	struct tfh_err err;

	if (argc != 4)
		return 2;
	evil = argv[3];
	must(tft_open(argv[1], &r, &err), argv[1]);
	w = create(argv[2], tft_head(r));
	for (uint32_t i = 0; i < tft_chunk_count(r); i++) {
		const struct tft_chunk_info c = *tft_chunk(r, i);
		const void *data;
		size_t len;
		if (c.type == TFT_EVNT) {
			copy_events(r, i, w);
			continue;
		}
		if (c.type == TFT_HEAD || c.type == TFT_INDX)
			continue;
		must(tft_chunk_payload(r, i, &data, &len, &err), "payload");
		if (c.type == TFT_NOTE)
			copy_note(w, data, len);
		else if (c.type == TFT_MODS)
			copy_modules(w, data, len);
		else
			must(tft_write_chunk_at(w, c.type, data, (uint32_t)len, c.t_first,
						c.t_last),
			     "chunk");
	}
	static const char why[] = "unhooked=cuEvil\033[2J,cuOther\nunhooked=cuEvil\342\200\256\n"
				  "gpu.library=/x/\033]0;PWNED\007\n";
	must(tft_write_chunk(w, TFT_NOTE, why, sizeof(why) - 1), "note");
	bool clean = tft_clean_end(r);
	tft_close(r);
	must(tft_writer_finish(w, clean), "finish");
	return 0;
}
