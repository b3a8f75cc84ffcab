/*
 * Calls whose record says more than three words can: batches, pitched and peer copies, arrays,
 * virtual memory, memory of other processes, graphs that are changed after they were made. Each
 * call that succeeded is printed as "name word word word" and, for a batch, its pairs; for a graph
 * launch the totals that it should have. What the driver has not is "- name".
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hook/driver/cuda_types.h"

enum { ROOM = 1 << 20, NOT_SUPPORTED = 801 };

static void *driver;
static int failures;
static CUcontext context;
static CUstream stream;
static CUdeviceptr a, b;
static char *host, *pinned;

#define CU(name, types, ...) (((int(*) types)find(#name))(__VA_ARGS__))
/* 1 if it worked; 0 if there is no such thing here. */
#define DO(name, types, ...) done(#name, __LINE__, CU(name, types, __VA_ARGS__))
#define TELL(...) (printf(__VA_ARGS__), putchar('\n'))

static void *find(const char *name)
{
	void *found = dlsym(driver, name);

	if (!found)
		printf("no %s\n", name), exit(1);
	return found;
}

static int done(const char *name, int line, int result)
{
	if (result == NOT_SUPPORTED)
		TELL("- %s", name);
	else if (result)
		failures++, TELL("! line %d: %s: %d", line, name, result);
	return result == 0;
}

static unsigned long long u(const void *p)
{
	return (uintptr_t)p;
}

static void batches(void)
{
	CUdeviceptr dst[100], src[100];
	size_t bytes[100], index = 0, total = 0;
	int attributes[16] = {1}; /* in the order of the stream */

	for (size_t i = 0; i < 100; i++) {
		dst[i] = i % 10 == 9 ? u(pinned) + 8192 * i / 10 : a + 4096 * i;
		src[i] = i % 10 == 9 ? b + 4096 * i : u(pinned) + 512 * i;
		bytes[i] = 100 + i;
	}
	for (size_t n = 3; n <= 100; n += 97) {
		if (!DO(cuMemcpyBatchAsync_v2,
			(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, void *, size_t *, size_t,
			 CUstream),
			dst, src, bytes, n, attributes, &index, 1, stream))
			return;
		total = 0;
		for (size_t i = 0; i < n; i++)
			total += bytes[i];
		TELL("cuMemcpyBatchAsync_v2 %zu %llu %llu", total, dst[0], src[0]);
		for (size_t i = 0; i < n && i < 63; i++)
			TELL("pair %llu %llu %zu", dst[i], src[i], bytes[i]);
	}
}

static void pitched(void)
{
	CUDA_MEMCPY3D box = {
		.src = {.type = TFH_MEMORY_HOST, .host = host, .pitch = 64, .height = 8},
		.dst = {.type = TFH_MEMORY_DEVICE, .device = a, .pitch = 128, .height = 8},
		.width = 48,
		.height = 6,
		.depth = 5};
	CUDA_MEMCPY3D_PEER peer = {
		.src = {.type = TFH_MEMORY_DEVICE, .device = a, .pitch = 64, .height = 8},
		.dst = {.type = TFH_MEMORY_DEVICE, .device = b, .pitch = 64, .height = 8},
		.width = 30,
		.height = 2,
		.depth = 2};
	CUDA_MEMCPY3D_BATCH_OP op[2];

	if (DO(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *, CUstream), &box, stream))
		TELL("cuMemcpy3DAsync_v2 %d %llu %llu", 48 * 6 * 5, a, u(host));
	if (DO(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *), &box))
		TELL("cuMemcpy3D_v2 %d %llu %llu", 48 * 6 * 5, a, u(host));
	peer.src.context = peer.dst.context = context;
	if (DO(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER *, CUstream), &peer, stream))
		TELL("cuMemcpy3DPeerAsync %d %llu %llu", 30 * 2 * 2, b, a);
	if (DO(cuMemcpyPeerAsync,
	       (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream), a, context, b,
	       context, 777, stream))
		TELL("cuMemcpyPeerAsync 777 %llu %llu", a, b);
	memset(op, 0, sizeof(op));
	for (int i = 0; i < 2; i++) {
		op[i].src.type = op[i].dst.type = 1;
		op[i].src.at.pointer.address = u(pinned) + 1024 * (unsigned)i;
		op[i].dst.at.pointer.address = a + 8192 * (unsigned)i;
		op[i].width = 20 + (unsigned)i;
		op[i].height = 3;
		op[i].depth = 2;
		op[i].order = 1;
	}
	if (DO(cuMemcpy3DBatchAsync_v2,
	       (size_t, CUDA_MEMCPY3D_BATCH_OP *, unsigned long long, CUstream), 2, op, 0,
	       stream)) {
		TELL("cuMemcpy3DBatchAsync_v2 %d %llu %llu", 20 * 6 + 21 * 6, a, u(pinned));
		TELL("pair %llu %llu %d", a, u(pinned), 20 * 6);
		TELL("pair %llu %llu %d", a + 8192, u(pinned) + 1024, 21 * 6);
	}
}

static void memory(void)
{
	CUDA_ARRAY_DESCRIPTOR line = {.width = 100, .format = 0x20, .channels = 4};
	CUDA_ARRAY3D_DESCRIPTOR deep = {
		.width = 10, .height = 20, .depth = 30, .format = 1, .channels = 2};
	CUarray array;
	CUdeviceptr range, other;
	CUmemGenericAllocationHandle handle;
	/* Pinned memory of device 0, to be read and written by it. */
	int property[8] = {1, 0, 1, 0}, access[3] = {1, 0, 3};
	size_t page = 2 << 20;

	if (DO(cuArrayCreate_v2, (CUarray *, const CUDA_ARRAY_DESCRIPTOR *), &array, &line)) {
		TELL("cuArrayCreate_v2 %d %llu 0", 100 * 16, u(array));
		if (DO(cuMemcpyHtoA_v2, (CUarray, size_t, const void *, size_t), array, 0, host,
		       160))
			TELL("cuMemcpyHtoA_v2 160 %llu %llu", u(array), u(host));
		if (DO(cuArrayDestroy, (CUarray), array))
			TELL("cuArrayDestroy 0 %llu 0", u(array));
	}
	if (DO(cuArray3DCreate_v2, (CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *), &array, &deep))
		TELL("cuArray3DCreate_v2 %d %llu 0", 10 * 20 * 30 * 2, u(array));
	if (DO(cuMemAddressReserve,
	       (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long), &range, 2 * page,
	       0, 0, 0)) {
		TELL("cuMemAddressReserve %zu %llu 0", 2 * page, range);
		for (int i = 0; i < 2; i++) {
			CUdeviceptr at = range + (unsigned)i * page;
			if (!DO(cuMemCreate,
				(CUmemGenericAllocationHandle *, size_t, const void *,
				 unsigned long long),
				&handle, page, property, 0))
				return;
			if (DO(cuMemMap,
			       (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
				unsigned long long),
			       at, page, 0, handle, 0))
				TELL("cuMemMap %zu %llu %llu", page, at, handle);
			if (DO(cuMemRelease, (CUmemGenericAllocationHandle), handle))
				TELL("cuMemRelease 0 %llu 0", handle);
		}
		DO(cuMemSetAccess, (CUdeviceptr, size_t, const void *, size_t), range, 2 * page,
		   access, 1);
		/* Which way this goes is known by the mapping alone. */
		if (DO(cuMemcpyAsync, (CUdeviceptr, CUdeviceptr, size_t, CUstream), range + page,
		       u(pinned), 345, stream))
			TELL("cuMemcpyAsync 345 %llu %llu", range + page, u(pinned));
		DO(cuStreamSynchronize, (CUstream), stream);
		if (DO(cuMemUnmap, (CUdeviceptr, size_t), range, 2 * page))
			TELL("cuMemUnmap %zu %llu 0", 2 * page, range);
	}
	if (DO(cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned), &other, 4096, 1)) {
		CUmemLocation to_host = {2, 5}, to_device = {1, 0};
		TELL("cuMemAllocManaged 4096 %llu 1", other);
		if (DO(cuMemPrefetchAsync_v2,
		       (CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream), other, 4000,
		       to_device, 0, stream))
			TELL("cuMemPrefetchAsync_v2 4000 %llu 0", other);
		if (DO(cuMemPrefetchAsync_v2,
		       (CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream), other, 4000,
		       to_host, 0, stream))
			TELL("cuMemPrefetchAsync_v2 4000 %llu %llu", other, ~0ull);
	}
}

static void graph_line(const char *what, unsigned long long h2d, unsigned long long d2h,
		       unsigned copies, unsigned sets, unsigned children)
{
	TELL("graph %s %llu %llu %u %u %u 0", what, h2d, d2h, copies, sets, children);
}

static CUgraphNode add_copy(CUgraph graph, const CUDA_MEMCPY3D *copy)
{
	CUgraphNode node = NULL;

	DO(cuGraphAddMemcpyNode,
	   (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_MEMCPY3D *, CUcontext),
	   &node, graph, NULL, 0, copy, context);
	return node;
}

static CUDA_MEMCPY3D linear(int up, size_t bytes)
{
	CUDA_MEMCPY3D copy = {.width = bytes, .height = 1, .depth = 1};

	copy.src.type = up ? TFH_MEMORY_HOST : TFH_MEMORY_DEVICE;
	copy.dst.type = up ? TFH_MEMORY_DEVICE : TFH_MEMORY_HOST;
	copy.src.host = copy.dst.host = pinned;
	copy.src.device = copy.dst.device = a;
	return copy;
}

static void launch(CUgraphExec exec)
{
	DO(cuGraphLaunch, (CUgraphExec, CUstream), exec, stream);
	DO(cuStreamSynchronize, (CUstream), stream);
}

static void graphs(void)
{
	struct {
		CUdeviceptr dst;
		size_t pitch;
		unsigned value, element;
		size_t width, height;
	} set = {a, 0, 1, 1, 100, 1};
	CUDA_MEMCPY3D up = linear(1, 1000), down = linear(0, 300), more = linear(1, 700);
	CUgraph graph, child, other;
	CUgraphNode copy, back, fill, inner = NULL;
	CUgraphExec exec;
	struct {
		int result;
		CUgraphNode node, from;
	} info;
	int has_child;

	DO(cuGraphCreate, (CUgraph *, unsigned), &graph, 0);
	DO(cuGraphCreate, (CUgraph *, unsigned), &child, 0);
	copy = add_copy(graph, &up);
	back = add_copy(graph, &down);
	add_copy(child, &more);
	DO(cuGraphAddMemsetNode,
	   (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const void *, CUcontext), &fill,
	   graph, NULL, 0, &set, context);
	has_child = DO(cuGraphAddChildGraphNode,
		       (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph), &inner,
		       graph, NULL, 0, child);
	unsigned long long below = has_child ? 700 : 0;
	unsigned n = 2 + (unsigned)has_child;
	DO(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long), &exec, graph,
	   0);
	graph_line("made", 1000 + below, 300, n, 1, (unsigned)has_child);
	launch(exec);
	up.width = 400;
	if (DO(cuGraphExecMemcpyNodeSetParams,
	       (CUgraphExec, CUgraphNode, const CUDA_MEMCPY3D *, CUcontext), exec, copy, &up,
	       context))
		graph_line("copy-changed", 400 + below, 300, n, 1, (unsigned)has_child);
	launch(exec);
	launch(exec);
	if (DO(cuGraphNodeSetEnabled, (CUgraphExec, CUgraphNode, unsigned), exec, back, 0))
		graph_line("copy-off", 400 + below, 0, n - 1, 1, (unsigned)has_child);
	if (DO(cuGraphNodeSetEnabled, (CUgraphExec, CUgraphNode, unsigned), exec, fill, 0))
		graph_line("set-off", 400 + below, 0, n - 1, 0, (unsigned)has_child);
	launch(exec);
	if (DO(cuGraphNodeSetEnabled, (CUgraphExec, CUgraphNode, unsigned), exec, back, 1))
		graph_line("copy-on", 400 + below, 300, n, 0, (unsigned)has_child);
	launch(exec);
	if (has_child) {
		DO(cuGraphCreate, (CUgraph *, unsigned), &other, 0);
		more.width = 50;
		add_copy(other, &more);
		if (DO(cuGraphExecChildGraphNodeSetParams, (CUgraphExec, CUgraphNode, CUgraph),
		       exec, inner, other))
			graph_line("child-changed", 450, 300, n, 0, 1), below = 50;
		launch(exec);
	}
	/* The same as it was made, but for one node: what is off stays off. */
	up.width = 2000;
	unsigned long long changed =
		DO(cuGraphMemcpyNodeSetParams, (CUgraphNode, const CUDA_MEMCPY3D *), copy, &up)
			? 2000
			: 1000;
	memset(&info, 0, sizeof(info));
	if (DO(cuGraphExecUpdate_v2, (CUgraphExec, CUgraph, void *), exec, graph, &info))
		graph_line("updated", changed + (has_child ? 700 : 0), 300, n, 0,
			   (unsigned)has_child);
	launch(exec);
	DO(cuGraphExecDestroy, (CUgraphExec), exec);
}

/* What lies in the body of a condition runs nobody knows how often. */
static void conditional(void)
{
	CUDA_MEMCPY3D up = linear(1, 1000);
	CUgraphNodeParams params = {.type = 13};
	unsigned long long handle;
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	DO(cuGraphCreate, (CUgraph *, unsigned), &graph, 0);
	add_copy(graph, &up);
	if (!DO(cuGraphConditionalHandleCreate,
		(unsigned long long *, CUgraph, CUcontext, unsigned, unsigned), &handle, graph,
		context, 0, 1))
		return;
	params.of.room[0] = (long long)handle;
	params.of.room[1] = 1ll << 32; /* "if", one body */
	params.of.room[3] = (long long)(uintptr_t)context;
	if (!DO(cuGraphAddNode,
		(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraphNodeParams *), &node,
		graph, NULL, 0, &params))
		return;
	CUgraph body = ((CUgraph *)(uintptr_t)params.of.room[2])[0];
	add_copy(body, &up);
	if (DO(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long), &exec,
	       graph, 0)) {
		TELL("graph conditional 1000 0 1 0 0 1");
		launch(exec);
		DO(cuGraphExecDestroy, (CUgraphExec), exec);
	}
}

int main(void)
{
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver)
		return 1;
	DO(cuInit, (unsigned), 0);
	DO(cuDevicePrimaryCtxRetain, (CUcontext *, int), &context, 0);
	DO(cuCtxSetCurrent, (CUcontext), context);
	DO(cuStreamCreate, (CUstream *, unsigned), &stream, 1);
	DO(cuMemAlloc_v2, (CUdeviceptr *, size_t), &a, ROOM);
	DO(cuMemAlloc_v2, (CUdeviceptr *, size_t), &b, ROOM);
	DO(cuMemHostAlloc, (void **, size_t, unsigned), (void **)&pinned, ROOM, 0);
	host = calloc(1, ROOM);
	DO(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t), a, host, 64);
	batches();
	pitched();
	memory();
	graphs();
	conditional();
	DO(cuCtxSynchronize, (void));
	return failures != 0;
}
