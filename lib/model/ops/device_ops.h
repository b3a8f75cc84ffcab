/*
 * Internals of device ops: device_times.c finds a process' chunks and the times for which device
 * times were recorded; rows.c returns the rows of all chunks by start time; name_table.c stores
 * names; issue.c finds each op's host call; ops.c returns the ops.
 */
#ifndef TFH_MODEL_OPS_DEVICE_OPS_H
#define TFH_MODEL_OPS_DEVICE_OPS_H

#include <pthread.h>

#include "format/table.h"
#include "model/opened.h"
#include "model/timeline/interleave.h"

/* One GPUS or DRVR chunk. */
struct tfh_table_chunk {
	uint32_t file, chunk;
	int64_t first;		 /* run ns: no row starts earlier */
	uint32_t segment;	 /* shared by copies of a file */
	uint64_t t_last, packed; /* from the chunk's header; also shared */
};

/* Names of kernels: equal texts have one address, in all passes. */
struct tfh_texts {
	pthread_mutex_t lock;
	struct tfh_arena arena;
	const char **v; /* open-addressed */
	uint32_t n, cap;
};
/* NULL when out of memory. */
const char *tfh_texts_keep(struct tfh_texts *t, const char *text);

/* Result of device_times.c; made on the first request, owned by the process. */
struct tfh_gpu {
	struct tfh_table_chunk *gpus, *drvr; /* by first */
	uint32_t n_gpus, n_drvr, cap_gpus, cap_drvr;
	struct tfh_gpu_span *span;
	uint32_t n_span, cap_span;
	uint64_t ops, dropped, unissued;
	uint64_t memory; /* bytes of the smallest device */
	uint32_t processors;
	uint64_t overhead_ns, recorder_ns;
	const char *why, *library, *graphs;
	uint32_t devices; /* devices that ran ops */
	bool collectives; /* some kernels wait for other devices */
	struct tfh_texts texts;
	/* NULL until a pass over the ops has completed, or while one uses it */
	struct tfh_issued *issued;
	/* threads that had names at the join, UINT32_MAX: all needed ones */
	uint32_t issued_threads;
};
/* NULL when out of memory. */
struct tfh_gpu *tfh_gpu_of(struct tfh_run *run, uint32_t process);
/* A copy of a run with its own readers of one process' files, so that a pass over events may run at
 * the same time. Has only what interleave.c uses. */
struct tfh_run *tfh_shadow(struct tfh_run *run, uint32_t process, struct tfh_err *err);
void tfh_shadow_free(struct tfh_run *shadow, uint32_t process);

/* ---- rows.c ---- */

/* The table's clock in run time, piecewise linear. */
struct tfh_axis {
	int64_t *table, *run; /* by run time */
	uint32_t n;
	bool steady; /* readings are also sorted by table time: the clock was never set back */
	/* the last used segment and the times for which it is valid */
	int64_t from, to, base, base_run;
	double rate;
};
int tfh_axis_make(struct tfh_axis *a, const struct tfh_run *run, uint32_t file,
		  const struct tft_table_view *v);
int64_t tfh_axis_find(struct tfh_axis *a, uint64_t ns);
/* Consecutive times usually lie between the same two readings. */
static inline int64_t tfh_axis_ns(struct tfh_axis *a, uint64_t ns)
{
	int64_t t = (int64_t)ns;

	return t >= a->from && t < a->to ? a->base_run + (int64_t)((double)(t - a->base) * a->rate)
					 : tfh_axis_find(a, ns);
}
void tfh_axis_free(struct tfh_axis *a);
/* Whether the clock was set between readings i and i + 1. */
bool tfh_axis_step(const struct tfh_axis *a, uint32_t i);

/* Columns of a GPUS or DRVR chunk that the join and the ops use. */
enum tfh_cell {
	TFH_CELL_CORRELATION, /* of both */
	TFH_CELL_TID,	      /* of DRVR */
	TFH_CELL_BYTES = 1,   /* of GPUS from here on */
	TFH_CELL_GRID,
	TFH_CELL_BLOCK,
	TFH_CELL_NODE,
	TFH_CELL_CTX,
	TFH_CELL_STREAM,
	TFH_CELL_GRAPH,
	TFH_CELL_DEVICE,
	TFH_CELL_KIND,
	TFH_CELL_SRC,
	TFH_CELL_DST,
	TFH_CELL_FLAGS,
	TFH_CELLS
};
struct tfh_cells {
	const uint64_t *v[TFH_CELLS]; /* NULL: all are `same` */
	uint64_t same[TFH_CELLS];
};

/* Rows of a table in order of their start. */
struct tfh_rows;
struct tfh_row {
	int64_t t0, t1;
	const struct tfh_cells *cells; /* until the next call */
	uint32_t at;
	const char *name; /* of a kernel, else ""; lives as long as the process */
};
static inline uint64_t tfh_cell(const struct tfh_row *r, enum tfh_cell c)
{
	const uint64_t *v = r->cells->v[c];

	return v ? v[r->at] : r->cells->same[c];
}

/* Opens the rows of a process' GPUS or DRVR chunks, start times ascending. `reading`: the lock that
 * protects the shadow's files while a second thread decodes; NULL: others use the shadow without
 * it, so no thread is started. NULL when out of memory. */
struct tfh_rows *tfh_rows_open(struct tfh_run *shadow, struct tfh_gpu *g, bool gpus,
			       pthread_mutex_t *reading);
/* The next row, NULL at the end. Returns the same row until tfh_rows_take(). */
const struct tfh_row *tfh_rows_peek(struct tfh_rows *r);
void tfh_rows_take(struct tfh_rows *r);
int tfh_rows_error(const struct tfh_rows *r);
void tfh_rows_close(struct tfh_rows *r);

struct tfh_issue {
	int64_t t0, t1;
	uint32_t thread;
	uint64_t call;
};

/* ---- issued.c: compact ops and their calls, kept between passes ---- */

struct tfh_issued;
/* NULL when out of memory. */
struct tfh_issued *tfh_issued_new(void);
void tfh_issued_free(struct tfh_issued *s);
/* Adds the next op and its call; `issue` NULL: unknown. */
void tfh_issued_add(struct tfh_issued *s, const struct tfh_op *op, const struct tfh_issue *issue);
/* Whether all stored ops have been read. */
bool tfh_issued_end(const struct tfh_issued *s);
/* Returns to the first op. False if not all were stored. */
bool tfh_issued_rewind(struct tfh_issued *s);
/* Reads the next op and its call. Sets those fields of the op that tfh_ops_brief() lists. The
 * caller zeroes `op` once and does not change it between calls, since equal fields are not written
 * again. 0 or -errno. */
int tfh_issued_next(struct tfh_issued *s, struct tfh_op *op, struct tfh_issue *out, bool *known);

/* ---- issue_by_order.c: ops and calls in the order of CUPTI's numbers ---- */

struct tfh_by_order;
/* `alone`: one thread made all calls. 0 or -ENOMEM. */
int tfh_by_order_open(bool alone, struct tfh_by_order **out);
void tfh_by_order_close(struct tfh_by_order *r);
/* Adds an issuing call, in arrival order. 0 or -ENOMEM. */
int tfh_by_order_call(struct tfh_by_order *r, uint32_t kind, const struct tfh_issue *issue,
		      uint32_t stream);
/* Adds an op, in order of start. The caller checks tfh_by_order_full() before. */
bool tfh_by_order_full(const struct tfh_by_order *r);
int tfh_by_order_add(struct tfh_by_order *r, uint32_t kind, const struct tfh_op *op);
/* The next op; NULL if none is left. */
const struct tfh_op *tfh_by_order_first(const struct tfh_by_order *r);
/* Whether calls must be read before the next op can be taken: up to the time *until. Having read
 * them, the caller calls tfh_by_order_settle() with the time `now` up to which calls were read. */
bool tfh_by_order_needs(const struct tfh_by_order *r, int64_t *until);
void tfh_by_order_settle(struct tfh_by_order *r, int64_t now);
/* Takes the next op and its call; false: unknown. */
bool tfh_by_order_take(struct tfh_by_order *r, struct tfh_op *op, struct tfh_issue *issue);
/* For lost records: ops get no call until tfh_by_order_begin(), which discards calls that began
 * before t. */
void tfh_by_order_silence(struct tfh_by_order *r);
void tfh_by_order_begin(struct tfh_by_order *r, int64_t t);

/* ---- issue.c ---- */

struct tfh_join;
/* `drvr`: NULL if CUPTI recorded no calls, so that their order has to decide. `fed`: the caller
 * supplies host records (tfh_join_feed). */
int tfh_join_open(struct tfh_run *shadow, uint32_t process, struct tfh_rows *drvr, bool fed,
		  struct tfh_join **out);
/* Supplies the next block; NULL: no more. */
void tfh_join_feed(struct tfh_join *j, const struct tfh_block *b);
/* Whether nothing was returned because more blocks must be supplied first. */
bool tfh_join_waits(const struct tfh_join *j);
/* Whether ops can be added, in order of their start, before their calls are requested. Not needed
 * if CUPTI recorded calls. */
bool tfh_join_takes(const struct tfh_join *j);
int tfh_join_add(struct tfh_join *j, const struct tfh_op *op);
/* Returns the next added op and whether its call is known; false if none is left. */
bool tfh_join_next(struct tfh_join *j, struct tfh_op *op, struct tfh_issue *out, bool *known);
/* The call that issued an op; false: unknown. Ops come in order of their start. */
bool tfh_join_find(struct tfh_join *j, const struct tfh_op *op, struct tfh_issue *out);
/* Whether CUPTI reported a call before its thread had a name. Then a later pass may find more
 * calls. */
bool tfh_join_late(const struct tfh_join *j);
int tfh_join_error(const struct tfh_join *j);
void tfh_join_close(struct tfh_join *j);

#endif
