/*
 * The functions that tfhook can record, as one numbered table.
 *
 * The numbers (record field `fn`) belong to one build. The HEAD chunk of each trace file carries
 * the table that it was written with, so a reader does not need the writer's version.
 *
 * Rows come from base/cuda_api.def (driver functions), base/tf_api.def (TensorFlow, marks) and
 * base/nccl_api.def.
 */
#ifndef TFH_BASE_FN_H
#define TFH_BASE_FN_H

#include <stdbool.h>
#include <stdint.h>

/* What a call does, which decides how the analysis reads it. Values are in trace files: only
 * append. */
enum tfh_family {
	TFH_FAM_NONE = 0,
	TFH_FAM_COPY = 1,
	TFH_FAM_MEMSET = 2,
	TFH_FAM_LAUNCH = 3,
	TFH_FAM_GRAPH_LAUNCH = 4,
	TFH_FAM_GRAPH = 5,	  /* build, instantiate, update */
	TFH_FAM_CAPTURE = 6,	  /* stream capture begin/end/info */
	TFH_FAM_SYNC = 7,	  /* blocks the host until device work has completed */
	TFH_FAM_QUERY = 8,	  /* polls without blocking */
	TFH_FAM_EVENT = 9,	  /* record, create, destroy, elapsed */
	TFH_FAM_STREAM_WAIT = 10, /* ordering on the device, the host does not wait */
	TFH_FAM_STREAM = 11,	  /* create, destroy, attributes */
	TFH_FAM_HOST_FUNC = 12,	  /* host callbacks in a stream */
	TFH_FAM_ALLOC = 13,	  /* device, pinned, managed allocation and registration */
	TFH_FAM_FREE = 14,
	TFH_FAM_MANAGED = 15, /* prefetch, advise */
	TFH_FAM_MODULE = 16,  /* module, library, JIT */
	TFH_FAM_LOOKUP = 17,  /* function and symbol lookup */
	TFH_FAM_CONTEXT = 18, /* init, contexts, devices */
	TFH_FAM_PROFILER = 19,
	TFH_FAM_COMMUNICATION = 20, /* NCCL */
	TFH_FAM_CONSUMER = 32,	    /* get-next of the training loop: one batch delivered */
	TFH_FAM_STAGE = 33,	    /* get-next of one stage of a tf.data pipeline */
	/* Dataset loop inside a graph; contains get-next calls and steps. */
	TFH_FAM_REDUCE = 34,
	TFH_FAM_EXECUTE = 35, /* one eager op or function call (TFE_Execute) */
	TFH_FAM_SESSION = 36, /* one TF_SessionRun */
	TFH_FAM_MARK = 48,    /* tfhook.h marks */
};

/* Whether calls of a family launch kernels. */
static inline bool tfh_family_launches(unsigned family)
{
	return family == TFH_FAM_LAUNCH || family == TFH_FAM_GRAPH_LAUNCH;
}

/* Whether they issue device ops: kernels, copies, memsets. */
static inline bool tfh_family_issues(unsigned family)
{
	return tfh_family_launches(family) || family == TFH_FAM_COPY || family == TFH_FAM_MEMSET;
}

/* Meaning of a CALL record's three argument words. Values are in trace files: only append. */
enum tfh_args {
	TFH_ARGS_NONE = 0,
	TFH_ARGS_COPY = 1,	  /* bytes | dst | src */
	TFH_ARGS_LAUNCH = 2,	  /* function | grid | block, as in layout.h */
	TFH_ARGS_ALLOC = 3,	  /* bytes | address (result) | flags */
	TFH_ARGS_FREE = 4,	  /* 0 | address | 0 */
	TFH_ARGS_HANDLE = 5,	  /* handle | second handle or flags | third */
	TFH_ARGS_GETNEXT = 6,	  /* iterator id | stage id | self ticks */
	TFH_ARGS_EXECUTE = 7,	  /* name id | inputs | outputs */
	TFH_ARGS_MEMSET = 8,	  /* bytes | dst | value */
	TFH_ARGS_GRAPH = 9,	  /* graph exec handle | version | kernel nodes */
	TFH_ARGS_COLLECTIVE = 10, /* bytes | communicator | sequence number:32, peer or root:32 */
};

/* Copy direction of a function. TFH_DIR_ANY is resolved in model/ from the two addresses. */
enum tfh_dir {
	TFH_DIR_NONE = 0,
	TFH_DIR_H2D = 1,
	TFH_DIR_D2H = 2,
	TFH_DIR_D2D = 3,
	TFH_DIR_H2H = 4,
	TFH_DIR_P2P = 5,
	TFH_DIR_ANY = 6,
};

/* Properties, a bit set. */
enum {
	TFH_FN_SYNC_COPY = 1, /* synchronous variant: may wait for earlier work */
	TFH_FN_PTDS = 2,      /* stream 0 is the calling thread's default stream */
	TFH_FN_TRIGGER = 4,   /* starts recording: copy, launch, get-next, step */
	TFH_FN_ALWAYS = 8,    /* recorded even while recording is paused (handles, memory) */
};

/* One row. `name` is the exported symbol, for C++ symbols the readable name. */
struct tfh_fn_info {
	const char *name;
	uint8_t family; /* enum tfh_family */
	uint8_t args;	/* enum tfh_args */
	uint8_t dir;	/* enum tfh_dir */
	uint8_t props;	/* TFH_FN_* */
};

#define TFH_FN_ENUM_ROW(name, ...) TFH_FN_##name,
enum tfh_fn {
	TFH_FN_NONE = 0,
#define CUDA_FN(name, ...) TFH_FN_ENUM_ROW(name)
#include "base/cuda_api.def"
#undef CUDA_FN
#define TF_FN(name, ...) TFH_FN_ENUM_ROW(name)
#include "base/tf_api.def"
#undef TF_FN
#define NCCL_FN(name, ...) TFH_FN_ENUM_ROW(name)
#include "base/nccl_api.def"
#undef NCCL_FN
	TFH_FN_COUNT
};

/* The table, indexed by enum tfh_fn; row 0 is {"", 0...}. */
extern const struct tfh_fn_info tfh_fn_table[TFH_FN_COUNT];

#endif
