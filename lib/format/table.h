/*
 * Tables of numbers as chunk payloads (FORMAT.md 2.8): rows in memory are structs, on disk each
 * field is a column of byte planes. Encoder and decoder share one description of each table.
 */
#ifndef TFT_TABLE_H
#define TFT_TABLE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TFT_TABLE_ROWS_MAX (1u << 16)
#define TFT_TABLE_SECTIONS_MAX 64u

/* Sections that are no columns. */
enum {
	TFT_SEC_SPANS = 253, /* of GPUS: when device times were on */
	TFT_SEC_HEAP = 254,
	TFT_SEC_PAIRS = 255,
};

/* Transform of an end: its distance to the row's start (column 1). How long things take varies less
 * than what passes between them. */
#define TFT_FROM_START 3

/* Column `id`: the field of `size` bytes at `offset` of a row. */
struct tft_table_column {
	uint8_t id;
	uint8_t width; /* bytes on disk at most */
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
	uint32_t place;	  /* of Python's frames, in the row of the innermost frame; 0 */
};
extern const struct tft_table tft_btrc;

/* PYCO: one function of Python. */
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
	uint64_t loaded, unloaded;   /* ticks of the looks before it came and when it was gone; 0 */
	uint32_t path, build_id;     /* offsets in the heap */
};
extern const struct tft_table tft_mods;

/* A reading of the table's clock. */
struct tft_table_pair {
	uint64_t ticks, ns;
};
static_assert(sizeof(struct tft_table_pair) == 16, "on disk");

/* Device times were on from `first` to `last` (ticks), and every op of that time is in this chunk
 * or another one. */
struct tft_gpu_span {
	uint64_t first, last;
	uint64_t flags; /* TFT_GPU_SPAN_* */
};
static_assert(sizeof(struct tft_gpu_span) == 24, "on disk");
#define TFT_GPU_SPAN_NODES 1u /* the nodes of graphs, not only whole launches */

struct tft_table_extra {
	const void *heap; /* texts, each ended by a NUL */
	uint32_t heap_bytes;
	const struct tft_table_pair *pair;
	uint32_t pairs;
	const struct tft_gpu_span *span;
	uint32_t spans;
};

/* Largest payload of a table of n rows. */
size_t tft_table_bound(const struct tft_table *t, uint32_t n, const struct tft_table_extra *extra);
/* Length of the payload written to `out`, which has room for tft_table_bound(). A column that is 0
 * in all rows is left out. */
size_t tft_table_pack(const struct tft_table *t, const void *rows, uint32_t n,
		      const struct tft_table_extra *extra, void *out);

/* A payload that was looked through: every section lies inside it. Points into the payload. */
struct tft_table_view {
	const uint8_t *data;
	uint32_t rows, sections;
	const char *heap; /* ends with a NUL; "" if there is none */
	uint32_t heap_bytes;
	const uint8_t *pair, *span;
	uint32_t pairs, spans;
};
/* 0 or -EBADMSG. */
int tft_table_open(struct tft_table_view *v, const void *payload, size_t len);
/* All rows, v->rows of t->row_bytes; what the payload has no column for is 0. 0 or -EBADMSG. */
int tft_table_rows(const struct tft_table_view *v, const struct tft_table *t, void *rows);
/* One column alone: true, its v->rows values are in `out`; false, all of them are `*same` (0 where
 * there is no such column) and `out` is as it was. A value may be wider than the field of a row. */
bool tft_table_values(const struct tft_table_view *v, uint8_t id, uint64_t *out, uint64_t *same);
/* Columns 1 and 2, both of v->rows values: when rows begin and end. */
void tft_table_times(const struct tft_table_view *v, uint64_t *start, uint64_t *end);
/* Never NULL. */
const char *tft_table_text(const struct tft_table_view *v, uint32_t offset);
struct tft_table_pair tft_table_pair_at(const struct tft_table_view *v, uint32_t i);
struct tft_gpu_span tft_table_span_at(const struct tft_table_view *v, uint32_t i);

#endif
