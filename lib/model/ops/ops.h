/*
 * Device ops as the analysis sees them, whatever recorded them: kernels, copies, memsets (and whole
 * graph launches if nothing finer was recorded), each with its issuing host call. Times are
 * nanoseconds since the run's start, like those of host events.
 */
#ifndef TFH_MODEL_OPS_OPS_H
#define TFH_MODEL_OPS_OPS_H

#include "model/model.h"

/* Values are those of the GPUS column "kind" (FORMAT.md 2.8). */
enum tfh_op_kind {
	TFH_OP_KERNEL = 1,
	TFH_OP_COPY = 2,
	TFH_OP_MEMSET = 3,
	TFH_OP_SYNC = 4, /* a synchronisation on the device; takes no engine */
	TFH_OP_GRAPH = 5 /* a whole graph launch: its nodes were not recorded */
};

struct tfh_op {
	int64_t t0, t1;			       /* on the device */
	uint64_t number;		       /* running number of the op in its process, from 0 */
	uint32_t process, device, ctx, stream; /* correlation: CUPTI's id, unique in the process */
	uint8_t kind;			       /* enum tfh_op_kind */
	uint8_t dir;			       /* copies: enum tfh_dir */
	bool pageable;			       /* copies: a host side is not pinned */
	bool communication;		       /* a collective or a peer exchange, by its name */
	bool managed;			       /* a migration of managed memory */
	const char *name;		       /* kernels; else "" */
	uint64_t bytes, grid, block;	       /* grid and block as in the launch record's words */
	uint32_t correlation;
	uint32_t graph; /* 0: not a graph's node */
	uint64_t node;
	/* The issuing host call; graph nodes have that of the graph launch. If unknown (lost, or
	 * recorded only later), issue0 = issue1 = INT64_MIN. */
	int64_t issue0, issue1;
	uint32_t thread; /* index in tfh_run_threads, UINT32_MAX unknown */
	uint64_t call;	 /* record number in that thread, UINT64_MAX unknown */
};

/* Where device times come from. */
enum tfh_gpu_times { TFH_GPU_NONE, TFH_GPU_CUPTI, TFH_GPU_IMPORTED };

/* Facts about a process' device times. Only within spans does the absence of an op mean idleness.
 */
struct tfh_gpu_span {
	int64_t t0, t1;
	bool nodes; /* graphs' nodes were recorded, not only whole launches */
};
struct tfh_gpu_info {
	enum tfh_gpu_times source;
	const struct tfh_gpu_span *span; /* in order, not overlapping */
	uint32_t n_span;
	uint64_t ops, dropped; /* dropped: number of ops that CUPTI reported as lost */
	uint64_t unissued;     /* ops whose issuing call is unknown */
	uint64_t early;	       /* part of `unissued` queued before the first recorded call */
	bool dependencies;     /* streams, events and issuing calls are known: tier A is possible */
	uint32_t devices;      /* devices that ran ops, 0: unknown */
	bool collectives;      /* some may wait for other devices; valid if devices is known */
	uint64_t memory;       /* bytes of the smallest device, 0 unknown */
	uint32_t processors;   /* multiprocessors of the largest device, 0 unknown */
	uint64_t overhead_ns;  /* CUPTI's own overhead as it reports it, 0 unknown */
	/* Processor time of the recorder's thread for device times, 0 unknown. */
	uint64_t recorder_ns;
	/* If there are no device times: the reason, a sentence for the report, or "". */
	const char *why;
	const char *library; /* the CUPTI library that recorded them, "" unknown */
	const char *graphs;  /* why nodes of graphs were not recorded, "" if they were */
};
/* Whether device times were recorded during all of [t0, t1]. */
static inline bool tfh_gpu_timed(const struct tfh_gpu_info *g, int64_t t0, int64_t t1)
{
	for (uint32_t i = 0; i < g->n_span; i++)
		if (g->span[i].t0 <= t0 && t1 <= g->span[i].t1)
			return true;
	return false;
}
void tfh_run_gpu(struct tfh_run *run, uint32_t process, struct tfh_gpu_info *out);

/* Every op of a process in order of its start, joined with its issuing call. Bounded memory. */
struct tfh_ops;
int tfh_ops_open(struct tfh_run *run, uint32_t process, struct tfh_ops **out, struct tfh_err *err);
bool tfh_ops_next(struct tfh_ops *o, struct tfh_op *op);
/* The same without a copy: valid until the call after the next; NULL at the end or on error. */
const struct tfh_op *tfh_ops_borrow(struct tfh_ops *o);
/* Starts again from the first op. If all ops have been read before, each then has only its times
 * and place, `kind`, `dir`, `pageable`, `communication`, `managed`, a copy's `bytes`, and the time
 * of its call; this saves most of the reading. */
void tfh_ops_brief(struct tfh_ops *o);
int tfh_ops_error(const struct tfh_ops *o, struct tfh_err *err);
void tfh_ops_close(struct tfh_ops *o);
/* Finds the ops' calls during the first pass over a process' events, so that later passes need to
 * read no calls. Close it after the merge; NULL if there is nothing to do. */
struct tfh_ops *tfh_ops_join(struct tfh_merge *m, struct tfh_run *run, uint32_t process);

#endif
