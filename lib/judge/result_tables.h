/* The tables of a result (result.h): pipeline stages, kernels, copies, device memory, discarded
 * spans, and what the recording lacks. */
#ifndef TFH_JUDGE_RESULT_TABLES_H
#define TFH_JUDGE_RESULT_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fn.h"
#include "format/sketch.h"
#include "judge/numbers.h"
#include "model/symbols/kernel_family.h"

struct tfh_input_stage {
	const char *name;   /* ParallelMapV2 */
	const char *prefix; /* Iterator::Root::Prefetch::ParallelMapV2 */
	double self_s_per_step, calls_per_step, capacity_per_s;
	uint32_t parallelism; /* 0 unknown */
	bool async, guilty;
	const char *file, *function; /* that make it; NULL: not known */
	uint32_t line;
};

/* A device that the process computes on. */
struct tfh_device_time {
	uint32_t device;  /* its number in the process */
	double compute_s; /* per step: time in which it computes */
};

struct tfh_kernel {
	const char *name;
	double calls_per_step, median_s, s_per_step, share_of_busy;
};

/* What kernels of one kind take together. */
struct tfh_family_time {
	enum tfh_kernel_family family;
	uint32_t kernels; /* different names */
	double s_per_step, share_of_busy;
};

struct tfh_transfer {
	const char *fn;
	enum tfh_dir dir;
	int pageable; /* 1, 0, -1 unknown */
	double calls_per_step, bytes_per_step, bytes_per_s;
	uint64_t blocking_calls, calls;
	const char *where; /* call site, "": unknown */
	uint32_t stack;	   /* the call site as frames (tfh_run_stack, tfh_run_python) */
};

/* Shares of the step by XProf's rules, the most important kind first. */
enum tfh_xprof_part {
	TFH_XPROF_COMPUTE,
	TFH_XPROF_OUTPUT,
	TFH_XPROF_DEVICE,
	TFH_XPROF_COLLECTIVES,
	TFH_XPROF_INPUT,
	TFH_XPROF_OTHER,
	TFH_XPROF_COUNT
};

/* Device memory requested from the driver. */
struct tfh_allocation {
	const char *fn;
	int64_t t;
	uint64_t bytes;
};
struct tfh_failure {
	struct tfh_allocation at, before[TFH_HEAP_LAST]; /* before: latest first */
	uint32_t n_before;
	uint64_t in_use;
};
struct tfh_heap_sum {
	uint64_t in_use, peak, allocations, failed;
	uint64_t capacity; /* of the devices that ran ops, 0 unknown */
	int64_t peak_t;
	uint64_t line[TFH_HEAP_POINTS]; /* maximum use in equal parts of the run */
	uint32_t drawn, n_failure;
	struct tfh_failure failure[TFH_HEAP_FAILURES];
};

/* The last kernel of a stream: what a hung wait waits for. */
struct tfh_last_launch {
	uint32_t stream;
	uint64_t handle;
	const char *kernel;
};

struct tfh_discarded_call {
	const char *fn;
	uint64_t count;
	double total_s;
};
struct tfh_discarded_anchor { /* copies in one direction, or waits */
	uint64_t count, bytes;
	double total_s;
};

/* A span whose records were discarded to save space, as described by the sketches of its chunks.
 * Its steps are not among the others. */
struct tfh_discarded {
	double start_s, end_s;
	uint64_t events, launches;
	uint64_t steps;
	bool estimated;		 /* steps by the number of launches, not by the step clock */
	double mean_s, median_s; /* a step's mean; the median of the chunks' means; NAN: unknown */
	struct tfh_discarded_call *call; /* the most frequent first */
	uint32_t n_call;
	bool knows_anchors; /* the anchors of all chunks are known */
	struct tfh_discarded_anchor anchor[TFT_SKETCH_ANCHORS];
};

struct tfh_quality {
	uint64_t events, dropped, unhooked;
	uint64_t unnamed; /* uses of names without an id of their own */
	double unattributed_share, overhead_share;
	/* What device times cost, as shares of the run: CUPTI's own work as it reports it, and
	 * processor time of the recorder's thread. NAN: there are none, or it is not known. */
	double cupti_share, device_times_share;
	/* Seconds per second that the job's threads together waited for processors (may exceed 1);
	 * NAN: not sampled. crowded: the wait is long enough to distort times. */
	double run_delay_share;
	bool crowded;
	bool clean_end;
	const char *gpu_times; /* "cupti" "none" "imported" */
	/* Why device times were taken in windows from some moment on; NULL: they were not. */
	const char *graphs;
	const char *clock; /* "tsc" "clock_gettime" */
	double clock_residual_s;
	uint32_t files, files_complete, holes;
	const char *const *unhooked_names;
};

#endif
