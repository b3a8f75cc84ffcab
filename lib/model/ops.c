/* Device ops in order of their start, each with the call that issued it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#include "model/device.h"

#define KNOWN 256

struct tfh_ops {
	struct tfh_run *run, *shadow;
	uint32_t process;
	uint64_t number;
	uint64_t unissued;
	struct tfh_rows *gpus, *drvr;
	struct tfh_join *join;
	/* what names of kernels said last; equal texts are one address here (rows.c) */
	struct {
		const char *name;
		bool communicates;
	} known[KNOWN];
	struct tfh_err err;
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

/* Kernels that wait for other devices, by their names: NCCL's of all releases, NVSHMEM's, those of
 * frameworks, and the simulator's. */
bool tfh_op_communicates(const char *name)
{
	static const char *const begins[] = {"nccl",	"rendezvous", "nvshmem",
					     "ncclDev", "msccl",      "rccl"};
	static const char *const holds[] = {"ncclDevKernel",	   "ncclKernel",
					    "AllReduceKernel",	   "cross_device_reduce",
					    "one_shot_all_reduce", "two_shot_all_reduce",
					    "multimem_all_reduce", "nvshmem"};

	for (unsigned i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return true;
	for (unsigned i = 0; i < sizeof(holds) / sizeof(*holds); i++)
		if (strstr(name, holds[i]))
			return true;
	return false;
}

static bool communicates(struct tfh_ops *o, const char *name)
{
	uint32_t at = (uint32_t)tfh_hash_u64((uintptr_t)name) % KNOWN;

	if (o->known[at].name != name) {
		o->known[at].name = name;
		o->known[at].communicates = tfh_op_communicates(name);
	}
	return o->known[at].communicates;
}

static void fill(struct tfh_ops *o, const struct tfh_row *row, struct tfh_op *op)
{
	const struct tft_gpu_row *g = row->row;

	*op = (struct tfh_op){.t0 = row->t0,
			      .t1 = row->t1,
			      .number = o->number++,
			      .process = o->process,
			      .device = g->device,
			      .ctx = g->ctx,
			      .stream = g->stream,
			      .kind = g->kind,
			      .name = row->name,
			      .bytes = g->bytes,
			      .grid = g->grid,
			      .block = g->block,
			      .correlation = g->correlation,
			      .graph = g->graph,
			      .node = g->node,
			      .issue0 = INT64_MIN,
			      .issue1 = INT64_MIN,
			      .thread = UINT32_MAX,
			      .call = UINT64_MAX};
	if (g->kind == TFH_OP_COPY) {
		op->dir = direction(g->flags);
		op->pageable = (op->dir == TFH_DIR_H2D && g->src == MEMORY_PAGEABLE) ||
			       (op->dir == TFH_DIR_D2H && g->dst == MEMORY_PAGEABLE);
		op->communication = op->dir == TFH_DIR_P2P;
	}
	if (g->kind == TFH_OP_KERNEL)
		op->communication = communicates(o, op->name);
}

/* Rows to ops, as far as they are to be looked at together. */
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

/* The next op, and its call if it is known. False: none is left, or there is an error. */
static bool next_joined(struct tfh_ops *o, struct tfh_op *op, struct tfh_issue *issue, bool *known)
{
	const struct tfh_row *row;
	int rc;

	if (!o->drvr) {
		rc = look_ahead(o);
		if (rc)
			tfh_err_set(&o->err, rc, "%s", strerror(-rc));
		return !rc && tfh_join_next(o->join, op, issue, known);
	}
	row = tfh_rows_peek(o->gpus);
	if (!row)
		return false;
	fill(o, row, op);
	tfh_rows_take(o->gpus);
	*known = tfh_join_find(o->join, op, issue);
	return true;
}

static bool next_recorded(struct tfh_ops *o, struct tfh_op *op)
{
	struct tfh_issue issue;
	bool known, there = o->gpus && next_joined(o, op, &issue, &known);
	int rc = o->gpus ? tfh_rows_error(o->gpus) : 0;

	if (!rc && o->join)
		rc = tfh_join_error(o->join);
	if (rc)
		tfh_err_set(&o->err, rc, "%s", strerror(-rc));
	if (!o->err.code && !there)
		o->run->proc[o->process].gpu->unissued = o->unissued;
	if (o->err.code || !there)
		return false;
	if (known) {
		op->issue0 = issue.t0;
		op->issue1 = issue.t1;
		op->thread = issue.thread;
		op->call = issue.call;
	}
	o->unissued += op->issue0 == INT64_MIN;
	return true;
}

bool tfh_ops_next(struct tfh_ops *o, struct tfh_op *op)
{
	const struct tfh_op *built;

	if (o->err.code)
		return false;
	if (!o->run->built)
		return next_recorded(o, op);
	built = tfh_built_op(o->run, o->process, o->number);
	if (!built)
		return false;
	*op = *built;
	o->number++;
	return true;
}

int tfh_ops_error(const struct tfh_ops *o, struct tfh_err *err)
{
	if (o->err.code && err)
		*err = o->err;
	return o->err.code;
}

static int open_recorded(struct tfh_ops *o, struct tfh_err *err)
{
	struct tfh_gpu *g = tfh_gpu_of(o->run, o->process);

	if (g && !g->n_gpus)
		return 0;
	o->shadow = g ? tfh_shadow(o->run, o->process, err) : NULL;
	if (!o->shadow)
		return g ? err->code : -ENOMEM;
	o->gpus = tfh_rows_open(o->shadow, &tft_gpus, g->gpus, g->n_gpus, &o->run->arena);
	if (g->n_drvr)
		o->drvr = tfh_rows_open(o->shadow, &tft_drvr, g->drvr, g->n_drvr, &o->run->arena);
	if (!o->gpus || (g->n_drvr && !o->drvr))
		return -ENOMEM;
	return tfh_join_open(o->shadow, o->process, o->drvr, &o->join);
}

int tfh_ops_open(struct tfh_run *run, uint32_t process, struct tfh_ops **out, struct tfh_err *err)
{
	struct tfh_ops *o = calloc(1, sizeof(*o));
	struct tfh_err why = {0};
	int rc = 0;

	*out = NULL;
	if (!o)
		return tfh_err_set(err, -ENOMEM, "out of memory");
	o->run = run;
	o->process = process;
	if (!run->built)
		rc = process < run->n_proc ? open_recorded(o, &why) : -EINVAL;
	if (rc) {
		tfh_ops_close(o);
		return tfh_err_set(err, rc, "%s", why.code ? why.text : strerror(-rc));
	}
	*out = o;
	return 0;
}

void tfh_ops_close(struct tfh_ops *o)
{
	if (!o)
		return;
	tfh_join_close(o->join);
	tfh_rows_close(o->gpus);
	tfh_rows_close(o->drvr);
	if (o->shadow)
		tfh_shadow_free(o->shadow, o->process);
	free(o);
}
