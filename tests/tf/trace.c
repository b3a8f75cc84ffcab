/*
 * Prints the records of trace files as JSON lines, one object per record, for the tests of this
 * folder.
 *
 * usage: trace FILE...
 *
 * {"pid","thread","fn","kind","flags","depth","stream","ctx","begin","end","w":[..]} with times in
 * ns of CLOCK_MONOTONIC; a NAME record has "name" (kind of name), "id", "handle", "extra" and
 * "text".
 */
#include <stdio.h>
#include <string.h>

#include "format/tft_read.h"

static struct {
	char text[1 << 16];
	size_t length, wanted;
	struct tfh_rec name;
	uint32_t thread;
} pending;

static void print_text(const char *text, size_t length)
{
	putchar('"');
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c == '"' || c == '\\' || c < 32 || c > 126)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

static void print_name(const struct tft_reader *r)
{
	printf("{\"pid\":%u,\"thread\":%u,\"kind\":8,\"name\":%u,\"id\":%u,\"handle\":%llu,"
	       "\"extra\":%llu,\"text\":",
	       tft_head(r)->pid, pending.thread, pending.name.fn, pending.name.stream,
	       (unsigned long long)pending.name.w[0], (unsigned long long)pending.name.w[1]);
	print_text(pending.text, pending.length);
	puts("}");
}

static void add_text(const struct tft_reader *r, const struct tfh_rec *rec)
{
	size_t n = rec->result < TFT_EXT_BYTES ? rec->result : TFT_EXT_BYTES;

	if (!pending.wanted || pending.length + n > sizeof(pending.text))
		return;
	memcpy(pending.text + pending.length, (const char *)rec + 28, n);
	pending.length += n;
	if (pending.length >= pending.wanted) {
		pending.wanted = 0;
		print_name(r);
	}
}

static void print_record(const struct tft_reader *r, uint32_t thread, const struct tfh_rec *rec)
{
	const struct tft_head *head = tft_head(r);

	if (rec->kind == TFT_EXT) {
		add_text(r, rec);
		return;
	}
	if (rec->kind == TFT_NAME) {
		pending.name = *rec;
		pending.thread = thread;
		pending.length = 0;
		pending.wanted = rec->w[2];
		if (!pending.wanted)
			print_name(r);
		return;
	}
	printf("{\"pid\":%u,\"thread\":%u,\"fn\":", head->pid, thread);
	print_text(rec->fn < head->fn_count ? head->fn[rec->fn].name : "?",
		   strlen(rec->fn < head->fn_count ? head->fn[rec->fn].name : "?"));
	printf(",\"kind\":%u,\"flags\":%u,\"depth\":%u,\"stream\":%u,\"ctx\":%u,\"begin\":%llu,"
	       "\"end\":%llu,"
	       "\"w\":[%llu,%llu,%llu]}\n",
	       rec->kind, rec->flags, rec->depth, rec->stream, rec->ctx,
	       (unsigned long long)tft_monotonic_ns(r, rec->t_begin),
	       (unsigned long long)tft_monotonic_ns(r, rec->t_end), (unsigned long long)rec->w[0],
	       (unsigned long long)rec->w[1], (unsigned long long)rec->w[2]);
}

static int print_file(const char *path)
{
	struct tfh_err err = {0};
	struct tft_reader *r;
	struct tft_events *events;

	if (tft_open(path, &r, &err)) {
		fprintf(stderr, "%s: %s\n", path, err.text);
		return 1;
	}
	for (uint32_t i = 0; i < tft_chunk_count(r); i++) {
		if (tft_chunk(r, i)->type != TFT_EVNT)
			continue;
		if (tft_events_open(r, i, &events, &err)) {
			fprintf(stderr, "%s: %s\n", path, err.text);
			return 1;
		}
		for (uint32_t k = 0; k < tft_run_count(events); k++) {
			struct tft_cursor cursor;
			struct tfh_rec rec;

			tft_cursor_init(&cursor, events, k);
			while (tft_next(&cursor, &rec))
				print_record(r, tft_run(events, k)->thread, &rec);
		}
		tft_events_close(events);
	}
	tft_close(r);
	return 0;
}

int main(int argc, char **argv)
{
	int status = argc < 2 ? 2 : 0;

	for (int i = 1; i < argc; i++)
		status |= print_file(argv[i]);
	return status;
}
