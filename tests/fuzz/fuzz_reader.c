/*
 * Fuzzed input: a trace file. Whatever its bytes, every layer of the reader, `verify` and the
 * report must neither crash nor hang nor take memory beyond the bounds. The mutator changes what
 * lies behind the checksums.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "format/journal_view.h"
#include "format/table.h"
#include "format/tft_read.h"
#include "fuzz.h"
#include "import/import.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	return tfh_fuzz_mutate_tft(data, size, max, seed);
}

/* Whatever the type says: every payload is tried as a table. */
static void read_table(const void *data, size_t len)
{
	const struct tft_table *const tables[] = {&tft_gpus, &tft_drvr, &tft_btrc,
						  &tft_mods, &tft_pyco, &tft_pyfr};
	struct tft_table_view v;

	for (int i = 0; i < 6 && !tft_table_open(&v, data, len); i++) {
		void *rows = malloc((size_t)v.rows * tables[i]->row_bytes + 1);
		tft_table_rows(&v, tables[i], rows);
		tft_table_text(&v, (uint32_t)len);
		tft_table_pair_at(&v, v.pairs);
		free(rows);
		uint64_t *values = malloc(v.rows * sizeof(*values) + 1), same;
		for (uint32_t c = 0; c < TFT_SEC_SPANS; c++)
			tft_table_values(&v, (uint8_t)c, values, &same);
		free(values);
	}
}

static void read_events(struct tft_reader *r, uint32_t i)
{
	struct tft_events *ev;
	struct tft_cursor c;
	struct tfh_rec rec;

	if (tft_events_open(r, i, &ev, NULL) < 0)
		return;
	for (uint32_t k = 0; k < tft_run_count(ev); k++)
		for (tft_cursor_init(&c, ev, k); tft_next(&c, &rec);)
			;
	tft_entropy_bytes(ev);
	tft_events_close(ev);
}

/* What the command's verify and info ask. */
static void read_chunks(const char *path)
{
	const struct tft_sketch *sketch;
	const struct tft_run *runs;
	struct tft_reader *r;
	const void *data;
	struct tfh_err err = {0};
	uint32_t n;
	size_t len;

	if (tft_open(path, &r, &err) < 0) {
		tfh_fuzz_refused(&err);
		return;
	}
	for (uint32_t i = 0; i < tft_chunk_count(r); i++) {
		tft_chunk_sketch(r, i, &sketch, &err);
		tft_chunk_runs(r, i, &runs, &n, &err);
		if (!tft_chunk_payload(r, i, &data, &len, &err))
			read_table(data, len);
		if (tft_chunk(r, i)->type == TFT_EVNT)
			read_events(r, i);
	}
	tft_verify(r, &err);
	tft_realtime_ns(r, 1234567);
	tft_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *place = tfh_fuzz_place();
	double begin = tfh_fuzz_clock();
	struct tfh_err err = {0};
	struct tfh_run *run;
	char path[128];
	const char *paths = path;

	if (!place)
		return 0;
	snprintf(path, sizeof(path), "%s/p.host.1.0.tft", place);
	tfh_fuzz_write("p.host.1.0.tft", data, size);
	read_chunks(path);
	if (tfh_import_open(&paths, 1, &run, &err))
		tfh_fuzz_refused(&err);
	else
		tfh_fuzz_report(run, size);
	tfh_fuzz_bound(begin, size);
	return 0;
}
