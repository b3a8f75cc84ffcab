/*
 * tft_dump FILE		every chunk and record of a trace file, as tft_reader.py prints them
 * tft_dump --make FILE		a trace file with records of every sort
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "format/table.h"
#include "format/tft_read.h"
#include "format/tft_write.h"

static uint64_t seed = 0x2545f4914f6cdd1dull;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void fill(struct tfh_rec *r, uint32_t seq, uint64_t *t, uint32_t sort)
{
	memset(r, 0, sizeof(*r));
	r->t_begin = *t + rnd() % 9000;
	r->t_end = r->t_begin + rnd() % 4000;
	if (rnd() % 500 == 0)
		r->t_end += rnd() >> 20;
	if (rnd() % 9 == 0)
		r->t_begin -= rnd() % 30000;
	*t = r->t_end;
	r->fn = (uint16_t)(rnd() % 20);
	r->kind = (uint8_t)(1 + rnd() % 10);
	r->seq = seq;
	r->stream = (uint32_t)(rnd() % 4);
	r->ctx = 1;
	r->w[0] = rnd() % 30;
	r->w[1] = rnd() % 7 ? 99 : rnd();
	r->w[2] = rnd() % 3 ? r->t_end - r->t_begin : 8;
	if (sort == 1)
		for (uint32_t i = 0; i < 8; i++)
			((uint64_t *)r)[i] = rnd() ^ rnd() << 32;
	if (sort == 2)
		r->w[1] = rnd();
}

static int make_tables(struct tft_writer *w)
{
	static struct tft_gpu_row gpu[500];
	static struct tft_drvr_row drvr[500];
	static const char heap[] = "\0spin\0gemm";
	static const struct tft_table_pair pair[] = {{7, 1000}, {8, 2000}};
	static const struct tft_gpu_span span[] = {{7, 9, 1}};
	const struct tft_table_extra extra = {heap, sizeof(heap), pair, 2, span, 1}, none = {0};
	static unsigned char out[1 << 20];
	uint64_t t = 1ull << 60;

	for (uint32_t i = 0; i < 500; i++) {
		t += rnd() % 100000;
		gpu[i] = (struct tft_gpu_row){.start = t,
					      .end = t + rnd() % 5000,
					      .bytes = rnd() >> rnd() % 64,
					      .node = rnd() % 3 ? 0 : rnd(),
					      .correlation = i,
					      .stream = (uint32_t)rnd(),
					      .kind = (uint8_t)(rnd() % 6),
					      .name = i % 3 ? 1 : 6};
		drvr[i] = (struct tft_drvr_row){
			.start = rnd(), .end = t, .correlation = (uint32_t)rnd(), .tid = 9};
	}
	if (tft_write_chunk_at(w, TFT_GPUS, out,
			       (uint32_t)tft_table_pack(&tft_gpus, gpu, 500, &extra, out), 5, 6))
		return -1;
	return tft_write_chunk(w, TFT_DRVR, out,
			       (uint32_t)tft_table_pack(&tft_drvr, drvr, 500, &none, out));
}

static int make_stacks(struct tft_writer *w)
{
	static struct tft_btrc_row frame[500];
	static const struct tft_mods_row module[] = {
		{.start = 4096, .end = 1ull << 46, .offset = 512, .path = 1, .build_id = 8},
		{.start = 9,
		 .end = 10,
		 .loaded = 1ull << 50,
		 .unloaded = (1ull << 50) + 1,
		 .path = 1}};
	static const struct tft_pyco_row code[] = {{1, 1, 8, 40}, {2, 1, 0, 1}};
	static const struct tft_pyfr_row place[] = {{1, 0, 2, 90}, {2, 1, 1, 41}, {9, 1, 0, 0}};
	static const char heap[] = "\0/lib/a\0c0ffee";
	const struct tft_table_extra texts = {.heap = heap, .heap_bytes = sizeof(heap)}, none = {0};
	static unsigned char out[1 << 16];

	for (uint32_t i = 0; i < 500; i++)
		frame[i] = (struct tft_btrc_row){.address = 0x7f0000000000 + rnd() % 9000,
						 .stack = 1 + i / 30,
						 .place = i % 30 ? 0 : 1 + i / 60,
						 .index = (uint16_t)(i % 30)};
	if (tft_write_chunk(w, TFT_PYCO, out,
			    (uint32_t)tft_table_pack(&tft_pyco, code, 2, &texts, out)) ||
	    tft_write_chunk(w, TFT_PYFR, out,
			    (uint32_t)tft_table_pack(&tft_pyfr, place, 3, &none, out)))
		return -1;
	if (tft_write_chunk_at(w, TFT_BTRC, out,
			       (uint32_t)tft_table_pack(&tft_btrc, frame, 500, &none, out), 9, 9))
		return -1;
	return tft_write_chunk(w, TFT_MODS, out,
			       (uint32_t)tft_table_pack(&tft_mods, module, 2, &texts, out));
}

static int make(const char *path)
{
	static struct tfh_rec records[20000];
	static const uint32_t sizes[] = {1, 300, 5000, 20000, 20000, 700};
	struct tft_head head = {.rank = -1,
				.host = "h",
				.fn = tfh_fn_table,
				.fn_count = TFH_FN_COUNT,
				.tick_hz = 1000};
	struct tft_clock_triple clock = {1, 2, 3};
	struct tft_loss loss = {1, 1, 5, 100, 200};
	struct tft_writer *w;
	uint64_t t = 1ull << 40;

	if (tft_writer_create(path, NULL, &head, &w) < 0)
		return 1;
	for (uint32_t c = 0; c < sizeof(sizes) / sizeof(*sizes); c++) {
		uint64_t first = 0xfffffff0ull + c * 100000ull;
		uint32_t half = sizes[c] / 2;
		for (uint32_t i = 0; i < sizes[c]; i++)
			fill(&records[i], (uint32_t)(first + (i < half ? i : i - half)), &t,
			     rnd() % 50 ? c % 3 * 2 : 1);
		struct tft_batch b[2] = {{records, half, 5, 50, first},
					 {records + half, sizes[c] - half, 6, 60, first}};
		if (tft_write_events(w, b, 2, c) < 0 || tft_write_clocks(w, &clock, 1) < 0)
			return 1;
	}
	return make_tables(w) < 0 || make_stacks(w) < 0 || tft_write_loss(w, &loss, 1, 9) < 0 ||
	       tft_write_chunk(w, TFT_NOTE, "a=b\n", 4) < 0 || tft_writer_finish(w, true) < 0;
}

static void dump_events(struct tft_reader *r, uint32_t i)
{
	struct tft_events *ev;
	struct tft_cursor c;
	struct tfh_rec rec;

	if (tft_events_open(r, i, &ev, NULL) < 0)
		exit(1);
	for (uint32_t k = 0; k < tft_run_count(ev); k++) {
		const struct tft_run *run = tft_run(ev, k);
		uint64_t number = run->first;
		for (tft_cursor_init(&c, ev, k); tft_next(&c, &rec); number++) {
			printf("%u %u %llu ", run->thread, run->tid, (unsigned long long)number);
			for (size_t b = 0; b < sizeof(rec); b++)
				printf("%02x", ((const unsigned char *)&rec)[b]);
			putchar('\n');
		}
	}
	tft_events_close(ev);
}

static const struct tft_table *table_of(uint32_t type)
{
	return type == TFT_GPUS	  ? &tft_gpus
	       : type == TFT_DRVR ? &tft_drvr
	       : type == TFT_BTRC ? &tft_btrc
	       : type == TFT_MODS ? &tft_mods
	       : type == TFT_PYCO ? &tft_pyco
	       : type == TFT_PYFR ? &tft_pyfr
				  : NULL;
}

/* A line a row: the columns in their order, texts in place of their offsets. */
static void dump_table(const struct tft_table *t, const void *data, size_t len)
{
	struct tft_table_view v;
	unsigned char *rows;

	if (tft_table_open(&v, data, len) < 0)
		exit(1);
	rows = calloc(v.rows + 1, t->row_bytes);
	tft_table_rows(&v, t, rows);
	for (uint32_t i = 0; i < v.rows; i++) {
		for (uint32_t c = 0; c < t->columns; c++) {
			uint64_t value = 0;
			memcpy(&value, rows + i * t->row_bytes + t->column[c].offset,
			       t->column[c].size);
			if ((t == &tft_gpus && t->column[c].id == 8) ||
			    (t == &tft_pyco && (t->column[c].id == 2 || t->column[c].id == 3)) ||
			    (t == &tft_mods && (t->column[c].id == 4 || t->column[c].id == 5)))
				printf("%s ", tft_table_text(&v, (uint32_t)value));
			else
				printf("%llu ", (unsigned long long)value);
		}
		putchar('\n');
	}
	for (uint32_t i = 0; i < v.pairs; i++)
		printf("pair %llu %llu\n", (unsigned long long)tft_table_pair_at(&v, i).ticks,
		       (unsigned long long)tft_table_pair_at(&v, i).ns);
	for (uint32_t i = 0; i < v.spans; i++)
		printf("span %llu %llu %llu\n", (unsigned long long)tft_table_span_at(&v, i).first,
		       (unsigned long long)tft_table_span_at(&v, i).last,
		       (unsigned long long)tft_table_span_at(&v, i).flags);
	free(rows);
}

int main(int argc, char **argv)
{
	struct tft_reader *r;
	struct tfh_err err;

	if (argc == 3)
		return make(argv[2]);
	if (tft_open(argv[1], &r, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (uint32_t i = 0; i < tft_chunk_count(r); i++) {
		const struct tft_chunk_info *c = tft_chunk(r, i);
		const void *data;
		size_t len;
		if (tft_chunk_payload(r, i, &data, &len, &err) < 0)
			return 1;
		printf("%.4s %u %llu %llu %llu %08x\n", (const char *)&c->type, c->events,
		       (unsigned long long)c->dropped, (unsigned long long)c->t_first,
		       (unsigned long long)c->t_last,
		       c->type == TFT_EVNT ? 0 : tfh_crc32c(0, data, len));
		if (c->type == TFT_EVNT)
			dump_events(r, i);
		else if (table_of(c->type))
			dump_table(table_of(c->type), data, len);
	}
	tft_close(r);
	return 0;
}
