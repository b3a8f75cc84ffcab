/*
 * Prints every record of trace files as JSON lines, in each file's own order: for scripts that
 * compare a trace with what really happened. Arguments: .tft files. Times are nanoseconds of
 * CLOCK_MONOTONIC.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/tft_read.h"

/* The record before and the text that its EXT records carry. */
static struct tfh_rec pending;
static uint32_t pending_tid;
static char text[16384];
static size_t text_length;
static int have;

static void put_text(void)
{
	fputs(",\"ext\":\"", stdout);
	if (pending.kind == TFT_NAME)
		for (size_t i = 0; i < text_length; i++)
			putchar(text[i] < ' ' || text[i] == '"' || text[i] == '\\' ? '?' : text[i]);
	else
		for (size_t i = 0; i < text_length; i++)
			printf("%02x", (unsigned char)text[i]);
	putchar('"');
}

static void flush(const struct tft_reader *r)
{
	const struct tft_head *head = tft_head(r);
	const char *fn = "";

	if (!have)
		return;
	if (pending.kind != TFT_NAME && pending.fn < head->fn_count)
		fn = head->fn[pending.fn].name;
	printf("{\"kind\":%d,\"fn\":\"%s\",\"number\":%d,\"tid\":%" PRIu32 ",\"t0\":%" PRIu64
	       ",\"t1\":%" PRIu64 ",\"result\":%d,\"flags\":%d,\"depth\":%d,\"seq\":%" PRIu32
	       ",\"stream\":%" PRIu32 ",\"ctx\":%" PRIu32 ",\"w\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64
	       "]",
	       pending.kind, fn, pending.fn, pending_tid, tft_monotonic_ns(r, pending.t_begin),
	       tft_monotonic_ns(r, pending.t_end), pending.result, pending.flags, pending.depth,
	       pending.seq, pending.stream, pending.ctx, pending.w[0], pending.w[1], pending.w[2]);
	if (text_length)
		put_text();
	puts("}");
	have = 0;
	text_length = 0;
}

static void take(const struct tft_reader *r, const struct tfh_rec *rec, uint32_t tid)
{
	if (rec->kind == TFT_EXT) {
		size_t left = rec->result, n = left < TFT_EXT_BYTES ? left : TFT_EXT_BYTES;
		if (have && text_length + n <= sizeof(text)) {
			memcpy(text + text_length,
			       (const char *)rec + offsetof(struct tfh_rec, stream), n);
			text_length += n;
		}
		return;
	}
	flush(r);
	pending = *rec;
	pending_tid = tid;
	have = 1;
}

static void show_note(struct tft_reader *r, uint32_t chunk)
{
	const void *data;
	size_t length;

	if (!tft_chunk_payload(r, chunk, &data, &length, NULL)) {
		fwrite(data, 1, length, stdout);
		putchar('\n');
	}
}

static int show(const char *path, int notes)
{
	struct tft_reader *r;
	struct tfh_err err;

	if (tft_open(path, &r, &err)) {
		fprintf(stderr, "%s: %s\n", path, err.text);
		return 1;
	}
	for (uint32_t i = 0; i < tft_chunk_count(r); i++) {
		struct tft_events *events;
		if (notes && tft_chunk(r, i)->type == TFT_NOTE)
			show_note(r, i);
		if (notes || tft_chunk(r, i)->type != TFT_EVNT)
			continue;
		if (tft_events_open(r, i, &events, &err)) {
			fprintf(stderr, "%s: %s\n", path, err.text);
			return 1;
		}
		for (uint32_t run = 0; run < tft_run_count(events); run++) {
			struct tft_cursor cursor;
			struct tfh_rec rec;
			tft_cursor_init(&cursor, events, run);
			while (tft_next(&cursor, &rec))
				take(r, &rec, tft_run(events, run)->tid);
			flush(r);
		}
		tft_events_close(events);
	}
	tft_close(r);
	return 0;
}

int main(int argc, char **argv)
{
	int status = 0;

	int notes = argc > 1 && !strcmp(argv[1], "--notes");

	for (int i = 1 + notes; i < argc; i++)
		status |= show(argv[i], notes);
	return status;
}
