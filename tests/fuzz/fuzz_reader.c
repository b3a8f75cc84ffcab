/*
 * Fuzzed input: a trace file. Whatever its bytes, opening, walking, verifying and decoding it must
 * neither crash nor hang nor take memory beyond the caps. Checksums of headers and payloads are
 * made right first where a chunk can be recognised, so that the fuzzer reaches what lies behind
 * them.
 *
 * Under libFuzzer (`make fuzz`); with -DTFH_FUZZ_MAIN a program that runs over the files given to
 * it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "base/crc32c.h"
#include "format/journal.h"
#include "format/table.h"
#include "format/tft_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Seals every chunk found by plain arithmetic; the first byte of the input says whether. */
static void seal(uint8_t *file, size_t size)
{
	struct tft_chunk_head h;
	size_t at = 0;

	while (size - at >= sizeof(h)) {
		memcpy(&h, file + at, sizeof(h));
		size_t header = h.zstd_length + 8ull;
		if (h.magic != TFT_MAGIC || header < sizeof(h) || header > size - at ||
		    h.packed_bytes > size - at - header)
			return;
		h.payload_crc = tfh_crc32c(0, file + at + header, h.packed_bytes);
		h.header_crc = 0;
		memcpy(file + at, &h, sizeof(h));
		h.header_crc = tfh_crc32c(0, file + at, header);
		memcpy(file + at, &h, sizeof(h));
		at += header + h.packed_bytes;
	}
}

/* Raw payloads in place of compressed ones: behind the header of an EVNT chunk whose packed bytes
 * are no zstd frame. */
static uint8_t *unpacked(const uint8_t *data, size_t size, size_t *out_size)
{
	struct tft_chunk_head h;
	size_t header, cap;

	if (size < sizeof(h))
		return NULL;
	memcpy(&h, data, sizeof(h));
	header = h.zstd_length + 8ull;
	if (header < sizeof(h) || header > size)
		return NULL;
	cap = ZSTD_compressBound(size - header);
	uint8_t *out = malloc(header + cap);
	size_t packed = ZSTD_compress(out + header, cap, data + header, size - header, 1);
	memcpy(out, data, header);
	h.zstd_magic = TFT_ZSTD_SKIPPABLE;
	h.magic = TFT_MAGIC;
	h.type = TFT_EVNT;
	h.version = TFT_VERSION;
	h.packed_bytes = packed;
	h.raw_bytes = size - header;
	memcpy(out, &h, sizeof(h));
	*out_size = header + packed;
	seal(out, *out_size);
	return out;
}

/* Whatever the type says: every payload is tried as a table. */
static void read_table(const void *data, size_t len)
{
	const struct tft_table *const tables[] = {&tft_gpus, &tft_drvr};
	struct tft_table_view v;

	for (int i = 0; i < 2 && !tft_table_open(&v, data, len); i++) {
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

static void read_all(const char *path)
{
	const struct tft_sketch *sketch;
	const struct tft_run *runs;
	struct tft_reader *r;
	const void *data;
	struct tfh_err err;
	uint32_t n;
	size_t len;

	if (tft_open(path, &r, &err) < 0)
		return;
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

static void try_bytes(int fd, const char *path, const uint8_t *data, size_t size)
{
	if (ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size)
		read_all(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	static char path[64];

	if (fd < 0) {
		fd = memfd_create("fuzz", 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	if (size == 0)
		return 0;
	uint8_t mode = *data++ % 3;
	uint8_t *copy = malloc(size--);
	memcpy(copy, data, size);
	if (mode == 1)
		seal(copy, size);
	if (mode == 2) {
		size_t chunk;
		uint8_t *made = unpacked(copy, size, &chunk);
		if (made)
			try_bytes(fd, path, made, chunk);
		free(made);
	} else {
		try_bytes(fd, path, copy, size);
	}
	free(copy);
	return 0;
}

#ifdef TFH_FUZZ_MAIN
int main(int argc, char **argv)
{
	static uint8_t buf[1 << 20];

	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");
		if (!f)
			return 1;
		LLVMFuzzerTestOneInput(buf, fread(buf, 1, sizeof(buf), f));
		fclose(f);
	}
	return 0;
}
#endif
