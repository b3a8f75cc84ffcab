/*
 * Host functions that the driver calls for a stream or a graph: their real run time and thread.
 *
 * The driver gets our function and a box with the program's function and argument. Structs that the
 * program reads back (cuGraphHostNodeGetParams, cuGraphNodeGetParams) are restored, whether
 * recording is on or not; only cuGraphDebugDotPrint with all details shows our address. A box is
 * freed once, before its function runs. Boxes of graphs and captured streams may run any number of
 * times in any copy of the graph, so they are kept until the process ends. When no box is free,
 * functions run untimed.
 *
 * A host function must not call the driver, so nothing here does so on the driver's thread.
 */
#include "hook/driver/note.h"

#include <sys/mman.h>

#include "record/process/lock.h"

#pragma GCC visibility push(hidden)
#define CUDA_FN(name, family, args, dir, props, version, params, ...)                              \
	CUresult record_##name params;                                                             \
	CUresult hook_##name params;
#include "base/cuda_api.def"
#undef CUDA_FN
#pragma GCC visibility pop

/* ---- boxes ---- */

#define BOXES 65536u /* 3 MiB, allocated on use */
#define NODE_HOST 3  /* CUgraphNodeType */

struct box {
	uint64_t function;
	void *user;
	uint64_t stream; /* handle; 0 in graphs */
	uint32_t stream_id;
	uint32_t next; /* free list: index + 1 */
	bool keep;
};

static struct box *boxes;
static uint32_t used, free_list;
/* A thread that does not get the lock leaves its function untimed. */
static uint32_t lock TFH_LOCK_WORD;

static struct box *map(void)
{
	if (!boxes) {
		void *found = mmap(NULL, BOXES * sizeof(*boxes), PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		boxes = found == MAP_FAILED ? NULL : found;
	}
	return boxes;
}

static struct box *take_box(void)
{
	struct box *box = NULL;

	if (!tfh_lock(&lock))
		return NULL;
	if (free_list) {
		box = &boxes[free_list - 1];
		free_list = box->next;
	} else if (used < BOXES && map()) {
		box = &boxes[used++];
	}
	tfh_unlock(&lock);
	return box;
}

static void give_back(struct box *box)
{
	if (!tfh_lock(&lock))
		return; /* leaked: 40 bytes */
	box->next = free_list;
	free_list = (uint32_t)(box - boxes) + 1;
	tfh_unlock(&lock);
}

/* ---- on the driver's thread ---- */

static struct tfh_call begin(struct box *given, struct box *box, uint64_t at)
{
	struct tfh_call call = {.fn = TFH_FN_host_function};

	*box = *given;
	if (!box->keep)
		give_back(given);
	call.self = tfh_enter_at(TFH_FN_host_function, box->function,
				 (struct tfh_record_frame){at, 0}, &call.begin);
	return call;
}

static void end(struct tfh_call call, const struct box *box)
{
	struct tfh_self *self =
		call.self ? tfh_back(call.self, TFH_FN_host_function, call.begin) : NULL;
	struct tfh_rec *rec =
		self ? tfh_leave(self, call.begin, TFH_FN_host_function, TFT_CALL) : NULL;

	if (!rec)
		return;
	rec->stream = box->stream_id;
	rec->w[0] = box->function;
	rec->w[1] = box->stream;
	tfh_publish(self, 1);
}

static void run_host(void *given)
{
	struct box box;
	struct tfh_call call = begin(given, &box, tfh_stack());

	((CUhostFn)(uintptr_t)box.function)(box.user);
	end(call, &box);
}

static void run_callback(CUstream stream, CUresult status, void *given)
{
	struct box box;
	struct tfh_call call = begin(given, &box, tfh_stack());

	((CUstreamCallback)(uintptr_t)box.function)(stream, status, box.user);
	end(call, &box);
}

/* ---- functions in a stream ---- */

/* Whether the box may end up in a graph; the legacy stream cannot be captured. */
static bool stays(CUstream stream, bool per_thread, uint32_t id)
{
	tfh_ask_CAPTURING ask = TFH_ASK(CAPTURING);
	int status = 0;

	if ((!stream && !per_thread) || stream == TFH_STREAM_LEGACY)
		return false;
	if (!id && U64(stream) > U64(TFH_STREAM_PER_THREAD))
		return true; /* perhaps not a stream, so the driver is not asked about it */
	return !ask || ask(stream ? stream : TFH_STREAM_PER_THREAD, &status) || status;
}

static struct box *box_for(struct tfh_self *self, CUstream stream, bool per_thread,
			   uint64_t function, void *user)
{
	struct box *box = function ? take_box() : NULL;

	if (!box)
		return NULL;
	box->function = function;
	box->user = user;
	box->stream = U64(stream);
	box->stream_id = U64(stream) > U64(TFH_STREAM_PER_THREAD)
				 ? tfh_handle_known(self, TFT_NAME_STREAM, U64(stream))
				 : 0;
	box->keep = stays(stream, per_thread, box->stream_id);
	return box;
}

#define IN_STREAM(name, properties, params, argv, runner, third)                                   \
	CUresult record_##name params                                                              \
	{                                                                                          \
		CUresult(*real) params = (CUresult(*) params)tfh_real[TFH_FN_##name];              \
		uint64_t begin_ticks;                                                              \
		struct tfh_self *self = tfh_enter(TFH_FN_##name, U64(fn), &begin_ticks);           \
		uint64_t given_fn = U64(fn), given_user = U64(userData);                           \
		if (!self)                                                                         \
			return real argv;                                                          \
		struct box *box =                                                                  \
			box_for(self, hStream, (properties)&TFH_FN_PTDS, given_fn, userData);      \
		if (box) {                                                                         \
			fn = runner;                                                               \
			userData = box;                                                            \
		}                                                                                  \
		CUresult result = real argv;                                                       \
		if (box && result != TFH_CUDA_SUCCESS)                                             \
			give_back(box);                                                            \
		struct tfh_call call = {self,	  begin_ticks, TFH_FN_##name,                      \
					TFT_CALL, properties,  result};                            \
		tfh_words(&call, hStream, given_fn, given_user, third);                            \
		return result;                                                                     \
	}

IN_STREAM(cuLaunchHostFunc, 0, (CUstream hStream, CUhostFn fn, void *userData),
	  (hStream, fn, userData), run_host, 0)
IN_STREAM(cuLaunchHostFunc_ptsz, TFH_FN_PTDS, (CUstream hStream, CUhostFn fn, void *userData),
	  (hStream, fn, userData), run_host, 0)
IN_STREAM(cuLaunchHostFunc_v2, 0,
	  (CUstream hStream, CUhostFn fn, void *userData, unsigned syncMode),
	  (hStream, fn, userData, syncMode), run_host, syncMode)
IN_STREAM(cuLaunchHostFunc_v2_ptsz, TFH_FN_PTDS,
	  (CUstream hStream, CUhostFn fn, void *userData, unsigned syncMode),
	  (hStream, fn, userData, syncMode), run_host, syncMode)
IN_STREAM(cuStreamAddCallback, 0,
	  (CUstream hStream, CUstreamCallback fn, void *userData, unsigned flags),
	  (hStream, fn, userData, flags), run_callback, 0)
IN_STREAM(cuStreamAddCallback_ptsz, TFH_FN_PTDS,
	  (CUstream hStream, CUstreamCallback fn, void *userData, unsigned flags),
	  (hStream, fn, userData, flags), run_callback, 0)

/* ---- functions in a graph ---- */

/* A copy of `given` with a box, or `given` itself. */
static const CUDA_HOST_NODE_PARAMS *boxed(const CUDA_HOST_NODE_PARAMS *given,
					  CUDA_HOST_NODE_PARAMS *copy)
{
	bool recording = __atomic_load_n(&tfh_mode, __ATOMIC_ACQUIRE) == TFH_MODE_ON;
	struct box *box = recording && given && given->fn ? take_box() : NULL;

	if (!box)
		return given;
	*box = (struct box){.function = U64(given->fn), .user = given->user, .keep = true};
	*copy = (CUDA_HOST_NODE_PARAMS){run_host, box};
	return copy;
}

static CUgraphNodeParams *boxed_node(CUgraphNodeParams *given, CUgraphNodeParams *copy)
{
	if (!given || given->type != NODE_HOST)
		return given;
	*copy = *given;
	return boxed(&given->of.host, &copy->of.host) == &copy->of.host ? copy : given;
}

static void unbox(CUDA_HOST_NODE_PARAMS *params)
{
	if (params->fn != run_host)
		return;
	const struct box *box = params->user;
	*params = (CUDA_HOST_NODE_PARAMS){(CUhostFn)(uintptr_t)box->function, box->user};
}

/* Recorded, since it changes an executable graph. */
CUresult record_cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
					     const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	CUresult (*real)(CUgraphExec, CUgraphNode, const CUDA_HOST_NODE_PARAMS *) =
		(CUresult(*)(CUgraphExec, CUgraphNode, const CUDA_HOST_NODE_PARAMS *))
			tfh_real[TFH_FN_cuGraphExecHostNodeSetParams];
	uint64_t begin_ticks;
	struct tfh_self *self =
		tfh_enter(TFH_FN_cuGraphExecHostNodeSetParams, U64(hGraphExec), &begin_ticks);
	CUDA_HOST_NODE_PARAMS copy;

	if (!self)
		return real(hGraphExec, hNode, nodeParams);
	CUresult result = real(hGraphExec, hNode, boxed(nodeParams, &copy));
	struct tfh_call call = {self,	  begin_ticks, TFH_FN_cuGraphExecHostNodeSetParams,
				TFT_CALL, 0,	       result};
	tfh_words(&call, NULL, U64(hGraphExec), U64(hNode), 0);
	return result;
}

CUresult record_cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
					 CUgraphNodeParams *nodeParams)
{
	CUresult (*real)(CUgraphExec, CUgraphNode, CUgraphNodeParams *) =
		(CUresult(*)(CUgraphExec, CUgraphNode,
			     CUgraphNodeParams *))tfh_real[TFH_FN_cuGraphExecNodeSetParams];
	uint64_t begin_ticks;
	struct tfh_self *self =
		tfh_enter(TFH_FN_cuGraphExecNodeSetParams, U64(hGraphExec), &begin_ticks);
	CUgraphNodeParams copy;

	if (!self)
		return real(hGraphExec, hNode, nodeParams);
	CUresult result = real(hGraphExec, hNode, boxed_node(nodeParams, &copy));
	self = tfh_back(self, TFH_FN_cuGraphExecNodeSetParams, begin_ticks);
	if (!self)
		return result;
	struct tfh_call call = {self,	  begin_ticks,	 TFH_FN_cuGraphExecNodeSetParams,
				TFT_CALL, TFH_FN_ALWAYS, result};
	tfh_note_node(&call, hGraphExec, hNode, nodeParams);
	return result;
}

/*
 * Not recorded: graphs are read when they are instantiated. Without a driver, `real` is another
 * object's function, which may call our hooks again.
 */
#define BY_HAND(name, params, argv, type, given, boxes_it, after)                                  \
	CUresult hook_##name params                                                                \
	{                                                                                          \
		bool driver;                                                                       \
		CUresult(*real) params = (CUresult(*) params)tfh_real_for(                         \
			TFH_FN_##name, __builtin_return_address(0), &driver);                      \
		type copy __attribute__((unused));                                                 \
		if (!real)                                                                         \
			return tfh_no_driver();                                                    \
		if (driver)                                                                        \
			given = boxes_it;                                                          \
		CUresult result = real argv;                                                       \
		if (result == TFH_CUDA_SUCCESS && given)                                           \
			after;                                                                     \
		return result;                                                                     \
	}                                                                                          \
	__attribute__((visibility("default"), alias("hook_" #name))) CUresult name params;

#define ADDS(name, params, argv)                                                                   \
	BY_HAND(name, params, argv, CUDA_HOST_NODE_PARAMS, nodeParams, boxed(nodeParams, &copy),   \
		(void)0)
#define ADDS_NODE(name, params, argv)                                                              \
	BY_HAND(name, params, argv, CUgraphNodeParams, nodeParams, boxed_node(nodeParams, &copy),  \
		(void)0)

ADDS(cuGraphAddHostNode,
     (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
      size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams),
     (phGraphNode, hGraph, dependencies, numDependencies, nodeParams))
ADDS(cuGraphHostNodeSetParams, (CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams),
     (hNode, nodeParams))
ADDS_NODE(cuGraphAddNode,
	  (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
	   size_t numDependencies, CUgraphNodeParams *nodeParams),
	  (phGraphNode, hGraph, dependencies, numDependencies, nodeParams))
ADDS_NODE(cuGraphAddNode_v2,
	  (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
	   const void *dependencyData, size_t numDependencies, CUgraphNodeParams *nodeParams),
	  (phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams))
ADDS_NODE(cuGraphNodeSetParams, (CUgraphNode hNode, CUgraphNodeParams *nodeParams),
	  (hNode, nodeParams))
BY_HAND(cuGraphHostNodeGetParams, (CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams),
	(hNode, nodeParams), CUDA_HOST_NODE_PARAMS, nodeParams, nodeParams, unbox(nodeParams))
BY_HAND(cuGraphNodeGetParams, (CUgraphNode hNode, CUgraphNodeParams *nodeParams),
	(hNode, nodeParams), CUgraphNodeParams, nodeParams, nodeParams,
	nodeParams->type == NODE_HOST ? unbox(&nodeParams->of.host) : (void)0)
