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
#include "record/stacks/stacks.h"
#include "record/usual.h"

/* The call was not entered in the usual way, so the inlined code that leaves it in the usual way is
 * omitted. */
#define TFH_CALL_UNUSUAL 0x80u

/* A completed call; known at compile time except self, begin and result. `self`: the thread that
 * entered it; where a macro hands the call to a function, the one that it returned on. */
struct tfh_call {
	struct tfh_self *self;
	uint64_t begin; /* ticks */
	uint16_t fn;
	uint8_t kind;  /* enum tft_kind */
	uint8_t props; /* TFH_FN_* */
	CUresult result;
};

#pragma GCC visibility push(hidden)
extern uint32_t tfh_captures; /* stream captures in progress in the process */
#pragma GCC visibility pop

/* handles.c. Ids of a context, stream or function not yet named by this thread; may publish NAME
 * records. */
uint32_t tfh_context_id(struct tfh_self *self);
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
/* cupti/footprint.c; atomic: the next graph launch is to query free memory. */
extern uint32_t tfh_memory_due;
#pragma GCC visibility pop
void tfh_memory_query(void);

static inline void tfh_memory_unknown(void)
{
	__atomic_fetch_add(&tfh_memory_calls.unknown, 1, __ATOMIC_RELAXED);
}

/* Before a call is passed to a function: whether it is to be recorded,
 * on the thread that it returned on. */
static inline bool tfh_returned(struct tfh_call *call)
{
	call->self = tfh_back(call->self, (enum tfh_fn)call->fn, call->begin);
	return call->self != NULL;
}

/* Records a call with three words that did not take the usual path throughout. Its members are
 * separate arguments, since a pointer to a struct would force the usual path to keep it in memory,
 * too. `what` is as in tfh_what(), with props in its flags. */
void tfh_words_unusual(struct tfh_self *self, uint64_t begin, uint64_t what, CUresult result,
		       CUstream stream, uint64_t a, uint64_t b, uint64_t c);
/* The same for a launch; w0 lacks the function's id. */
void tfh_launch_unusual(struct tfh_self *self, uint64_t begin, uint64_t what, CUresult result,
			CUstream stream, CUfunction function, uint64_t w0, uint64_t w1,
			uint64_t w2);

static tfh_hot uint64_t tfh_call_what(const struct tfh_call *call)
{
	return tfh_what(call->fn, call->kind) | (uint64_t)(call->props & ~TFH_CALL_UNUSUAL)
							<< TFH_WHAT_FLAGS;
}

/* Ends a call that has returned on this thread and is like most: a success, of ordinary length, on
 * no stream or on the one that the thread used before, in a known context and in no capture.
 * Otherwise it does nothing and returns false. */
static tfh_hot bool tfh_close_usual(struct tfh_self *self, const struct tfh_call *call,
				    CUstream stream, uint64_t end, struct tfh_filling *f)
{
	uint64_t what = tfh_what(call->fn, call->kind);
	/* A copy: gcc would compare kind and result by one load of both,
	 * which must wait for the two stores, 5 ns. */
	const CUresult result = call->result;
	uint32_t id = 0, ctx = self->ctx;

	if (tfh_unlikely((uint32_t)result | tfh_peek(&tfh_captures)) || tfh_unlikely(!ctx) ||
	    tfh_unlikely(end - call->begin >= tfh_peek(&tfh_notable_ticks)))
		return false;
	if ((uintptr_t)stream > (uintptr_t)TFH_STREAM_PER_THREAD) {
		if (tfh_unlikely((uint64_t)(uintptr_t)stream != self->stream))
			return false;
		id = self->stream_id;
	} else if (stream == TFH_STREAM_PER_THREAD || (!stream && call->props & TFH_FN_PTDS)) {
		what |= (uint64_t)TFT_F_PTDS << TFH_WHAT_FLAGS;
	}
	return tfh_leave_usual(self, call->begin, end, what, id, ctx, f);
}

/* The usual case: three words. */
static tfh_hot void tfh_words(const struct tfh_call *call, CUstream stream, uint64_t a, uint64_t b,
			      uint64_t c)
{
	uint64_t end = tfh_ticks();
	struct tfh_self *self = tfh_here();
	bool counted = call->kind == TFT_ALLOC && tfh_peek(&tfh_memory_watched);
	struct tfh_filling f;

	if (!(call->props & TFH_CALL_UNUSUAL) && tfh_likely(!counted) &&
	    tfh_likely(tfh_alone(self)) && tfh_likely(tfh_close_usual(self, call, stream, end, &f)))
		tfh_publish_usual(self, &f, a, b, c);
	else
		tfh_words_unusual(call->self, call->begin, tfh_call_what(call), call->result,
				  stream, a, b, c);
}

/* Grid, block and shared memory of a launch, as in its record; not masked as by tft_launch_w1(),
 * since the driver refuses sizes that do not fit. A launch that failed is recorded without them. */
struct tfh_shape {
	uint64_t w1, w2;
};
#define TFH_SHAPE(gx, gy, gz, bx, by, bz, shared)                                                  \
	((struct tfh_shape){(gx) | (uint64_t)((gy) | (gz) << 16) << 32,                            \
			    (bx) | (((by) | (bz) << 11) << 11) | (uint64_t)(shared) << 32})

static tfh_hot void tfh_launch(const struct tfh_call *call, CUfunction function,
			       struct tfh_shape shape, CUstream stream, uint64_t w0)
{
	uint64_t end = tfh_ticks();
	struct tfh_self *self = tfh_here();
	const struct tfh_function *known = NULL;
	struct tfh_filling f;

	if (!(call->props & TFH_CALL_UNUSUAL) && tfh_likely(tfh_alone(self)))
		known = tfh_function_slot(self, (uint64_t)(uintptr_t)function);
	if (tfh_likely(known && known->handle == (uint64_t)(uintptr_t)function) &&
	    tfh_likely(tfh_close_usual(self, call, stream, end, &f)))
		tfh_publish_usual(self, &f, w0 | known->id, shape.w1, shape.w2);
	else
		tfh_launch_unusual(call->self, call->begin, tfh_call_what(call), call->result,
				   stream, function, w0, shape.w1, shape.w2);
}

/* PyTorch and XLA launch most kernels this way. */
static inline __attribute__((always_inline)) void
tfh_launch_ex(const struct tfh_call *call, const CUlaunchConfig *config, CUfunction function)
{
	uint64_t w0 = 0;

	if (tfh_unlikely(call->result != TFH_CUDA_SUCCESS || !config)) {
		tfh_words_unusual(call->self, call->begin, tfh_call_what(call), call->result, NULL,
				  0, 0, 0);
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
	tfh_launch(call, function,
		   TFH_SHAPE(config->grid[0], config->grid[1], config->grid[2], config->block[0],
			     config->block[1], config->block[2], config->shared),
		   config->stream, w0);
}

/* The same kernel and shape on every device; described by the first launch. */
static inline void tfh_launch_devices(const struct tfh_call *call, const CUDA_LAUNCH_PARAMS *list,
				      unsigned count)
{
	if (call->result == TFH_CUDA_SUCCESS && list && count)
		tfh_launch(call, list->function,
			   TFH_SHAPE(list->grid[0], list->grid[1], list->grid[2], list->block[0],
				     list->block[1], list->block[2], list->shared),
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
#define RETURNED(note) (tfh_returned(&call) ? (note) : (void)0)
#define OUT(pointer) (call.result == TFH_CUDA_SUCCESS && (pointer) ? U64(*(pointer)) : 0)

#define HANDLE(a, b, c) tfh_words(&call, NULL, U64(a), U64(b), U64(c))
#define ON_STREAM(stream, a, b, c) tfh_words(&call, stream, U64(a), U64(b), U64(c))
#define COPY(bytes, dst, src, stream) tfh_words(&call, stream, U64(bytes), U64(dst), U64(src))
#define COPY_PEER(bytes, dst, src, dst_ctx, src_ctx, stream)                                       \
	RETURNED(tfh_note_peer(&call, bytes, dst, src, dst_ctx, src_ctx, stream))
#define COPY_2D_V1(copy, stream) RETURNED(tfh_note_2d_v1(&call, copy, stream))
#define COPY_2D(copy, stream) RETURNED(tfh_note_2d(&call, copy, stream))
#define COPY_3D_V1(copy, stream) RETURNED(tfh_note_3d_v1(&call, copy, stream))
#define COPY_3D(copy, stream) RETURNED(tfh_note_3d(&call, copy, stream))
#define COPY_3D_PEER(copy, stream) RETURNED(tfh_note_3d_peer(&call, copy, stream))
#define COPY_BATCH(count, dsts, srcs, sizes, stream)                                               \
	RETURNED(tfh_note_batch(&call, count, dsts, srcs, sizes, stream))
#define COPY_3D_BATCH(count, ops, stream) RETURNED(tfh_note_3d_batch(&call, count, ops, stream))
#define MEMSET(bytes, dst, value, stream) tfh_words(&call, stream, U64(bytes), U64(dst), U64(value))
#define PREFETCH(bytes, address, place, stream)                                                    \
	tfh_words(&call, stream, U64(bytes), U64(address), (uint64_t)(int64_t)(place))
#define PREFETCH_BATCH(count, addresses, sizes, places, first, n_places, stream)                   \
	RETURNED(tfh_note_prefetch_batch(&call, count, addresses, sizes, places, first, n_places,  \
					 stream))
#define DECOMPRESS(count, parts, stream) RETURNED(tfh_note_decompress(&call, count, parts, stream))
#define LAUNCH(f, gx, gy, gz, bx, by, bz, shared, stream, attributes)                              \
	tfh_launch(&call, f, TFH_SHAPE(gx, gy, gz, bx, by, bz, shared), stream,                    \
		   tft_launch_w0(0, 0, 0, 0, attributes))
/* `shape` as the row's wrapper has made it of the arguments before the call,
 * which are then no longer needed. */
#define LAUNCH_SHAPED(f, stream, attributes)                                                       \
	tfh_launch(&call, f, shape, stream, tft_launch_w0(0, 0, 0, 0, attributes))
#define LAUNCH_DEVICES(list, count) tfh_launch_devices(&call, list, count)
#define LAUNCH_EX(config, f) tfh_launch_ex(&call, config, f)
#define GRAPH_LAUNCH(exec, stream) tfh_graph_launch(&call, exec, stream)
#define GRAPH_MADE(out, graph) RETURNED(tfh_note_graph_made(&call, out, graph))
#define GRAPH_UPDATED(exec, graph) RETURNED(tfh_note_graph_updated(&call, exec, graph))
#define NODE_COPY(exec, node, copy) RETURNED(tfh_note_node_copy(&call, exec, node, copy))
#define NODE_CHILD(exec, node, child) RETURNED(tfh_note_node_child(&call, exec, node, child))
#define NODE_PARAMS(exec, node, params) RETURNED(tfh_note_node(&call, exec, node, params))
#define NODE_SWITCHED(exec, node, on) RETURNED(tfh_note_node_switched(&call, exec, node, on))
#define GRAPH_GONE(exec)                                                                           \
	(HANDLE(exec, 0, 0), call.result == TFH_CUDA_SUCCESS ? tfh_graph_gone(exec) : (void)0,     \
	 FORGET())
#define CAPTURE_BEGIN(stream, mode) RETURNED(tfh_note_capture(&call, stream, mode))
#define CAPTURE_END(stream, out) RETURNED(tfh_note_capture_end(&call, stream, out))
#define STREAM_MADE(out, flags, priority)                                                          \
	RETURNED(tfh_note_stream_made(&call, out, flags, priority))
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
#define FUNCTION_FOUND(out, owner, name) RETURNED(tfh_note_function(&call, out, owner, name))
#define MODULE_GONE(owner) (HANDLE(owner, 0, 0), FUNCTIONS_GONE(owner))
#define FUNCTIONS_GONE(owner)                                                                      \
	(call.result == TFH_CUDA_SUCCESS ? (tfh_functions_gone(owner), FORGET()) : (void)0)
#define KERNEL_FUNCTION(out, kernel) RETURNED(tfh_note_kernel_function(&call, out, kernel))
#define FORGET() (call.result == TFH_CUDA_SUCCESS ? tfh_handles_forget() : (void)0)
#define CONTEXT_CHANGED() ((void)(tfh_here()->ctx = 0))
#define INITIALISED(flags) RETURNED(tfh_note_initialised(&call, flags))

#endif
