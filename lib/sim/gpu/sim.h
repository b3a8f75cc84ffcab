/*
 * Internal interface of the simulated driver. One process-wide lock (sim_mu) guards the graph of
 * pending operations. Memory, modules and the truth log have locks of their own, taken inside
 * sim_mu or alone, never around it.
 */
#ifndef TFH_SIM_GPU_SIM_H
#define TFH_SIM_GPU_SIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "sim/gpu/driver_types.h"

#define SIM_MAX_DEVICES 8
#define SIM_NEVER UINT64_MAX

/* ---- settings (config.c) ---- */
struct sim_rule {
	char *glob;
	int ngrid; /* grid dimensions that must match, 0 for any grid */
	unsigned grid[3];
	uint64_t ns;
};

struct sim_fail {
	char *name;
	uint64_t nth, seen; /* nth 0: every call */
	int code;
};

/* Settings that the simulated NCCL reads through native.h. */
struct sim_nccl_config {
	double gbps;
	uint64_t latency_ns;
	char *dir;
};

/* Settings that the simulated CUPTI reads through tools.h. */
struct sim_cupti_config {
	int version, subscribers, drop_after, shuffle, zero_times;
	size_t buffer_bytes, node_bytes;
	double clock_offset_us, clock_drift_ppm;
	bool last_wins, forced_incomplete, empty_buffers, worker, fork_hang;
};

struct sim_nvml_config {
	double lowered_power, lowered_heat; /* share of the readings */
	int xid;			    /* number; 0: none comes */
	int others;			    /* other processes that use the devices */
	int nvlink;			    /* generation whose counters it has; 0: none */
	int links;			    /* NVLinks to a switch */
	int links_down;			    /* of these, not up */
	char *fabric;	   /* cluster (32 digits) and clique: "0f..ff/1", NULL: none */
	uint64_t delay_ns; /* of each call */
	char *hang;	   /* function that never returns, NULL: none */
};

struct sim_config {
	int devices, driver_version, cc_major, cc_minor, queue_depth;
	double h2d_gbps, d2h_gbps, d2d_gbps, p2p_gbps, pageable_factor;
	uint64_t copy_latency_ns, launch_ns, module_load_ns, alloc_ns, kernel_ns, hang_after;
	double kernel_thread_ns;
	size_t total_memory, staging;
	bool interp, gpa_strict, virtual_time, self_lookup;
	int concurrent_kernels, condition, while_count;
	uint64_t poll_ns, lazy_load_ns, init_delay_ns, abort_after, rendezvous_timeout_ns;
	/* Other processes have the devices for the first taken_ns of every turn_ns; 0: never. */
	uint64_t turn_ns, taken_ns;
	char *truth, *rendezvous;
	struct sim_rule *rules;
	int nrules;
	struct sim_fail *fails;
	int nfails;
	struct sim_cupti_config cupti;
	struct sim_nccl_config nccl;
	struct sim_nvml_config nvml;
	char error[256]; /* empty: settings are good */
};
extern struct sim_config sim_cfg;
/* Reads SIM_CONFIG and SIM_* once; later calls return at once. */
void sim_config_load(void);

/* ---- time (engine/sim_clock.c) ---- */
/* CLOCK_MONOTONIC, whatever the setting `time`. */
static inline uint64_t sim_real_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
/* The clock of the simulation: the real one, or the virtual one of this process. */
uint64_t sim_now(void);
/* These three need sim_mu not held. In virtual time they advance the clock. */
void sim_sleep_until(uint64_t ns);
/* Burns CPU for ns, the cost of a call to its caller. */
void sim_host_cost(uint64_t ns);
/* At the start of a query: completes what is over by now. */
void sim_poll_cost(void);

/* ---- objects ---- */
enum {
	SIM_MAGIC_CTX = 0x51c0,
	SIM_MAGIC_STREAM,
	SIM_MAGIC_EVENT,
	SIM_MAGIC_FUNC,
	SIM_MAGIC_MODULE,
	SIM_MAGIC_GRAPH,
	SIM_MAGIC_NODE,
	SIM_MAGIC_EXEC,
	SIM_MAGIC_POOL,
	SIM_MAGIC_LINK,
	SIM_MAGIC_CONDITION,
	SIM_MAGIC_USER
};

enum sim_engine_id {
	SIM_ENG_H2D,
	SIM_ENG_D2H,
	SIM_ENG_D2D,
	SIM_ENG_COMPUTE,
	SIM_ENG_HOST,
	SIM_NENGINES,
	SIM_ENG_NONE,
	SIM_ENG_VALUE /* waits for and writes of values: polled, not queued (engine/memop.c) */
};

enum sim_dir { SIM_H2D, SIM_D2H, SIM_D2D, SIM_P2P, SIM_H2H };

enum { SIM_MAX_SLOTS = 32 };

struct sim_op;
struct sim_meeting;
/* One operation at a time runs in a slot of an engine. */
struct sim_slot {
	bool busy;
	uint64_t free; /* end of its last operation */
	/* virtual time only */
	struct sim_op *op;
	struct sim_meeting *meeting;
};
struct sim_engine {
	pthread_cond_t wake;
	struct sim_op *head, *tail;
	int nslots, nthreads;
	struct sim_slot slot[SIM_MAX_SLOTS];
};

struct sim_ctx;
struct sim_device {
	int index;
	struct sim_engine eng[SIM_NENGINES];
	struct sim_ctx *primary;
	int primary_refs;
	unsigned primary_flags;
	size_t used;
	uint64_t kernel_ns, copy_ns, received, sent; /* of all operations that are done; atomic */
	struct sim_pool *pool, *current_pool;
};
extern struct sim_device sim_dev[SIM_MAX_DEVICES];

struct sim_capture;
struct sim_stream {
	int magic;
	unsigned flags;
	int prio;
	bool legacy;
	uint64_t id;
	long tid; /* owner of a per-thread default stream, else 0 */
	struct sim_ctx *ctx;
	struct sim_op *tail; /* holds a reference */
	unsigned pending;
	bool dead; /* destroyed, but with pending work */
	struct sim_capture *capture;
	struct sim_node **cap_deps; /* dependencies of the next captured node */
	CUgraphEdgeData *cap_edges;
	size_t ncap_deps;
	struct sim_attributes *attributes;
	struct sim_stream *next;
};

enum { SIM_LIMITS = 10 };
struct sim_ctx {
	int magic, refs;
	struct sim_device *dev;
	unsigned flags, api_version;
	uint64_t id;
	struct sim_stream legacy;
	struct sim_stream *streams; /* all but legacy */
	CUresult sticky;	    /* error of a kernel, returned by all later calls */
	struct sim_green *green;    /* the green context this belongs to (device/green.c) */
	size_t limits[SIM_LIMITS];
	unsigned peers; /* devices to which access is enabled */
};

struct sim_event {
	int magic;
	unsigned flags;
	struct sim_ctx *ctx;
	struct sim_op *op; /* last record, holds a reference */
	struct sim_capture *capture;
	struct sim_node **nodes;
	size_t nnodes;
	struct sim_ipc_event *ipc; /* shared with other processes (stream/ipc_event.h) */
};

/* ---- work: of an operation or a graph node ---- */
enum sim_kind {
	SIM_K_KERNEL,
	SIM_K_COPY,
	SIM_K_MEMSET,
	SIM_K_HOST,
	SIM_K_EVENT,
	SIM_K_MARK,
	SIM_K_FREE,
	SIM_K_ALLOC,
	SIM_K_VALUE
};

struct sim_copy {
	char *dst;
	const char *src;
	size_t width, height, depth, dpitch, dslice, spitch, sslice;
	enum sim_dir dir;
	bool pageable;
	char *staged; /* source bytes read at call time, freed after the copy */
};

struct sim_launch {
	struct sim_func *func;
	struct sim_ctx *ctx;
	unsigned grid[3], block[3], shared;
	char *args; /* packed parameters, owned; NULL if their layout is unknown */
	size_t nargs;
};

struct sim_set {
	char *dst;
	size_t pitch, width, height; /* width in elements */
	unsigned value, elem;
};

/* Stream memory operations, in sequence. */
struct sim_value {
	int what; /* CUstreamBatchMemOpType */
	unsigned flags;
	uint64_t address, value;
};
struct sim_values {
	struct sim_value *v; /* owned */
	unsigned n, at;	     /* at: the next one to do */
};

struct sim_work {
	enum sim_kind kind;
	enum sim_engine_id engine;
	struct sim_device *dev;
	struct sim_ctx *ctx; /* of its stream; set when it is submitted */
	union {
		struct sim_copy copy;
		struct sim_launch launch;
		struct sim_set set;
		struct {
			CUhostFn fn;
			CUstreamCallback cb;
			void *arg;
			CUstream stream;
		} host;
		CUdeviceptr free;
		struct sim_reserve *reserve; /* memory of an allocation node */
		CUevent event;		     /* of an event node */
		struct sim_values values;
	};
};

/* Copies w with its owned buffers, or frees them. */
struct sim_work sim_work_dup(const struct sim_work *w);
void sim_work_release(struct sim_work *w);
size_t sim_copy_bytes(const struct sim_copy *c);
/* Duration of w on its engine in ns; SIM_NEVER for the kernel that hangs. */
uint64_t sim_work_ns(const struct sim_work *w);

/* ---- one call of the interface (entry/enter.c) ---- */
struct sim_call {
	const char *name;
	uint64_t no, t0;
	bool per_thread; /* the _ptsz/_ptds variant */
	/* for the truth log, besides name, times and result */
	uint64_t bytes, stream;
	const char *dir, *host, *kernel;
	bool captured;
	struct sim_tools_call *tool; /* while a tracing library is attached (tools.h) */
};
enum sim_need { SIM_NEED_NONE, SIM_NEED_INIT, SIM_NEED_CTX };
enum sim_state { SIM_FRESH, SIM_READY, SIM_FORKED, SIM_EXITED };
extern enum sim_state sim_state;
extern __thread bool sim_in_callback;
CUresult sim_enter(struct sim_call *c, const char *name, enum sim_need need, bool per_thread);
CUresult sim_leave(struct sim_call *c, CUresult r);
/* The error that the setting `fail` injects into this call of name, or 0. */
CUresult sim_injected(const char *name);
uint64_t sim_new_id(void);
long sim_tid(void);

/* ---- operations (engine/engine.c); all need sim_mu unless said otherwise ---- */
extern pthread_mutex_t sim_mu;
struct sim_op {
	unsigned refs;	/* under sim_mu */
	uint32_t done;	/* futex word */
	unsigned ndeps; /* not yet done; the submitter holds 1 while it adds others */
	struct sim_op **succ;
	unsigned nsucc, csucc;
	uint64_t ready, start, end; /* ns */
	uint64_t call, stream_id;
	int prio;		   /* of its stream: lower numbers go first */
	struct sim_stream *stream; /* the stream that counts it as pending, or NULL */
	struct sim_op *qnext;
	uint32_t graph; /* executable graph that it belongs to, or 0 */
	uint64_t node;	/* of that graph; SIM_NODE_ALL at its end */
	struct sim_tools_op *tool;
	struct sim_work work;
};
struct sim_op *sim_op_new(const struct sim_work *w, uint64_t call, uint64_t stream_id);
void sim_op_depend(struct sim_op *op, struct sim_op *on);
/* Releases the submitter's hold; the operation runs once its dependencies are done. */
void sim_op_commit(struct sim_op *op);
void sim_op_ref(struct sim_op *op);
void sim_op_unref(struct sim_op *op);
/* Waits for op and drops the caller's reference; NULL counts as done. Without sim_mu. */
void sim_op_wait(struct sim_op *op);
bool sim_op_done(const struct sim_op *op);
/* Waits until the stream's launch queue has space. With sim_mu, which it may release meanwhile. */
void sim_wait_room(struct sim_stream *s);
void sim_engine_init(void);
/* Starts the engine's thread unless it runs. False on failure; then no operation of that engine may
 * be committed. With sim_mu. */
bool sim_engine_start(struct sim_device *dev, enum sim_engine_id id);
void sim_perform(const struct sim_work *w);
/* Stream memory operations (engine/memop.c): a copy of *p, checked. */
CUresult sim_values_from(struct sim_work *w, struct sim_ctx *ctx, const CUstreamBatchMemOpParams *p,
			 unsigned n, bool first_version);

/* ---- streams (stream/stream.c) ---- */
struct sim_stream *sim_stream_new(struct sim_ctx *ctx, unsigned flags, int prio);
/* Current context of the calling thread, NULL if none. */
struct sim_ctx *sim_ctx_current(void);
/* The stream of handle h. Calls with an explicit stream need no current context (drjit makes such
 * calls on real devices); a default stream without one is an error, as is a failed context. */
CUresult sim_stream_get(struct sim_call *c, CUstream h, struct sim_stream **out);
/* Submits work w (ownership is taken, also on failure) to stream s in order. *out, if not NULL,
 * gets a reference to the operation, or NULL if the call was captured into a graph. */
CUresult sim_submit(struct sim_call *c, struct sim_stream *s, struct sim_work *w,
		    struct sim_op **out);
/* Makes op the next one in s, by the rules of legacy and blocking streams. With sim_mu. */
void sim_stream_order(struct sim_stream *s, struct sim_op *op);
/* One operation of s is done; frees s if it was destroyed and this was the last. With sim_mu. */
void sim_stream_leave(struct sim_stream *s);
/* Waits for all work of s (legacy: also of all blocking streams). */
void sim_stream_drain(struct sim_stream *s);
void sim_ctx_drain(struct sim_ctx *ctx);
void sim_stream_init(struct sim_stream *s, struct sim_ctx *ctx, unsigned flags);
void sim_streams_free(struct sim_ctx *ctx);

/* ---- capture (graph/stream_capture.c), with sim_mu but for the last ---- */
CUresult sim_capture_work(struct sim_stream *s, struct sim_work *w);
CUresult sim_capture_record(struct sim_stream *s, struct sim_event *e, bool external);
/* True if a capture handled the wait, with the result in *r. */
bool sim_capture_wait(struct sim_stream *s, struct sim_event *e, bool external, CUresult *r);
/* An operation that no capture allows (sync, query) invalidates it. Returns the error or 0. */
CUresult sim_capture_forbid(struct sim_stream *s);
/* The stream is destroyed. */
void sim_capture_leave(struct sim_stream *s);
/* Calls that may wait for the device invalidate the captures that forbid this to the calling
 * thread. Returns the error or 0. */
CUresult sim_capture_unsafe(void);
extern unsigned sim_captures; /* in progress */
/* The same without sim_mu, for calls identified by name. */
CUresult sim_capture_check(const char *name);

/* ---- graphs (graph/structure.c, more in graph.h) ---- */
/* Attributes of streams and kernel nodes (graph/attributes.c); NULL has none. */
struct sim_attributes;
struct sim_attributes *sim_attributes_copy(const struct sim_attributes *a);
struct sim_condition;
struct sim_node {
	int magic, type;
	struct sim_graph *graph;
	size_t index;	     /* in the graph; never changes */
	uint64_t id, origin; /* origin: id of the node that this one is a copy of, or 0 */
	struct sim_work work;
	struct sim_node **deps;
	CUgraphEdgeData *edges; /* of each of deps */
	size_t ndeps;
	void **params;		   /* into work.launch.args, for reading the parameters back */
	struct sim_graph **bodies; /* of a child graph node, of a conditional node */
	size_t nbodies;
	struct sim_condition *condition;
	int condition_type;
	struct sim_attributes *attributes;
	/* in executable graphs */
	bool disabled, leaf;
	uint32_t number; /* in the graph with all below it */
};
struct sim_user;
struct sim_graph {
	int magic;
	uint32_t id;
	struct sim_node **nodes; /* NULL where one was destroyed */
	size_t n;
	struct sim_node *owner; /* the node that contains this graph, or NULL */
	struct sim_user *users; /* objects kept alive by the graph */
	unsigned conditions;	/* handles created for it that no node uses yet */
};
struct sim_graph *sim_graph_new(void);
/* Takes ownership of w; copies deps. */
struct sim_node *sim_graph_add(struct sim_graph *g, int type, const struct sim_work *w,
			       struct sim_node *const *deps, size_t ndeps);
void sim_graph_free(struct sim_graph *g);
/* Captured: an allocation of n bytes (without sim_mu), and a launch of graph g. */
CUresult sim_capture_alloc(struct sim_stream *s, struct sim_device *dev, size_t n,
			   CUdeviceptr *out);
CUresult sim_capture_graph(struct sim_stream *s, const struct sim_graph *g);
/* Memory of a graph (graph/graph_memory.c), freed by being marked; false if it was free. */
bool sim_reserve_is(const void *p);
bool sim_reserve_free(const void *p);
/* Id of an executable graph, 0 if it is none. */
uint32_t sim_exec_id(CUgraphExec e);
/* Takes ownership of w; copies deps. */
struct sim_node *sim_graph_add(struct sim_graph *g, int type, const struct sim_work *w,
			       struct sim_node *const *deps, size_t ndeps);
void sim_graph_free(struct sim_graph *g);

/* ---- memory (memory/allocate.c) ---- */
enum sim_mem { SIM_M_DEVICE, SIM_M_PINNED, SIM_M_MANAGED, SIM_M_REGISTERED };
struct sim_range {
	char *p;
	size_t n;
	enum sim_mem kind;
	struct sim_ctx *ctx;
	struct sim_device *dev;
	unsigned flags;
	uint64_t id;
	struct sim_pool *pool;
	unsigned access;	     /* of the device: 0 none, 1 read, 3 read and write */
	int owner;		     /* enum sim_owner in objects.h: which calls free it */
	bool charged;		     /* counts as used memory of dev */
	bool freeing;		     /* its stream-ordered free is pending */
	int fd;			     /* the file that other processes map, or -1 */
	struct sim_phys *phys;	     /* what cuMemMap mapped here */
	struct sim_managed *managed; /* advice and location of managed memory */
};
/* Finds the allocation that contains p; copies it to *out. */
bool sim_mem_find(const void *p, struct sim_range *out);
/* Device memory for a module variable. */
CUresult sim_mem_static(struct sim_device *dev, size_t n, char **out);
/* Frees an allocation of any kind by its first byte, without waiting. */
CUresult sim_mem_release(const void *p, bool host);

/* ---- modules (kernel/module.c) ---- */
struct sim_param {
	unsigned off, size;
	char *name; /* NULL if unknown */
};
struct ptx_prog;
typedef void (*sim_body_fn)(const void *args, bool over);
struct sim_func {
	int magic;
	char *name;
	struct sim_module *mod;
	struct sim_param *params;
	int nparams; /* -1: unknown */
	unsigned psize;
	unsigned max_threads;
	int max_dynamic;
	unsigned block[3], legacy_shared; /* of cuFuncSetBlockShape */
	char *legacy_args;		  /* of cuParamSetv */
	size_t nlegacy;
	const char *text, *text_end; /* PTX of the body, or NULL */
	struct ptx_prog *prog;
	bool decoded, loaded;
	int rule;	  /* rule that always fits, -1 none; -2 not looked up */
	sim_body_fn body; /* of another library (native.h), or NULL */
	struct sim_func *next;
};
static inline bool sim_func_is(const struct sim_func *f)
{
	return f && f->magic == SIM_MAGIC_FUNC;
}
struct sim_var {
	char *name;
	size_t size;
	char *mem;
	struct sim_var *next;
};
struct sim_module {
	int magic;
	bool opaque; /* names unknown: any name is accepted */
	char *text;
	struct sim_func *funcs;
	struct sim_var *vars;
	struct sim_ctx *ctx;
};
/* Reads kernels and variables out of PTX text; m->text is owned by m. (ptx/outline.c) */
void sim_ptx_scan(struct sim_module *m);
/* The same from a cubin's symbol table, as far as present. (kernel/image.c) */
void sim_elf_scan(struct sim_module *m, const void *image);
struct sim_func *sim_func_add(struct sim_module *m, const char *name, size_t len);
struct sim_var *sim_var_add(struct sim_module *m, const char *name, size_t len, size_t size);
/* Packs launch arguments from params or extra in the kernel's layout. (kernel/launch.c) */
CUresult sim_launch_set(struct sim_work *w, struct sim_ctx *ctx, const CUDA_KERNEL_NODE_PARAMS *p);
CUresult sim_launch_run(struct sim_call *c, const CUDA_KERNEL_NODE_PARAMS *p, CUstream h);
/* Like cuEventRecord. (stream/event.c) */
CUresult sim_event_record(struct sim_call *c, CUevent e, CUstream h);
/* Fills w from a 3D copy description; directions by memory types. (memory/copy.c) */
CUresult sim_copy_from_3d(struct sim_work *w, const CUDA_MEMCPY3D *p, struct sim_ctx *ctx);
CUresult sim_set_fill(struct sim_work *w, CUdeviceptr dst, size_t pitch, unsigned value,
		      unsigned elem, size_t width, size_t height, struct sim_ctx *ctx);

/* ---- truth log (truth.c) ---- */
extern bool sim_truth_on;
void sim_truth_open(void);
void sim_truth_close(void);
void sim_truth_call(const struct sim_call *c, uint64_t t1, CUresult r);
void sim_truth_op(const struct sim_op *op);
void sim_truth_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- interpreter (ptx/statements.c, ptx/interpret.c) ---- */
/* Decodes once; returns NULL with the reason in err if the kernel uses something unknown. */
struct ptx_prog *ptx_decode(const struct sim_func *f, char *err, size_t nerr);
void ptx_free(struct ptx_prog *p);
/* Runs all blocks; CUDA_ERROR_ILLEGAL_ADDRESS on a wild access, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult ptx_run(struct ptx_prog *p, const unsigned *grid, const unsigned *block,
		 unsigned dyn_shared, const char *args, size_t nargs);

#endif
