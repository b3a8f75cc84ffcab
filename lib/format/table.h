/*
 * Tables of numbers as chunk payloads (FORMAT.md, section 2.8). Rows are structs in memory; on disk
 * each field is a column of byte planes. Encoder and decoder share one description of each table.
 */
#ifndef TFH_FORMAT_TABLE_H
#define TFH_FORMAT_TABLE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TFT_TABLE_ROWS_MAX (1u << 16)
#define TFT_TABLE_SECTIONS_MAX 64u

/* Sections that are not columns. */
enum {
	TFT_SEC_SPANS = 253, /* of GPUS: when device times were on */
	TFT_SEC_HEAP = 254,
	TFT_SEC_PAIRS = 255,
};

/* Transform of an end time: its distance to the row's start (column 1). Durations vary less than
 * the gaps between ends. */
#define TFT_FROM_START 3

/* Column `id`: the field of `size` bytes at `offset` of a row. */
struct tft_table_column {
	uint8_t id;
	uint8_t width; /* largest width on disk in bytes */
	uint8_t transform;
	uint8_t size;
	uint16_t offset;
};
struct tft_table {
	const struct tft_table_column *column;
	uint32_t columns;
	uint32_t row_bytes;
};

/* GPUS: one device op. Times are ns of the table's clock. */
struct tft_gpu_row {
	uint64_t start, end;
	uint64_t bytes, grid, block, node;
	uint32_t correlation, ctx, stream, name; /* name: offset in the heap */
	uint32_t static_shared, graph, channel;
	uint16_t registers;
	uint8_t device, kind, src, dst, flags;
};
extern const struct tft_table tft_gpus;
/* Its columns. */
enum {
	TFT_GPUS_START = 1,
	TFT_GPUS_END = 2,
	TFT_GPUS_CORRELATION = 3,
	TFT_GPUS_DEVICE = 4,
	TFT_GPUS_CTX = 5,
	TFT_GPUS_STREAM = 6,
	TFT_GPUS_KIND = 7,
	TFT_GPUS_NAME = 8,
	TFT_GPUS_BYTES = 9,
	TFT_GPUS_SRC = 10,
	TFT_GPUS_DST = 11,
	TFT_GPUS_FLAGS = 12,
	TFT_GPUS_GRID = 13,
	TFT_GPUS_BLOCK = 14,
	TFT_GPUS_REGISTERS = 15,
	TFT_GPUS_SHARED = 16,
	TFT_GPUS_GRAPH = 19,
	TFT_GPUS_NODE = 20,
	TFT_GPUS_CHANNEL = 21,
};

/* DRVR: one driver call as CUPTI saw it. */
struct tft_drvr_row {
	uint64_t start, end;
	uint32_t correlation, tid, callback, result;
	uint8_t domain;
};
extern const struct tft_table tft_drvr;
/* Its columns; times and correlation have the numbers of GPUS. */
enum {
	TFT_DRVR_TID = 4,
	TFT_DRVR_CALLBACK = 5,
	TFT_DRVR_RESULT = 6,
	TFT_DRVR_DOMAIN = 7,
};

/* BTRC: one frame of a backtrace. */
struct tft_btrc_row {
	uint64_t address; /* the return address */
	uint32_t stack;	  /* as in a record's `stack` */
	uint16_t index;	  /* 0 = innermost */
	uint32_t place;	  /* Python place, in the row of the innermost frame; else 0 */
};
extern const struct tft_table tft_btrc;

/* PYCO: one Python function. */
struct tft_pyco_row {
	uint32_t code, file, name, first; /* file, name: offsets in the heap; first: line */
};
extern const struct tft_table tft_pyco;

/* PYFR: one place in Python code. */
struct tft_pyfr_row {
	uint32_t place, caller, code, line;
};
extern const struct tft_table tft_pyfr;

/* MODS: one executable range of a file. */
struct tft_mods_row {
	uint64_t start, end, offset; /* offset: of `start` in the file */
	/* Ticks of the scan before it appeared and of the one that missed it; else 0. */
	uint64_t loaded, unloaded;
	uint32_t path, build_id; /* offsets in the heap */
};
extern const struct tft_table tft_mods;

/* One reading of the table's clock. */
struct tft_table_pair {
	uint64_t ticks, ns;
};
static_assert(sizeof(struct tft_table_pair) == 16, "on disk");

/* Device times were on from `first` to `last` (ticks), and every op of that time is in this chunk
 * or another. */
struct tft_gpu_span {
	uint64_t first, last;
	uint64_t flags; /* TFT_GPU_SPAN_* */
};
static_assert(sizeof(struct tft_gpu_span) == 24, "on disk");
#define TFT_GPU_SPAN_NODES 1u /* also the nodes of graphs, not only launches */

struct tft_table_extra {
	const void *heap; /* texts, each NUL-terminated */
	uint32_t heap_bytes;
	const struct tft_table_pair *pair;
	uint32_t pairs;
	const struct tft_gpu_span *span;
	uint32_t spans;
};

/* Largest payload of a table of n rows. */
size_t tft_table_bound(const struct tft_table *t, uint32_t n, const struct tft_table_extra *extra);
/* Writes the payload to `out`, which has tft_table_bound() bytes, and returns its length. Columns
 * that are 0 in all rows are left out. */
size_t tft_table_pack(const struct tft_table *t, const void *rows, uint32_t n,
		      const struct tft_table_extra *extra, void *out);

/* A validated payload: every section is inside it. Points into the payload. */
struct tft_table_view {
	const uint8_t *data;
	uint32_t rows, sections;
	const char *heap; /* NUL-terminated; "" if there is none */
	uint32_t heap_bytes;
	const uint8_t *pair, *span;
	uint32_t pairs, spans;
};
/* 0 or -EBADMSG. */
int tft_table_open(struct tft_table_view *v, const void *payload, size_t len);
/* All rows, v->rows of t->row_bytes; missing columns are 0. Returns 0 or -EBADMSG. */
int tft_table_rows(const struct tft_table_view *v, const struct tft_table *t, void *rows);
/* One column. Returns true with its v->rows values in `out`, or false if all equal `*same` (0 for a
 * missing column), with `out` unchanged. Values may be wider than the row's field. */
bool tft_table_values(const struct tft_table_view *v, uint8_t id, uint64_t *out, uint64_t *same);
/* Columns 1 and 2, both of v->rows values: when rows begin and end. */
void tft_table_times(const struct tft_table_view *v, uint64_t *start, uint64_t *end);
/* Never NULL. */
const char *tft_table_text(const struct tft_table_view *v, uint32_t offset);
struct tft_table_pair tft_table_pair_at(const struct tft_table_view *v, uint32_t i);
struct tft_gpu_span tft_table_span_at(const struct tft_table_view *v, uint32_t i);

#endif
