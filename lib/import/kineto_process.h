/* What the entries of one process of a Kineto trace have shown so far: kineto_entry.c adds them,
 * kineto_end.c completes at the end of the file what refers to later entries. */
#ifndef TFH_IMPORT_KINETO_PROCESS_H
#define TFH_IMPORT_KINETO_PROCESS_H

#include "base/key_table.h"
#include "import/kineto.h"
#include "model/vec.h"

#define TFH_KINETO_LABELS 64

/* A call whose op, or whose awaited event, is known at the end of the file. */
struct tfh_kineto_late_call {
	struct tfh_event ev;
	uint32_t correlation;
	uint64_t anchor;
};
struct tfh_kineto_late_op {
	struct tfh_op op;
	uint64_t anchor;
};
struct tfh_kineto_wait {
	int64_t record; /* correlation id of the awaited cudaEventRecord */
	uint32_t stream, on;
};

struct tfh_kineto_step { /* as the device's rows have it */
	uint64_t number;
	int64_t t0, t1;
};

struct tfh_kineto {
	struct tfh_builder *b;
	struct tfh_kineto_open *open;
	uint32_t process;	 /* once there is an entry */
	uint64_t entries, count; /* count: entries without waits and unknown calls */
	struct tfh_map thread;	 /* tid -> index + 1 */
	int64_t last_thread;
	uint32_t threads;
	uint64_t others;      /* number of unused entries */
	struct tfh_map fn;    /* hash of a call's name -> row, 1: unknown */
	struct tfh_map arrow; /* either end of an arrow -> id */
	struct tfh_map npu;   /* id of an NPU's arrow -> correlation */
	struct tfh_map wait;  /* correlation of a wait -> index in `waits` + 1 */
	TFH_VEC(struct tfh_kineto_late_call) call;
	TFH_VEC(struct tfh_kineto_late_op) op;
	TFH_VEC(struct tfh_kineto_wait) waits;
	struct tfh_map step; /* number -> index in `steps` + 1 */
	TFH_VEC(struct tfh_kineto_step) steps;
	int64_t host_pid, device; /* host_pid: -1 until known; device: likewise */
	bool rocprof;		  /* written by rocprof, not by PyTorch */
	bool ascend;		  /* has rows of an NPU */
	bool gpu;		  /* the trace has an op, or a call that issues ops */
	/* Latest begin of the program's ops, ranges, launches and waits. */
	int64_t last_begin;
	int64_t last_end; /* latest end of its ops and ranges */
	int64_t stop;	  /* when the profiler stopped, if recorded */
	struct {
		int64_t pid;
		char text[64];
	} label[TFH_KINETO_LABELS];
	uint32_t labels;
};

/* The thread of a number of the trace, which is added if it is new. Its index, or -ENOMEM. */
int64_t tfh_kineto_thread(struct tfh_kineto *k, int64_t tid);
/* The name of a process, "": none. */
const char *tfh_kineto_label(const struct tfh_kineto *k, int64_t pid);

#endif
