/*
 * What the wrappers of base/cuda_api.def record after the real call: the macros of the table's last
 * column.
 *
 * The functions behind the macros are inlined with constant fn, kind and properties, so that a copy
 * or a launch costs a few stores. Rare work (a handle seen for the first time, extents, batches,
 * graphs) is in note.c, handles.c and graph.c. Output parameters are read only after success, and
 * only if the program passed them.
 */
#ifndef TFH_HOOK_DRIVER_NOTE_H
#define TFH_HOOK_DRIVER_NOTE_H

#include "hook/driver/driver.h"
#include "record/record.h"
#include "record/stacks/stacks.h"

/* The thread's cached ids were seen to be valid during the call. */
#define TFH_CALL_FRESH 0x80u

/* A completed call; known at compile time except self and result. */
struct tfh_call {
	struct tfh_self *self;
	uint64_t begin; /* ticks */
	uint16_t fn;
	uint8_t kind;  /* enum tft_kind */
	uint8_t props; /* TFH_FN_*, TFH_CALL_FRESH */
	CUresult result;
};

#pragma GCC visibility push(hidden)
extern uint32_t tfh_captures; /* stream captures in progress in the process */
#pragma GCC visibility pop

/* handles.c. Ids of a context, stream or function not yet named by this thread; may publish NAME
 * records. */
uint32_t tfh_context_id(struct tfh_self *self);
uint32_t tfh_stream_id(struct tfh_self *self, CUstream stream);
uint32_t tfh_function_id(struct tfh_self *self, CUfunction function);
/* The same, whether or not this thread has named it, for a call with this result. */
uint32_t tfh_stream_of(struct tfh_self *self, CUstream stream, CUresult result);
uint32_t tfh_function_of(struct tfh_self *self, CUfunction function, CUresult result);
/* Id of any context handle; 0 for NULL. */
uint32_t tfh_context_of(struct tfh_self *self, CUcontext context);
/* A lookup by name succeeded: stores the name for all threads. */
void tfh_function_found(struct tfh_self *self, void *function, void *owner, const char *name);
/* The name by which a function or kernel was looked up, or NULL; *owner is its module or library.
 */
const char *tfh_function_name(void *function, uint64_t *owner);
/* Module or library `owner` was unloaded, and its functions with it. */
void tfh_functions_gone(void *owner);
/* The calling thread created a stream in its current context. */
void tfh_stream_made(struct tfh_self *self, CUstream stream);

/* handles.c. True if the stream is being captured. Called only while some capture is in progress.
 */
bool tfh_captured(CUstream stream, bool per_thread);
void tfh_capture_begun(void);
void tfh_capture_ended(void);

/* graph.c. Version and kernel nodes of an executable graph as words 1 and 2 of a GRAPH call. */
void tfh_graph_words(CUgraphExec exec, uint64_t word[2]);
/* Whether an executable graph was seen being made. */
bool tfh_graphs_made(void);
/* A graph was instantiated from `graph` (or, with `update`, updated): publishes its NAME and GRAPH
 * records. */
void tfh_graph_totals(struct tfh_self *self, uint16_t fn, CUgraphExec exec, CUgraph graph,
		      bool update);
void tfh_graph_gone(CUgraphExec exec);
/* A node of the executable graph changed: publishes a GRAPH record with a new version if the totals
 * differ. */
void tfh_graph_copy_changed(struct tfh_self *self, uint16_t fn, CUgraphExec exec, CUgraphNode node,
			    const CUDA_MEMCPY3D *copy);
void tfh_graph_child_changed(struct tfh_self *self, uint16_t fn, CUgraphExec exec, CUgraphNode node,
			     CUgraph child);
void tfh_graph_node_changed(struct tfh_self *self, uint16_t fn, CUgraphExec exec, CUgraphNode node,
			    const CUgraphNodeParams *params);
void tfh_graph_node_switched(struct tfh_self *self, uint16_t fn, CUgraphExec exec, CUgraphNode node,
			     bool on);

/* Counts of the job's calls that allocate or free device memory, for cupti/footprint.c: bytes
 * allocated, all calls, and calls of unknown size. The first two are kept from when it begins to
 * watch free memory, since each costs 5 ns. */
struct tfh_memory_calls {
	uint64_t taken, changes, unknown; /* atomic */
};
#pragma GCC visibility push(hidden)
extern struct tfh_memory_calls tfh_memory_calls;
extern uint32_t tfh_memory_watched;
/* Cupti/footprint.c; atomic: the next graph launch is to query free memory. */
extern uint32_t tfh_memory_due;
#pragma GCC visibility pop
void tfh_memory_query(void);

static inline void tfh_memory_unknown(void)
{
	__atomic_fetch_add(&tfh_memory_calls.unknown, 1, __ATOMIC_RELAXED);
}

/* Of a call that took at least tfh_notable_ticks, which has ended: the number of its backtrace, or
 * 0. It does not take the call itself, which would have to be in memory for that. */
uint32_t tfh_notable(struct tfh_self *self, uint16_t fn, uint64_t t_begin, uint64_t t_end);

/* Ends the call and reserves n records, with the first one filled; NULL if the ring is full. */
static inline __attribute__((always_inline)) struct tfh_rec *tfh_close(const struct tfh_call *call,
								       CUstream stream, uint32_t n)
{
	struct tfh_self *self = call->self;
	uint64_t t_end, what = tfh_what(call->fn, call->kind);
	uint32_t id = 0, stack = 0;
	bool per_thread = false;

	if (tfh_unlikely(!tfh_left(self, call->begin, &t_end)))
		return NULL;
	if (tfh_unlikely(t_end - call->begin >= tfh_peek(&tfh_notable_ticks)))
		stack = tfh_notable(self, call->fn, call->begin, t_end);
	if (tfh_unlikely(!self->ctx) && call->result == TFH_CUDA_SUCCESS)
		self->ctx = tfh_context_id(self);
	if ((uintptr_t)stream > (uintptr_t)TFH_STREAM_PER_THREAD) {
		id = tfh_likely(tfh_stream_known(self, (uint64_t)(uintptr_t)stream,
						 call->props & TFH_CALL_FRESH))
			     ? self->stream_id
			     : tfh_stream_of(self, stream, call->result);
	} else if (stream == TFH_STREAM_PER_THREAD || (!stream && call->props & TFH_FN_PTDS)) {
		per_thread = true;
		what |= (uint64_t)TFT_F_PTDS << TFH_WHAT_FLAGS;
	}
	if (tfh_unlikely(call->result != TFH_CUDA_SUCCESS))
		what |= (uint64_t)TFT_F_FAILED << TFH_WHAT_FLAGS | (uint64_t)(uint16_t)call->result
									   << TFH_WHAT_RESULT;
	else if (tfh_unlikely(__atomic_load_n(&tfh_captures, __ATOMIC_RELAXED)) &&
		 tfh_captured(stream, per_thread))
		what |= (uint64_t)TFT_F_CAPTURED << TFH_WHAT_FLAGS;
	struct tfh_rec *rec = tfh_reserve(self, n);
	if (tfh_likely(rec != NULL)) {
		tfh_fill(self, rec, 0, call->fn, call->kind, call->begin, t_end);
		tfh_say_what(rec, what | (uint64_t)(uint8_t)self->depth << TFH_WHAT_DEPTH);
		rec->stream = id;
		rec->stack = stack;
	}
	return rec;
}

/* The usual case: three words. */
static inline __attribute__((always_inline)) void
tfh_words(const struct tfh_call *call, CUstream stream, uint64_t a, uint64_t b, uint64_t c)
{
	struct tfh_rec *rec = tfh_close(call, stream, 1);
	/* A copy: gcc would compare kind and result by one load of both, which must wait for the
	 * two stores, 5 ns. */
	const CUresult result = call->result;

	if (call->kind == TFT_ALLOC && tfh_unlikely(tfh_peek(&tfh_memory_watched)) &&
	    result == TFH_CUDA_SUCCESS) {
		__atomic_fetch_add(&tfh_memory_calls.taken, a, __ATOMIC_RELAXED);
		__atomic_fetch_add(&tfh_memory_calls.changes, 1, __ATOMIC_RELAXED);
	}
	if (tfh_likely(rec != NULL)) {
		rec->w[0] = a;
		rec->w[1] = b;
		rec->w[2] = c;
		tfh_publish(call->self, 1);
	}
}

static inline __attribute__((always_inline)) void
tfh_launch(const struct tfh_call *call, CUfunction function, const uint32_t grid[3],
	   const uint32_t block[3], uint32_t shared, CUstream stream, uint64_t w0)
{
	struct tfh_call fresh = *call;
	uint32_t id;

	if (tfh_unlikely(!tfh_handle_cached(call->self, TFT_NAME_FUNCTION,
					    (uint64_t)(uintptr_t)function, &id)))
		id = tfh_function_of(call->self, function, call->result);
	/* What a driver accepts fits into its bits. */
	uint64_t w1 = grid[0] | (uint64_t)grid[1] << 32 | (uint64_t)grid[2] << 48;
	uint64_t w2 = block[0] | (uint64_t)block[1] << 11 | (uint64_t)block[2] << 22 |
		      (uint64_t)shared << 32;

	if (tfh_unlikely(call->result != TFH_CUDA_SUCCESS)) {
		w1 = tft_launch_w1(grid[0], grid[1], grid[2]);
		w2 = tft_launch_w2(block[0], block[1], block[2], shared);
	}
	fresh.props |= TFH_CALL_FRESH;
	tfh_words(&fresh, stream, w0 | id, w1, w2);
}

/* PyTorch and XLA launch most kernels this way. */
static inline __attribute__((always_inline)) void
tfh_launch_ex(const struct tfh_call *call, const CUlaunchConfig *config, CUfunction function)
{
	uint64_t w0 = 0;

	if (tfh_unlikely(call->result != TFH_CUDA_SUCCESS || !config)) {
		tfh_words(call, NULL, 0, 0, 0);
		return;
	}
	for (unsigned i = 0; i < config->count; i++) {
		const CUlaunchAttribute *a = &config->attributes[i];
		if (a->id == TFH_LAUNCH_ATTRIBUTE_COOPERATIVE && a->value.number)
			w0 |= tft_launch_w0(0, 0, 0, 0, TFT_LAUNCH_COOPERATIVE);
		else if (a->id == TFH_LAUNCH_ATTRIBUTE_PROGRAMMATIC && a->value.number)
			w0 |= tft_launch_w0(0, 0, 0, 0, TFT_LAUNCH_PROGRAMMATIC);
		else if (a->id == TFH_LAUNCH_ATTRIBUTE_CLUSTER)
			w0 |= tft_launch_w0(0, (uint8_t)a->value.cluster[0],
					    (uint8_t)a->value.cluster[1],
					    (uint8_t)a->value.cluster[2], TFT_LAUNCH_CLUSTER);
	}
	tfh_launch(call, function, config->grid, config->block, config->shared, config->stream, w0);
}

/* The same kernel and shape on every device; described by the first launch. */
static inline void tfh_launch_devices(const struct tfh_call *call, const CUDA_LAUNCH_PARAMS *list,
				      unsigned count)
{
	if (call->result == TFH_CUDA_SUCCESS && list && count)
		tfh_launch(call, list->function, list->grid, list->block, list->shared,
			   list->stream, tft_launch_w0(0, 0, 0, 0, TFT_LAUNCH_COOPERATIVE));
	else
		tfh_words(call, NULL, 0, 0, 0);
}

/* Target of a prefetch: a device, or all ones for the host. */
static inline uint64_t tfh_place(CUmemLocation location)
{
	return location.type == TFH_LOCATION_DEVICE ? (uint64_t)(unsigned)location.id : UINT64_MAX;
}

static inline __attribute__((always_inline)) void
tfh_graph_launch(const struct tfh_call *call, CUgraphExec exec, CUstream stream)
{
	uint64_t word[2];

	tfh_graph_words(exec, word);
	tfh_words(call, stream, (uint64_t)(uintptr_t)exec, word[0], word[1]);
	if (tfh_unlikely(__atomic_load_n(&tfh_memory_due, __ATOMIC_RELAXED)) &&
	    call->result == TFH_CUDA_SUCCESS)
		tfh_memory_query();
}

/* note.c: calls with details in an EXT record. */
void tfh_note_peer(const struct tfh_call *call, uint64_t bytes, uint64_t dst, uint64_t src,
		   CUcontext dst_ctx, CUcontext src_ctx, CUstream stream);
void tfh_note_2d_v1(const struct tfh_call *call, const CUDA_MEMCPY2D_v1 *copy, CUstream stream);
void tfh_note_2d(const struct tfh_call *call, const CUDA_MEMCPY2D *copy, CUstream stream);
void tfh_note_3d_v1(const struct tfh_call *call, const CUDA_MEMCPY3D_v1 *copy, CUstream stream);
void tfh_note_3d(const struct tfh_call *call, const CUDA_MEMCPY3D *copy, CUstream stream);
void tfh_note_3d_peer(const struct tfh_call *call, const CUDA_MEMCPY3D_PEER *copy, CUstream stream);
void tfh_note_batch(const struct tfh_call *call, size_t count, const CUdeviceptr *dst,
		    const CUdeviceptr *src, const size_t *bytes, CUstream stream);
void tfh_note_3d_batch(const struct tfh_call *call, size_t count, const CUDA_MEMCPY3D_BATCH_OP *ops,
		       CUstream stream);
void tfh_note_decompress(const struct tfh_call *call, size_t count,
			 const CUmemDecompressParams *parts, CUstream stream);
void tfh_note_prefetch_batch(const struct tfh_call *call, size_t count, const CUdeviceptr *address,
			     const size_t *bytes, const CUmemLocation *places, const size_t *first,
			     size_t n_places, CUstream stream);
/* Bytes of an array, or of the levels of a mipmapped one; 0 if the format does not determine them.
 */
uint64_t tfh_array_bytes(uint64_t width, uint64_t height, uint64_t depth, int format,
			 unsigned channels, unsigned levels);
/* Bytes of the driver's allocation from `address` on; 0 if there is none. */
uint64_t tfh_range_bytes(CUdeviceptr address);
void tfh_note_initialised(const struct tfh_call *call, unsigned flags);
void tfh_note_function(const struct tfh_call *call, void **out, void *owner, const char *name);
void tfh_note_kernel_function(const struct tfh_call *call, CUfunction *out, CUkernel kernel);
void tfh_note_stream_made(const struct tfh_call *call, CUstream *out, unsigned flags, int priority);
void tfh_note_capture(const struct tfh_call *call, CUstream stream, int mode);
void tfh_note_capture_end(const struct tfh_call *call, CUstream stream, CUgraph *out);
void tfh_note_graph_made(const struct tfh_call *call, CUgraphExec *out, CUgraph graph);
void tfh_note_graph_updated(const struct tfh_call *call, CUgraphExec exec, CUgraph graph);
void tfh_note_node_copy(const struct tfh_call *call, CUgraphExec exec, CUgraphNode node,
			const CUDA_MEMCPY3D *copy);
void tfh_note_node_child(const struct tfh_call *call, CUgraphExec exec, CUgraphNode node,
			 CUgraph child);
void tfh_note_node(const struct tfh_call *call, CUgraphExec exec, CUgraphNode node,
		   const CUgraphNodeParams *params);
void tfh_note_node_switched(const struct tfh_call *call, CUgraphExec exec, CUgraphNode node,
			    bool on);

/* ---- the macros of the table; `call` is the wrapper's ---- */

#define U64(x) ((uint64_t)(uintptr_t)(x))
#define OUT(pointer) (call.result == TFH_CUDA_SUCCESS && (pointer) ? U64(*(pointer)) : 0)

#define HANDLE(a, b, c) tfh_words(&call, NULL, U64(a), U64(b), U64(c))
#define ON_STREAM(stream, a, b, c) tfh_words(&call, stream, U64(a), U64(b), U64(c))
#define COPY(bytes, dst, src, stream) tfh_words(&call, stream, U64(bytes), U64(dst), U64(src))
#define COPY_PEER(bytes, dst, src, dst_ctx, src_ctx, stream)                                       \
	tfh_note_peer(&call, bytes, dst, src, dst_ctx, src_ctx, stream)
#define COPY_2D_V1(copy, stream) tfh_note_2d_v1(&call, copy, stream)
#define COPY_2D(copy, stream) tfh_note_2d(&call, copy, stream)
#define COPY_3D_V1(copy, stream) tfh_note_3d_v1(&call, copy, stream)
#define COPY_3D(copy, stream) tfh_note_3d(&call, copy, stream)
#define COPY_3D_PEER(copy, stream) tfh_note_3d_peer(&call, copy, stream)
#define COPY_BATCH(count, dsts, srcs, sizes, stream)                                               \
	tfh_note_batch(&call, count, dsts, srcs, sizes, stream)
#define COPY_3D_BATCH(count, ops, stream) tfh_note_3d_batch(&call, count, ops, stream)
#define MEMSET(bytes, dst, value, stream) tfh_words(&call, stream, U64(bytes), U64(dst), U64(value))
#define PREFETCH(bytes, address, place, stream)                                                    \
	tfh_words(&call, stream, U64(bytes), U64(address), (uint64_t)(int64_t)(place))
#define PREFETCH_BATCH(count, addresses, sizes, places, first, n_places, stream)                   \
	tfh_note_prefetch_batch(&call, count, addresses, sizes, places, first, n_places, stream)
#define DECOMPRESS(count, parts, stream) tfh_note_decompress(&call, count, parts, stream)
#define LAUNCH(f, gx, gy, gz, bx, by, bz, shared, stream, attributes)                              \
	tfh_launch(&call, f, (const uint32_t[3]){gx, gy, gz}, (const uint32_t[3]){bx, by, bz},     \
		   shared, stream, tft_launch_w0(0, 0, 0, 0, attributes))
#define LAUNCH_DEVICES(list, count) tfh_launch_devices(&call, list, count)
#define LAUNCH_EX(config, f) tfh_launch_ex(&call, config, f)
#define GRAPH_LAUNCH(exec, stream) tfh_graph_launch(&call, exec, stream)
#define GRAPH_MADE(out, graph) tfh_note_graph_made(&call, out, graph)
#define GRAPH_UPDATED(exec, graph) tfh_note_graph_updated(&call, exec, graph)
#define NODE_COPY(exec, node, copy) tfh_note_node_copy(&call, exec, node, copy)
#define NODE_CHILD(exec, node, child) tfh_note_node_child(&call, exec, node, child)
#define NODE_SWITCHED(exec, node, on) tfh_note_node_switched(&call, exec, node, on)
#define GRAPH_GONE(exec)                                                                           \
	(HANDLE(exec, 0, 0), call.result == TFH_CUDA_SUCCESS ? tfh_graph_gone(exec) : (void)0,     \
	 FORGET())
#define CAPTURE_BEGIN(stream, mode) tfh_note_capture(&call, stream, mode)
#define CAPTURE_END(stream, out) tfh_note_capture_end(&call, stream, out)
#define STREAM_MADE(out, flags, priority) tfh_note_stream_made(&call, out, flags, priority)
#define ALLOC(bytes, address, flags) tfh_words(&call, NULL, U64(bytes), U64(address), U64(flags))
#define ALLOC_ON(stream, bytes, address, flags)                                                    \
	tfh_words(&call, stream, U64(bytes), U64(address), U64(flags))
#define ALLOC_RANGE(address, flags) ALLOC(tfh_range_bytes(address), address, flags)
#define ALLOC_ARRAY(out, desc, depth, levels, flags)                                               \
	ALLOC(call.result == TFH_CUDA_SUCCESS && (desc)                                            \
		      ? tfh_array_bytes((desc)->width, (desc)->height, depth, (desc)->format,      \
					(desc)->channels, levels)                                  \
		      : 0,                                                                         \
	      OUT(out), flags)
#define FREE(address) tfh_words(&call, NULL, 0, U64(address), 0)
#define FUNCTION_FOUND(out, owner, name) tfh_note_function(&call, out, owner, name)
#define MODULE_GONE(owner) (HANDLE(owner, 0, 0), FUNCTIONS_GONE(owner))
#define FUNCTIONS_GONE(owner)                                                                      \
	(call.result == TFH_CUDA_SUCCESS ? (tfh_functions_gone(owner), FORGET()) : (void)0)
#define KERNEL_FUNCTION(out, kernel) tfh_note_kernel_function(&call, out, kernel)
#define FORGET() (call.result == TFH_CUDA_SUCCESS ? tfh_handles_forget() : (void)0)
#define CONTEXT_CHANGED() ((void)(call.self->ctx = 0))
#define INITIALISED(flags) tfh_note_initialised(&call, flags)

#endif
