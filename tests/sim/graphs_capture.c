/*
 * Stream capture: which calls of which thread end a capture in each of its modes, every error from
 * 900 to 908 where the documentation has it, captured memory, values, events and graphs, capture
 * into a graph that is there, and the dependencies that can be read and changed meanwhile.
 */
#include "sim_test.h"

#include <pthread.h>
#include <stdbool.h>

enum { GLOBAL, THREAD_LOCAL, RELAXED, N = 4096 };

static CUstream s, t;

static int begin(CUstream stream, int mode)
{
	return CU(cuStreamBeginCapture_v2, (CUstream, int), stream, mode);
}

static int end(CUstream stream, CUgraph *g)
{
	return CU(cuStreamEndCapture, (CUstream, CUgraph *), stream, g);
}

static int alloc(void)
{
	CUdeviceptr p = 0;
	int r = CU(cuMemAlloc_v2, (CUdeviceptr *, size_t), &p, N);
	if (!r)
		OK(cuMemFree_v2, (CUdeviceptr), p);
	return r;
}

static void join(CUstream to, CUstream from)
{
	CUevent e = new_event();
	OK(cuEventRecord, (CUevent, CUstream), e, from);
	OK(cuStreamWaitEvent, (CUstream, CUevent, unsigned), to, e, 0);
}

/* What another thread does; its result. */
struct task {
	int (*what)(void);
	int mode, result; /* mode -1: as it is */
};

static void *run_task(void *arg)
{
	struct task *k = arg;
	OK(cuCtxSetCurrent, (CUcontext), context);
	if (k->mode >= 0)
		OK(cuThreadExchangeStreamCaptureMode, (int *), &k->mode);
	k->result = k->what();
	return NULL;
}

static int elsewhere(int (*what)(void), int mode)
{
	struct task k = {what, mode, -1};
	pthread_t thread;
	pthread_create(&thread, NULL, run_task, &k);
	pthread_join(thread, NULL);
	return k.result;
}

static int end_it(void)
{
	CUgraph g;
	return end(s, &g);
}

/* One unsafe call under a capture of this mode: its error and what becomes of the capture. */
static void unsafe(int mode, bool other_thread, int exchange, bool allowed)
{
	CUgraph g = NULL;
	CHECK(begin(s, mode) == 0);
	if (!other_thread && exchange >= 0)
		OK(cuThreadExchangeStreamCaptureMode, (int *), &exchange);
	int r = other_thread ? elsewhere(alloc, exchange) : alloc();
	CHECK(r == (allowed ? 0 : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
	CHECK(end(s, &g) == (allowed ? 0 : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
	if (!other_thread && exchange >= 0)
		OK(cuThreadExchangeStreamCaptureMode, (int *), &exchange);
}

static void modes(void)
{
	unsafe(GLOBAL, false, -1, false);
	unsafe(GLOBAL, true, -1, false);
	unsafe(GLOBAL, true, THREAD_LOCAL, true);
	unsafe(GLOBAL, true, RELAXED, true);
	unsafe(GLOBAL, false, RELAXED, true);
	unsafe(THREAD_LOCAL, false, -1, false);
	unsafe(THREAD_LOCAL, true, -1, true);
	unsafe(RELAXED, false, -1, true);
	unsafe(RELAXED, true, -1, true);
	int mode = 5;
	CHECK(CU(cuThreadExchangeStreamCaptureMode, (int *), &mode) == CUDA_ERROR_INVALID_VALUE);

	/* Events and streams that do not take part count as unsafe, too. */
	CUgraph g;
	CUevent e = new_event();
	CHECK(begin(s, GLOBAL) == 0);
	CHECK(CU(cuEventQuery, (CUevent), e) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	CHECK(end(s, &g) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	CHECK(begin(s, RELAXED) == 0);
	CHECK(CU(cuEventQuery, (CUevent), e) == 0 && query(t) == 0);
	CHECK(end(s, &g) == 0);
}

static void errors(void)
{
	CUgraph g = NULL;
	int status = -1;
	CUevent e = new_event();

	CHECK(begin(s, THREAD_LOCAL) == 0);
	CHECK(elsewhere(end_it, -1) == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
	CHECK(end(s, &g) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED && !g);
	CHECK(begin(s, RELAXED) == 0);
	CHECK(elsewhere(end_it, -1) == 0);

	CHECK(begin(s, RELAXED) == 0 && begin(t, RELAXED) == 0);
	OK(cuEventRecord, (CUevent, CUstream), e, t);
	CHECK(CU(cuStreamWaitEvent, (CUstream, CUevent, unsigned), s, e, 0) ==
	      CUDA_ERROR_STREAM_CAPTURE_MERGE);
	CHECK(end(s, &g) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	CHECK(end(t, &g) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

	CHECK(begin(s, RELAXED) == 0);
	join(t, s);
	CHECK(end(t, &g) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	CHECK(end(s, &g) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	CHECK(begin(s, RELAXED) == 0);
	join(t, s);
	spin(t, 1);
	CHECK(end(s, &g) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);

	/* The legacy stream: implicit dependencies, also in a question. */
	CHECK(begin(s, RELAXED) == 0);
	CHECK(CU(cuStreamIsCapturing, (CUstream, int *), NULL, &status) ==
	      CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	OK(cuEventRecord, (CUevent, CUstream), e, s);
	CHECK(CU(cuStreamWaitEvent, (CUstream, CUevent, unsigned), NULL, e, 0) ==
	      CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	CHECK(CU(cuEventQuery, (CUevent), e) == CUDA_ERROR_CAPTURED_EVENT);
	CHECK(end(s, &g) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	CHECK(launch(kernel(SPIN_PTX, "spin"), 0, 1, s, NULL) == CUDA_ERROR_INVALID_VALUE);
	CUstream n = new_stream(1); /* not blocking: no such dependencies */
	CHECK(begin(n, RELAXED) == 0);
	OK(cuStreamIsCapturing, (CUstream, int *), NULL, &status);
	spin(NULL, 0);
	CHECK(end(n, &g) == 0 && status == SIM_CAPTURE_NONE);

	/* A stream that goes away takes its capture along. */
	CHECK(begin(s, RELAXED) == 0);
	CUstream gone = new_stream(0);
	join(gone, s);
	OK(cuStreamDestroy_v2, (CUstream), gone);
	CHECK(end(s, &g) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	CHECK(end(s, &g) == CUDA_ERROR_ILLEGAL_STATE);
	CHECK(begin(s, GLOBAL) == 0 && begin(s, GLOBAL) == CUDA_ERROR_ILLEGAL_STATE);
	CHECK(end(s, &g) == 0);
}

static CUgraphExec instantiate(CUgraph g)
{
	CUgraphExec e = NULL;
	OK(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long), &e, g, 0);
	return e;
}

static int types(CUgraph g, int *out)
{
	CUgraphNode nodes[16];
	size_t n = 16;
	OK(cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *), g, nodes, &n);
	for (size_t i = 0; i < n; i++)
		OK(cuGraphNodeGetType, (CUgraphNode, int *), nodes[i], &out[i]);
	return (int)n;
}

static void content(void)
{
	CUgraph g = NULL, whole = NULL;
	CUdeviceptr d = 0;
	CUevent e = new_event();
	uint32_t *flag = (uint32_t *)pinned_memory(4);
	char *h = pinned_memory(N);
	int type[16];
	*flag = 0;
	CHECK(begin(s, GLOBAL) == 0);
	OK(cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream), &d, N, s);
	OK(cuMemsetD8Async, (CUdeviceptr, uint8_t, size_t, CUstream), d, 4, N, s);
	OK(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream), h, d, N, s);
	OK(cuMemFreeAsync, (CUdeviceptr, CUstream), d, s);
	OK(cuStreamWriteValue32_v2, (CUstream, CUdeviceptr, uint32_t, unsigned), s, (uintptr_t)flag,
	   1, 0);
	OK(cuEventRecordWithFlags, (CUevent, CUstream, unsigned), e, s, 1);
	CHECK(end(s, &g) == 0 && h[0] == 0 && *flag == 0);
	static const int want[] = {SIM_NODE_ALLOC, SIM_NODE_MEMSET, SIM_NODE_MEMCPY,
				   SIM_NODE_FREE,  SIM_NODE_MEMOP,  SIM_NODE_RECORD_EVENT};
	CHECK(types(g, type) == 6 && !memcmp(type, want, sizeof(want)));
	CUgraphExec x = instantiate(g);
	for (int i = 0; i < 2; i++)
		OK(cuGraphLaunch, (CUgraphExec, CUstream), x, s);
	OK(cuEventSynchronize, (CUevent), e);
	CHECK(h[0] == 4 && h[N - 1] == 4 && *flag == 1);

	/* A launch inside a capture is a graph below. */
	CHECK(begin(s, GLOBAL) == 0);
	spin(s, 1);
	CHECK(end(s, &g) == 0);
	x = instantiate(g);
	CHECK(begin(s, GLOBAL) == 0);
	OK(cuGraphLaunch, (CUgraphExec, CUstream), x, s);
	OK(cuGraphLaunch, (CUgraphExec, CUstream), x, s);
	CHECK(end(s, &whole) == 0);
	CHECK(types(whole, type) == 2 && type[0] == SIM_NODE_GRAPH && type[1] == SIM_NODE_GRAPH);
	OK(cuGraphLaunch, (CUgraphExec, CUstream), instantiate(whole), s);
	OK(cuStreamSynchronize, (CUstream), s);
}

static void into_graph(void)
{
	CUgraph g = NULL, out = NULL, now = NULL;
	CUgraphNode first = NULL, nodes[8];
	const CUgraphNode *deps = NULL;
	const CUgraphEdgeData *edges = NULL;
	CUgraphEdgeData edge = {.type = 1, .from_port = 1};
	size_t n = 0;
	int status = -1;
	uint64_t id = 0;
	OK(cuGraphCreate, (CUgraph *, unsigned), &g, 0);
	OK(cuGraphAddEmptyNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t), &first, g,
	   NULL, 0);
	OK(cuStreamBeginCaptureToGraph,
	   (CUstream, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t, int), s, g,
	   &first, &edge, 1, GLOBAL);
	OK(cuStreamGetCaptureInfo_v3,
	   (CUstream, int *, uint64_t *, CUgraph *, const CUgraphNode **, const CUgraphEdgeData **,
	    size_t *),
	   s, &status, &id, &now, &deps, &edges, &n);
	CHECK(status == SIM_CAPTURE_ACTIVE && id && now == g && n == 1 && deps[0] == first);
	CHECK(edges && edges[0].type == 1);
	spin(s, 1);
	OK(cuStreamUpdateCaptureDependencies, (CUstream, CUgraphNode *, size_t, unsigned), s,
	   &first, 1, 1);
	spin(s, 1);
	OK(cuStreamGetCaptureInfo, (CUstream, int *, uint64_t *), s, &status, &id);
	CHECK(end(s, &out) == 0 && out == g);
	n = 8;
	OK(cuGraphNodeGetDependentNodes_v2,
	   (CUgraphNode, CUgraphNode *, CUgraphEdgeData *, size_t *), first, nodes,
	   (CUgraphEdgeData[8]){{0}}, &n);
	CHECK(n == 2); /* both kernels hang on the first node */
}

int main(void)
{
	setenv("SIM_TIME", "virtual", 1);
	open_context();
	s = new_stream(0);
	t = new_stream(0);
	spin(s, 0); /* loads the kernel */
	modes();
	errors();
	content();
	into_graph();
	return failures != 0;
}
