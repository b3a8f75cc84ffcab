/* Device ops in order of their start, each with the call that issued it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#include "model/ops/device_ops.h"
#include "model/symbols/kernel_name.h"

#define KNOWN 256
#define ALL_THREADS UINT32_MAX

struct tfh_ops {
	struct tfh_run *run, *shadow;
	uint32_t process;
	uint64_t number;
	uint64_t unissued;
	struct tfh_rows *gpus, *drvr;
	pthread_mutex_t reading; /* protects the readers of the shadow's chunks */
	struct tfh_join *join;	 /* NULL: results of an earlier pass are read */
	struct tfh_issued *issued;
	/* the last kernel name that was looked up, and the result; equal texts have one address
	 * here (rows.c) */
	struct {
		const char *name;
		bool communicates;
	} known[KNOWN];
	struct tfh_err err;
	struct tfh_op op;   /* the op returned last */
	struct tfh_op seen; /* the same in compact form, from an earlier pass */
	bool brief;	    /* return `seen` */
	bool end;
	bool fed;	/* belongs to a tfh_ops_join() */
	uint32_t holes; /* number of holes known when it was opened */
};

/* Numbers of CUpti_ActivityMemcpyKind. */
enum {
	COPY_HTOD = 1,
	COPY_DTOH = 2,
	COPY_HTOA = 3,
	COPY_ATOH = 4,
	COPY_ATOA = 5,
	COPY_ATOD = 6,
	COPY_DTOA = 7,
	COPY_DTOD = 8,
	COPY_HTOH = 9,
	COPY_PTOP = 10
};
enum { MEMORY_PAGEABLE = 1 };

static uint8_t direction(uint8_t kind)
{
	switch (kind) {
	case COPY_HTOD:
	case COPY_HTOA:
		return TFH_DIR_H2D;
	case COPY_DTOH:
	case COPY_ATOH:
		return TFH_DIR_D2H;
	case COPY_HTOH:
		return TFH_DIR_H2H;
	case COPY_PTOP:
		return TFH_DIR_P2P;
	case COPY_ATOA:
	case COPY_ATOD:
	case COPY_DTOA:
	case COPY_DTOD:
		return TFH_DIR_D2D;
	default:
		return TFH_DIR_ANY;
	}
}

static bool communicates(struct tfh_ops *o, const char *name)
{
	uint32_t at = (uint32_t)tfh_hash_u64((uintptr_t)name) % KNOWN;

	if (o->known[at].name != name) {
		o->known[at].name = name;
		o->known[at].communicates = tfh_kernel_communicates(name);
	}
	return o->known[at].communicates;
}

static void fill(struct tfh_ops *o, const struct tfh_row *row, struct tfh_op *op)
{
	uint8_t kind = (uint8_t)tfh_cell(row, TFH_CELL_KIND);

	/* Assigned one by one: zeroing all of it first took a third of this function's time. */
	op->t0 = row->t0;
	op->t1 = row->t1;
	op->number = o->number++;
	op->process = o->process;
	op->device = (uint8_t)tfh_cell(row, TFH_CELL_DEVICE);
	op->ctx = (uint32_t)tfh_cell(row, TFH_CELL_CTX);
	op->stream = (uint32_t)tfh_cell(row, TFH_CELL_STREAM);
	op->kind = kind;
	op->dir = TFH_DIR_NONE;
	op->pageable = op->communication = op->managed = false;
	op->name = row->name;
	op->bytes = tfh_cell(row, TFH_CELL_BYTES);
	op->grid = tfh_cell(row, TFH_CELL_GRID);
	op->block = tfh_cell(row, TFH_CELL_BLOCK);
	op->correlation = (uint32_t)tfh_cell(row, TFH_CELL_CORRELATION);
	op->graph = (uint32_t)tfh_cell(row, TFH_CELL_GRAPH);
	op->node = tfh_cell(row, TFH_CELL_NODE);
	if (kind == TFH_OP_COPY) {
		op->dir = direction((uint8_t)tfh_cell(row, TFH_CELL_FLAGS));
		op->pageable = (op->dir == TFH_DIR_H2D &&
				(uint8_t)tfh_cell(row, TFH_CELL_SRC) == MEMORY_PAGEABLE) ||
			       (op->dir == TFH_DIR_D2H &&
				(uint8_t)tfh_cell(row, TFH_CELL_DST) == MEMORY_PAGEABLE);
		op->communication = op->dir == TFH_DIR_P2P;
	}
	if (kind == TFH_OP_KERNEL)
		op->communication = communicates(o, op->name);
}

/* Reads rows as ops, as many as are joined at a time. */
static int look_ahead(struct tfh_ops *o)
{
	const struct tfh_row *row;
	struct tfh_op op;
	int rc = 0;

	while (!rc && tfh_join_takes(o->join) && (row = tfh_rows_peek(o->gpus))) {
		fill(o, row, &op);
		tfh_rows_take(o->gpus);
		rc = tfh_join_add(o->join, &op);
	}
	return rc;
}

/* The next op, and its call if known. False at the end or on error. */
static bool next_row(struct tfh_ops *o, struct tfh_op *op, struct tfh_issue *issue, bool *known)
{
	const struct tfh_row *row;
	int rc;

	if (o->join && !o->drvr) {
		rc = look_ahead(o);
		if (rc)
			tfh_err_set(&o->err, rc, "%s", strerror(-rc));
		return !rc && tfh_join_next(o->join, op, issue, known);
	}
	row = tfh_rows_peek(o->gpus);
	if (!row)
		return false;
	fill(o, row, op);
	if (o->join) {
		*known = tfh_join_find(o->join, op, issue);
		if (tfh_join_waits(o->join)) {
			o->number--;
			return false;
		}
	}
	tfh_rows_take(o->gpus);
	if (o->join)
		return true;
	rc = tfh_issued_next(o->issued, &o->seen, issue, known);
	if (rc)
		tfh_err_set(&o->err, rc, "%s", strerror(-rc));
	return !rc;
}

static void give_call(struct tfh_ops *o, struct tfh_op *op, const struct tfh_issue *issue,
		      bool known)
{
	op->issue0 = known ? issue->t0 : INT64_MIN;
	op->issue1 = known ? issue->t1 : INT64_MIN;
	op->thread = known ? issue->thread : UINT32_MAX;
	op->call = known ? issue->call : UINT64_MAX;
	o->unissued += op->issue0 == INT64_MIN;
}

static bool next_joined(struct tfh_ops *o, struct tfh_op *op)
{
	struct tfh_issue issue;
	bool known, there = next_row(o, op, &issue, &known);
	int rc = tfh_rows_error(o->gpus);

	if (!rc && o->join)
		rc = tfh_join_error(o->join);
	if (rc)
		tfh_err_set(&o->err, rc, "%s", strerror(-rc));
	if (o->err.code || !there)
		return false;
	if (o->join)
		tfh_issued_add(o->issued, op, known ? &issue : NULL);
	give_call(o, op, &issue, known);
	return true;
}

/* The next op from an earlier pass' compact list. */
static bool next_brief(struct tfh_ops *o)
{
	struct tfh_issue issue;
	bool known;

	if (tfh_issued_end(o->issued))
		return false;
	int rc = tfh_issued_next(o->issued, &o->seen, &issue, &known);
	if (rc) {
		tfh_err_set(&o->err, rc, "%s", strerror(-rc));
		return false;
	}
	give_call(o, &o->seen, &issue, known);
	return true;
}

/* After the last op: stores what is now known about all ops. */
static void conclude(struct tfh_ops *o, struct tfh_gpu *g)
{
	/* During the first pass over calls, a thread's name or a hole may be found too late. Then a
	 * later pass joins again, with all of them known. */
	if (o->fed && (tfh_join_late(o->join) || o->run->n_hole != o->holes))
		return;
	if (o->fed)
		g->issued_threads = ALL_THREADS;
	g->unissued = o->unissued;
	if (!o->issued || g->issued || (o->join && !tfh_issued_rewind(o->issued)))
		return;
	g->issued = o->issued;
	o->issued = NULL;
}

static const struct tfh_op *next_recorded(struct tfh_ops *o)
{
	if (!o->gpus || o->end)
		return NULL;
	if (o->brief ? next_brief(o) : next_joined(o, &o->op))
		return o->brief ? &o->seen : &o->op;
	if (o->join && tfh_join_waits(o->join))
		return NULL;
	o->end = true;
	if (!o->err.code)
		conclude(o, o->run->proc[o->process].gpu);
	return NULL;
}

const struct tfh_op *tfh_ops_borrow(struct tfh_ops *o)
{
	const struct tfh_op *built;

	if (!o->run->built)
		return next_recorded(o);
	built = tfh_built_op(o->run, o->process, o->number);
	o->number += built != NULL;
	return built;
}

bool tfh_ops_next(struct tfh_ops *o, struct tfh_op *op)
{
	const struct tfh_op *next = tfh_ops_borrow(o);

	if (next)
		*op = *next;
	return next != NULL;
}

void tfh_ops_brief(struct tfh_ops *o)
{
	o->brief = !o->run->built && o->gpus && !o->join;
	o->seen.process = o->process;
	o->seen.name = "";
}

int tfh_ops_error(const struct tfh_ops *o, struct tfh_err *err)
{
	if (o->err.code && err)
		*err = o->err;
	return o->err.code;
}

/* Number of threads with known names: the more are known, the more calls are found. */
static uint32_t named_threads(const struct tfh_ops *o)
{
	const struct tfh_names *names = &o->run->proc[o->process].names;
	uint32_t n = 0;

	for (uint32_t i = 0; i < names->n[TFT_NAME_THREAD]; i++)
		n += names->v[TFT_NAME_THREAD][i].text != NULL;
	return n;
}

/* Opens the join, unless a completed pass with as much knowledge has left its results. */
static int open_join(struct tfh_ops *o, struct tfh_gpu *g)
{
	uint32_t threads = named_threads(o);

	o->issued = g->issued;
	g->issued = NULL;
	if (o->issued && (g->issued_threads == threads || g->issued_threads == ALL_THREADS) &&
	    tfh_issued_rewind(o->issued))
		return 0;
	tfh_issued_free(o->issued);
	o->issued = tfh_issued_new();
	g->issued_threads = threads;
	if (g->n_drvr)
		o->drvr = tfh_rows_open(o->shadow, g, false, o->fed ? &o->reading : NULL);
	if (g->n_drvr && !o->drvr)
		return -ENOMEM;
	return tfh_join_open(o->fed ? o->run : o->shadow, o->process, o->drvr, o->fed, &o->join);
}

static int open_recorded(struct tfh_ops *o, struct tfh_err *err)
{
	struct tfh_gpu *g = tfh_gpu_of(o->run, o->process);

	if (g && !g->n_gpus)
		return 0;
	o->shadow = g ? tfh_shadow(o->run, o->process, err) : NULL;
	if (!o->shadow)
		return g ? err->code : -ENOMEM;
	int rc = open_join(o, g);
	if (rc)
		return rc;
	/* A join that is not fed reads the host's chunks through the same shadow. */
	o->gpus = tfh_rows_open(o->shadow, g, true, o->join && !o->fed ? NULL : &o->reading);
	return o->gpus ? 0 : -ENOMEM;
}

static struct tfh_ops *new_ops(struct tfh_run *run, uint32_t process)
{
	struct tfh_ops *o = calloc(1, sizeof(*o));

	if (o) {
		o->run = run;
		o->process = process;
		pthread_mutex_init(&o->reading, NULL);
	}
	return o;
}

int tfh_ops_open(struct tfh_run *run, uint32_t process, struct tfh_ops **out, struct tfh_err *err)
{
	struct tfh_ops *o = new_ops(run, process);
	struct tfh_err why = {0};
	int rc = 0;

	*out = NULL;
	if (!o)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	if (!run->built)
		rc = process < run->n_proc ? open_recorded(o, &why) : -EINVAL;
	if (rc) {
		tfh_ops_close(o);
		return tfh_err_set(err, rc, "%s", why.code ? why.text : strerror(-rc));
	}
	*out = o;
	return 0;
}

/* Joins the ops whose calls are certain by now. */
static void join_on(void *arg, const struct tfh_block *b)
{
	struct tfh_ops *o = arg;

	tfh_join_feed(o->join, b);
	while (next_recorded(o))
		;
}

struct tfh_ops *tfh_ops_join(struct tfh_merge *m, struct tfh_run *run, uint32_t process)
{
	struct tfh_gpu *g = run->built ? NULL : tfh_gpu_of(run, process);
	struct tfh_ops *o = g && g->n_gpus && !g->issued ? new_ops(run, process) : NULL;
	struct tfh_err err;

	if (!o)
		return NULL;
	o->fed = true;
	o->holes = run->n_hole;
	if (open_recorded(o, &err)) { /* the error is reported to the next reader of ops */
		tfh_ops_close(o);
		return NULL;
	}
	tfh_merge_tap(m, join_on, o);
	return o;
}

/* Stores the ops joined so far; they remain valid if a reader stops early. */
static void keep_issued(struct tfh_ops *o)
{
	struct tfh_gpu *g =
		o->issued && !o->join && !o->err.code ? o->run->proc[o->process].gpu : NULL;

	if (!g || g->issued)
		return;
	g->issued = o->issued;
	o->issued = NULL;
}

void tfh_ops_close(struct tfh_ops *o)
{
	if (!o)
		return;
	keep_issued(o);
	tfh_issued_free(o->issued);
	tfh_join_close(o->join);
	tfh_rows_close(o->gpus);
	tfh_rows_close(o->drvr);
	if (o->shadow)
		tfh_shadow_free(o->shadow, o->process);
	pthread_mutex_destroy(&o->reading);
	free(o);
}
