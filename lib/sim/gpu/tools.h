/*
 * Events of the simulated driver for a tracing library: every call, and every operation that an
 * engine has completed. NVIDIA's library uses undocumented tables of the driver for this; the
 * simulated one gets the table below from cuGetExportTable. One client at a time.
 */
#ifndef TFH_SIM_GPU_TOOLS_H
#define TFH_SIM_GPU_TOOLS_H

#include "sim/gpu/sim.h"

enum { SIM_TOOLS_VERSION = 1 };
/* The bytes of the name under which cuGetExportTable has the table. */
#define SIM_TOOLS_UUID "simgpu-tools-001"

/* Node of the entry for a whole graph launch. */
#define SIM_NODE_ALL UINT64_MAX

enum sim_tools_kind { SIM_TOOLS_KERNEL, SIM_TOOLS_COPY, SIM_TOOLS_MEMSET, SIM_TOOLS_GRAPH };

/* Kinds of memory, numbered as in CUPTI. */
enum sim_tools_mem {
	SIM_TOOLS_PAGEABLE = 1,
	SIM_TOOLS_PINNED = 2,
	SIM_TOOLS_DEVICE = 3,
	SIM_TOOLS_MANAGED = 5
};

/* Times are CLOCK_MONOTONIC ns; for an operation in progress end is 0, and so is start until it
 * runs. */
struct sim_tools_op {
	enum sim_tools_kind kind;
	uint32_t device, context, stream;
	uint32_t correlation; /* number of the call that issued it, as in the truth log */
	uint32_t graph;	      /* executable graph, 0 outside of one */
	uint64_t node;
	uint64_t issued, start, end;
	bool async, taken;
	union {
		struct {
			const char *name; /* valid during the callback only */
			unsigned grid[3], block[3], shared;
		} kernel;
		struct {
			uint64_t bytes;
			enum sim_dir dir;
			enum sim_tools_mem src, dst;
			uint32_t src_device, dst_device;
		} copy;
		struct {
			uint64_t bytes;
			unsigned value;
			enum sim_tools_mem mem;
		} set;
	};
	struct sim_op *op;
	struct sim_tools_op *next, *prev;
};

struct sim_tools_call {
	const char *name;
	uint32_t correlation;
	CUcontext context;
	uint32_t context_id, stream; /* stream is known when the call ends; 0: none */
	const char *kernel;
	CUresult result;
	/* the client's, between enter and leave */
	uint64_t start, data;
	int id;
};

/* `done` is called with the driver's lock held, so it must not call the driver. */
struct sim_tools_client {
	void (*enter)(struct sim_tools_call *c);
	void (*leave)(struct sim_tools_call *c);
	void (*done)(const struct sim_tools_op *op);
};

/* Of a device, since the process began. */
struct sim_tools_counters {
	uint64_t kernel_ns, copy_ns, received, sent, memory;
};

struct sim_tools_table {
	size_t size;
	int version;
	const struct sim_cupti_config *config;
	const struct sim_nvml_config *nvml;
	/* The client stays attached until attach(NULL); calls in progress may still reach the
	 * previous client. */
	void (*attach)(const struct sim_tools_client *client);
	/* Takes device memory permanently. With the driver's lock held. */
	void (*take_memory)(uint32_t device, size_t bytes);
	/* Passes on every pending operation, once; it is not reported when done. */
	void (*take_pending)(void (*each)(const struct sim_tools_op *op));
	/* The error that the setting `fail` injects into this call of name, or 0. */
	CUresult (*injected)(const char *name);
	/* Ids as in the operations; 0 if the handle is invalid. */
	uint32_t (*context_id)(CUcontext ctx);
	uint32_t (*device_of)(CUcontext ctx);
	uint32_t (*stream_id)(CUcontext ctx, CUstream s, bool per_thread);
	uint32_t (*graph_id)(CUgraph g);
	uint32_t (*exec_id)(CUgraphExec e);
	uint64_t (*node_id)(CUgraphNode n);
	/* A fresh id: larger than that of every object made before. */
	uint64_t (*new_id)(void);
	enum sim_state (*state)(void);
	/* False if there is no such device. */
	bool (*counters)(int device, struct sim_tools_counters *out, uint64_t *total_memory);
	uint64_t (*now)(void); /* the clock of all these times */
};
extern const struct sim_tools_table sim_tools_table;

/* ---- hooks in the driver; all but the first two with sim_mu ---- */
extern bool sim_tools_on;
void sim_tools_enter(struct sim_call *c);
void sim_tools_leave(struct sim_call *c, CUresult r);
void sim_tools_issue(struct sim_op *op);
void sim_tools_done(struct sim_op *op);

#endif
