/*
 * The inside of device ops: device_times.c finds the chunks of a process and when device times were
 * on; rows.c brings rows of all chunks in order of their start; name_table.c keeps names; issue.c
 * finds the host call of each; ops.c hands them out.
 */
#ifndef TFH_MODEL_DEVICE_OPS_H
#define TFH_MODEL_DEVICE_OPS_H

#include <pthread.h>

#include "format/table.h"
#include "model/opened.h"
#include "model/timeline/interleave.h"

/* One GPUS or DRVR chunk. */
struct tfh_table_chunk {
	uint32_t file, chunk;
	int64_t first;		 /* no row begins before: ns of the run */
	uint32_t segment;	 /* which copies of a file have in common */
	uint64_t t_last, packed; /* and of the chunk itself: as its header says */
};

/* Names of kernels, each once: equal texts have one address, in all passes. */
struct tfh_texts {
	pthread_mutex_t lock;
	struct tfh_arena arena;
	const char **v; /* open-addressed */
	uint32_t n, cap;
};
/* NULL: out of memory. */
const char *tfh_texts_keep(struct tfh_texts *t, const char *text);

/* What device_times.c found; made at the first question, kept by the process. */
struct tfh_gpu {
	struct tfh_table_chunk *gpus, *drvr; /* by first */
	uint32_t n_gpus, n_drvr, cap_gpus, cap_drvr;
	struct tfh_gpu_span *span;
	uint32_t n_span, cap_span;
	uint64_t ops, dropped, unissued;
	uint64_t memory; /* bytes of the smallest device */
	uint32_t processors;
	uint64_t overhead_ns;
	const char *why, *library, *graphs;
	uint32_t devices; /* that ran ops */
	bool collectives; /* kernels that wait for other devices are among them */
	struct tfh_texts texts;
	/* NULL: no pass over the ops has come to its end, or one is using it */
	struct tfh_issued *issued;
	/* so many had names when they were joined, UINT32_MAX: all that were needed */
	uint32_t issued_threads;
};
/* NULL: out of memory. */
struct tfh_gpu *tfh_gpu_of(struct tfh_run *run, uint32_t process);
/* A copy of a run that reads the files of one process through readers of its own, so that a pass
 * over events may be under way meanwhile. Only what interleave.c touches. */
struct tfh_run *tfh_shadow(struct tfh_run *run, uint32_t process, struct tfh_err *err);
void tfh_shadow_free(struct tfh_run *shadow, uint32_t process);

/* ---- rows.c ---- */

/* The table's clock on the axis of the run, piecewise linear. */
struct tfh_axis {
	int64_t *table, *run; /* by run time */
	uint32_t n;
	bool steady; /* by table time, too: the clock was never set back */
	/* of the readings that were needed last: their line, and for which times it is right */
	int64_t from, to, base, base_run;
	double rate;
};
int tfh_axis_make(struct tfh_axis *a, const struct tfh_run *run, uint32_t file,
		  const struct tft_table_view *v);
int64_t tfh_axis_look(struct tfh_axis *a, uint64_t ns);
/* Most times come one after the other and lie between the same two readings. */
static inline int64_t tfh_axis_ns(struct tfh_axis *a, uint64_t ns)
{
	int64_t t = (int64_t)ns;

	return t >= a->from && t < a->to ? a->base_run + (int64_t)((double)(t - a->base) * a->rate)
					 : tfh_axis_look(a, ns);
}
void tfh_axis_free(struct tfh_axis *a);
/* Between readings i and i + 1 somebody set the clock. */
bool tfh_axis_step(const struct tfh_axis *a, uint32_t i);

/* Columns of a GPUS or DRVR chunk as the join and the ops want them. */
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

/* `reading`: held by whoever reads a chunk of the shadow, so that a thread may; NULL: others read it, too, and do not know. */
struct tfh_rows *tfh_rows_open(struct tfh_run *shadow, struct tfh_gpu *g, bool gpus,
			       pthread_mutex_t *reading);
/* The next row, NULL at the end; stays the next one until tfh_rows_take. */
const struct tfh_row *tfh_rows_peek(struct tfh_rows *r);
void tfh_rows_take(struct tfh_rows *r);
int tfh_rows_error(const struct tfh_rows *r);
void tfh_rows_close(struct tfh_rows *r);

struct tfh_issue {
	int64_t t0, t1;
	uint32_t thread;
	uint64_t call;
};

/* ---- issued.c: ops in short and which calls issued them, from one pass to the next ---- */

struct tfh_issued;
/* NULL: out of memory. */
struct tfh_issued *tfh_issued_new(void);
void tfh_issued_free(struct tfh_issued *s);
/* The next op and its call, NULL: not known. */
void tfh_issued_add(struct tfh_issued *s, const struct tfh_op *op, const struct tfh_issue *issue);
/* Whether all have been read. */
bool tfh_issued_end(const struct tfh_issued *s);
/* To the first op. False: there was no room for all of them. */
bool tfh_issued_rewind(struct tfh_issued *s);
/* The next op and its call, as they were added: of the op what tfh_ops_brief() says. `op` is zero before the first one, and
 * as it was left before the others. 0 or -errno. */
int tfh_issued_next(struct tfh_issued *s, struct tfh_op *op, struct tfh_issue *out, bool *known);

/* ---- issue_by_order.c: ops and calls in the order of CUPTI's numbers ---- */

struct tfh_by_order;
/* `alone`: one thread made all calls. 0 or -ENOMEM. */
int tfh_by_order_open(bool alone, struct tfh_by_order **out);
void tfh_by_order_close(struct tfh_by_order *r);
/* A call that issues something, as it comes. 0 or -ENOMEM. */
int tfh_by_order_call(struct tfh_by_order *r, uint32_t kind, const struct tfh_issue *issue,
		      uint32_t stream);
/* An op, as it comes; not when full. */
bool tfh_by_order_full(const struct tfh_by_order *r);
int tfh_by_order_add(struct tfh_by_order *r, uint32_t kind, const struct tfh_op *op);
/* The one that is next; NULL: none is left. */
const struct tfh_op *tfh_by_order_first(const struct tfh_by_order *r);
/* Whether something is to be settled before the next op is taken, and up to when calls should have
 * been told before: they have up to `now`. */
bool tfh_by_order_needs(const struct tfh_by_order *r, int64_t *until);
void tfh_by_order_settle(struct tfh_by_order *r, int64_t now);
/* The next op, and its call; false: not known. */
bool tfh_by_order_take(struct tfh_by_order *r, struct tfh_op *op, struct tfh_issue *issue);
/* Something was lost: ops get no calls, until those of calls before t have all run. */
void tfh_by_order_silence(struct tfh_by_order *r);
void tfh_by_order_begin(struct tfh_by_order *r, int64_t t);

/* ---- issue.c ---- */

struct tfh_join;
/* `drvr`: NULL where no calls were recorded by CUPTI: then the order of calls has to do. `fed`: it
 * reads no host records itself. */
int tfh_join_open(struct tfh_run *shadow, uint32_t process, struct tfh_rows *drvr, bool fed,
		  struct tfh_join **out);
/* The next of them, NULL: there are no more. */
void tfh_join_feed(struct tfh_join *j, const struct tfh_block *b);
/* Nothing was told, as that needs more of them: to be asked again. */
bool tfh_join_waits(const struct tfh_join *j);
/* Ops in order of their start, before their calls are asked for: as many as are taken (false: no
 * more just now). With CUPTI's records of calls none need be. */
bool tfh_join_takes(const struct tfh_join *j);
int tfh_join_add(struct tfh_join *j, const struct tfh_op *op);
/* The next op that was added, and whether its call is known; false: none is left. */
bool tfh_join_next(struct tfh_join *j, struct tfh_op *op, struct tfh_issue *out, bool *known);
/* The call that issued an op; false: not known. Ops come in order of their start. */
bool tfh_join_find(struct tfh_join *j, const struct tfh_op *op, struct tfh_issue *out);
/* CUPTI told of a call before its thread had a name: who knows all names may find more. */
bool tfh_join_late(const struct tfh_join *j);
int tfh_join_error(const struct tfh_join *j);
void tfh_join_close(struct tfh_join *j);

#endif
