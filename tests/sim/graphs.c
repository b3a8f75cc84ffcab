/*
 * Graphs of the simulated driver run their nodes in the order of their dependencies with the
 * arguments of the time of the call; changed nodes run with the new ones; stream capture makes the
 * same graphs and gives the documented errors.
 */
#include "sim_test.h"

enum { N = 1 << 16 };

static CUgraphNode add_set(CUgraph g, CUgraphNode after, CUdeviceptr d, uint8_t v)
{
	CUgraphNode n = NULL;
	CUDA_MEMSET_NODE_PARAMS p = {d, 0, v, 1, N, 1};
	OK(cuGraphAddMemsetNode,
	   (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_MEMSET_NODE_PARAMS *,
	    CUcontext),
	   &n, g, &after, after != NULL, &p, context);
	return n;
}

static CUDA_MEMCPY3D copy_of(void *h, CUdeviceptr d)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = SIM_MEM_DEVICE,
			       .srcDevice = d,
			       .dstMemoryType = SIM_MEM_HOST,
			       .dstHost = h,
			       .WidthInBytes = N,
			       .Height = 1,
			       .Depth = 1};
}

static CUgraphExec instantiate(CUgraph g)
{
	CUgraphExec e = NULL;
	OK(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long), &e, g, 0);
	return e;
}

static void run(CUgraphExec e, CUstream s)
{
	OK(cuGraphLaunch, (CUgraphExec, CUstream), e, s);
	OK(cuStreamSynchronize, (CUstream), s);
}

static void on_host(void *arg)
{
	++*(int *)arg;
}

static void built(void)
{
	CUstream s = new_stream(0);
	CUdeviceptr d = device_memory(N);
	char *h = calloc(1, N);
	int calls = 0, type = -1;
	CUgraph g = NULL;
	CUgraphNode set, copy = NULL, spin_node = NULL, host = NULL, nodes[8];
	uint64_t ns = 20000000;
	size_t n = 8, edges = 0;
	void *params[] = {&ns};
	CUDA_KERNEL_NODE_PARAMS k = {
		kernel(SPIN_PTX, "spin"), 1, 1, 1, 1, 1, 1, 0, params, NULL, NULL, NULL};
	CUDA_HOST_NODE_PARAMS hp = {on_host, &calls};
	CUDA_MEMCPY3D c = copy_of(h, d);
	CUevent e0 = new_event(), e1 = new_event();

	OK(cuGraphCreate, (CUgraph *, unsigned), &g, 0);
	OK(cuGraphAddKernelNode,
	   (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_KERNEL_NODE_PARAMS *),
	   &spin_node, g, NULL, 0, &k);
	ns = 0; /* arguments were copied */
	set = add_set(g, spin_node, d, 5);
	OK(cuGraphAddMemcpyNode,
	   (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_MEMCPY3D *, CUcontext),
	   &copy, g, &set, 1, &c, context);
	OK(cuGraphAddHostNode,
	   (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_HOST_NODE_PARAMS *),
	   &host, g, &copy, 1, &hp);
	OK(cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *), g, nodes, &n);
	OK(cuGraphGetEdges, (CUgraph, CUgraphNode *, CUgraphNode *, size_t *), g, NULL, NULL,
	   &edges);
	OK(cuGraphNodeGetType, (CUgraphNode, int *), copy, &type);
	CHECK(n == 4 && edges == 3 && type == SIM_NODE_MEMCPY);

	CUgraphExec e = instantiate(g);
	OK(cuEventRecord, (CUevent, CUstream), e0, s);
	run(e, s);
	OK(cuEventRecord, (CUevent, CUstream), e1, s);
	OK(cuEventSynchronize, (CUevent), e1);
	float ms = 0;
	OK(cuEventElapsedTime, (float *, CUevent, CUevent), &ms, e0, e1);
	CHECK(ms >= 20 && h[0] == 5 && h[N - 1] == 5 && calls == 1);

	/* New arguments for one node of the executable graph. */
	ns = 1000;
	OK(cuGraphExecKernelNodeSetParams,
	   (CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS *), e, spin_node, &k);
	CUDA_MEMSET_NODE_PARAMS p = {d, 0, 6, 1, N, 1};
	OK(cuGraphExecMemsetNodeSetParams,
	   (CUgraphExec, CUgraphNode, const CUDA_MEMSET_NODE_PARAMS *, CUcontext), e, set, &p,
	   context);
	run(e, s);
	CHECK(h[0] == 6 && h[N - 1] == 6 && calls == 2);
	OK(cuGraphNodeSetEnabled, (CUgraphExec, CUgraphNode, unsigned), e, copy, 0);
	memset(h, 0, N);
	run(e, s);
	CHECK(h[0] == 0 && calls == 3);
	OK(cuGraphExecDestroy, (CUgraphExec), e);
	OK(cuGraphDestroy, (CUgraph), g);
	free(h);
}

static void begin(CUstream s)
{
	OK(cuStreamBeginCapture_v2, (CUstream, int), s, 0);
}

static int end(CUstream s, CUgraph *g)
{
	return CU(cuStreamEndCapture, (CUstream, CUgraph *), s, g);
}

static int capturing(CUstream s)
{
	int status = -1;
	OK(cuStreamIsCapturing, (CUstream, int *), s, &status);
	return status;
}

static void captured(void)
{
	CUstream s = new_stream(0), t = new_stream(0);
	CUevent fork_event = new_event(), join = new_event();
	CUdeviceptr d = device_memory(N), d2 = device_memory(N);
	char *h = pinned_memory(N), *h2 = pinned_memory(N);
	CUgraph g = NULL;
	size_t n = 0;
	memset(h, 0, N);
	begin(s);
	CHECK(capturing(s) == SIM_CAPTURE_ACTIVE);
	OK(cuMemsetD8Async, (CUdeviceptr, uint8_t, size_t, CUstream), d, 3, N, s);
	OK(cuEventRecord, (CUevent, CUstream), fork_event, s);
	OK(cuStreamWaitEvent, (CUstream, CUevent, unsigned), t, fork_event, 0);
	CHECK(capturing(t) == SIM_CAPTURE_ACTIVE);
	OK(cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream), d2, d, N, t);
	OK(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream), h2, d2, N, t);
	OK(cuEventRecord, (CUevent, CUstream), join, t);
	spin(s, 1);
	OK(cuStreamWaitEvent, (CUstream, CUevent, unsigned), s, join, 0);
	OK(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream), h, d2, N, s);
	CHECK(CU(cuMemsetD8_v2, (CUdeviceptr, uint8_t, size_t), d, 9, N) ==
	      CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	CHECK(end(s, &g) == 0 && g && capturing(s) == 0 && capturing(t) == 0);
	CHECK(h[0] == 0); /* nothing ran */
	OK(cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *), g, NULL, &n);
	CHECK(n == 5);
	run(instantiate(g), s);
	CHECK(h[0] == 3 && h[N - 1] == 3 && h2[N - 1] == 3);

	/* Errors: waiting inside a capture, a fork that is not joined, foreign events, the legacy
	 * stream. */
	begin(s);
	CHECK(CU(cuStreamSynchronize, (CUstream), s) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	CHECK(capturing(s) == SIM_CAPTURE_INVALIDATED);
	CHECK(end(s, &g) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED && !g);
	begin(s);
	OK(cuEventRecord, (CUevent, CUstream), fork_event, s);
	OK(cuStreamWaitEvent, (CUstream, CUevent, unsigned), t, fork_event, 0);
	spin(t, 1);
	CHECK(CU(cuEventSynchronize, (CUevent), fork_event) == CUDA_ERROR_CAPTURED_EVENT);
	CHECK(end(s, &g) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED && !g);
	OK(cuEventRecord, (CUevent, CUstream), join, t);
	begin(s);
	CHECK(CU(cuStreamWaitEvent, (CUstream, CUevent, unsigned), s, join, 0) ==
	      CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	CHECK(end(s, &g) != 0);
	CHECK(CU(cuStreamBeginCapture_v2, (CUstream, int), NULL, 0) ==
	      CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	CHECK(end(s, &g) == CUDA_ERROR_ILLEGAL_STATE);
	OK(cuCtxSynchronize, (void), );
}

int main(void)
{
	open_context();
	built();
	captured();
	return failures != 0;
}
