/*
 * Nodes of all types run in the order of their edges at exactly the set times (virtual time):
 * graphs below graphs, conditions, events, memory, batches of values; their parameters can be
 * read, changed in the graph and in the executable graph, and whole graphs exchanged; what cannot
 * be run is refused with its reason.
 */
#include "sim_test.h"

#include <stdbool.h>

enum { N = 1 << 16 };
static CUstream stream;
static CUfunction spin_kernel;

static void on_end(void *arg)
{
	++*(int *)arg;
}

static double took(CUgraphExec e)
{
	static CUevent e0, e1;
	float ms = 0;
	if (!e0) {
		e0 = new_event();
		e1 = new_event();
	}
	OK(cuEventRecord, (CUevent, CUstream), e0, stream);
	OK(cuGraphLaunch, (CUgraphExec, CUstream), e, stream);
	OK(cuEventRecord, (CUevent, CUstream), e1, stream);
	OK(cuStreamSynchronize, (CUstream), stream);
	OK(cuEventElapsedTime, (float *, CUevent, CUevent), &ms, e0, e1);
	return (double)ms;
}

/* Times are of 32-bit floats: some nanoseconds. */
static bool near(double a, double b)
{
	return a > b - 1e-4 * (b + 1) && a < b + 1e-4 * (b + 1);
}

static CUgraph graph(void)
{
	CUgraph g = NULL;
	OK(cuGraphCreate, (CUgraph *, unsigned), &g, 0);
	return g;
}

static CUgraphExec instantiate(CUgraph g)
{
	CUgraphExec e = NULL;
	OK(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long), &e, g, 0);
	return e;
}

static int add(CUgraphNode *n, CUgraph g, CUgraphNode after, CUgraphNodeParams *p)
{
	return CU(cuGraphAddNode_v2,
		  (CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t,
		   CUgraphNodeParams *),
		  n, g, &after, NULL, after != NULL, p);
}

static CUgraphNodeParams spin_params(uint64_t *ns, void **params)
{
	params[0] = ns;
	return (CUgraphNodeParams){
		.type = SIM_NODE_KERNEL,
		.kernel = {spin_kernel, 1, 1, 1, 1, 1, 1, 0, params, NULL, NULL, NULL}};
}

static CUgraphNode spin_node(CUgraph g, CUgraphNode after, double ms)
{
	uint64_t ns = (uint64_t)(ms * 1e6);
	void *params[1];
	CUgraphNodeParams p = spin_params(&ns, params);
	CUgraphNode n = NULL;
	CHECK(add(&n, g, after, &p) == 0);
	return n;
}

static void child_graphs(void)
{
	CUgraph inner = graph(), outer = graph(), got = NULL, clone = NULL;
	CUgraphNode a = spin_node(inner, NULL, 2), child = NULL, b, found = NULL;
	spin_node(inner, a, 3);
	b = spin_node(outer, NULL, 1);
	OK(cuGraphAddChildGraphNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraph),
	   &child, outer, &b, 1, inner);
	spin_node(inner, NULL, 50); /* the node has a copy of its own */
	spin_node(outer, child, 4);
	CUgraphExec e = instantiate(outer);
	CHECK(near(took(e), 10));
	OK(cuGraphChildGraphNodeGetGraph, (CUgraphNode, CUgraph *), child, &got);
	CHECK(got && got != inner);
	size_t n = 0;
	OK(cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *), got, NULL, &n);
	CHECK(n == 2);

	/* Nodes below are found, too; the child is exchanged as a whole. */
	CUgraphNode below[2];
	OK(cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *), got, below, &n);
	uint64_t ns = 7000000;
	void *params[1];
	CUgraphNodeParams p = spin_params(&ns, params);
	OK(cuGraphExecNodeSetParams, (CUgraphExec, CUgraphNode, CUgraphNodeParams *), e, below[0],
	   &p);
	CHECK(near(took(e), 15));
	CUgraph other = graph();
	spin_node(other, spin_node(other, NULL, 1), 1);
	OK(cuGraphExecChildGraphNodeSetParams, (CUgraphExec, CUgraphNode, CUgraph), e, child,
	   other);
	CHECK(near(took(e), 7));
	CHECK(CU(cuGraphExecChildGraphNodeSetParams, (CUgraphExec, CUgraphNode, CUgraph), e, child,
		 inner) == CUDA_ERROR_INVALID_VALUE);

	OK(cuGraphClone, (CUgraph *, CUgraph), &clone, outer);
	OK(cuGraphNodeFindInClone, (CUgraphNode *, CUgraphNode, CUgraph), &found, b, clone);
	CHECK(found && found != b);
	CHECK(near(took(instantiate(clone)), 10));
	OK(cuGraphDestroy, (CUgraph), outer);
	CHECK(near(took(e), 7)); /* needs the graph no more */
	OK(cuGraphExecDestroy, (CUgraphExec), e);
}

static CUgraph *conditional(CUgraph g, CUgraphNode after, int type, unsigned size, unsigned value)
{
	CUgraphNodeParams p = {.type = SIM_NODE_CONDITIONAL};
	CUgraphNode n = NULL;
	unsigned long long handle = 0;
	OK(cuGraphConditionalHandleCreate,
	   (unsigned long long *, CUgraph, CUcontext, unsigned, unsigned), &handle, g, context,
	   value, 1);
	p.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){handle, type, size, NULL, context};
	CHECK(add(&n, g, after, &p) == 0);
	return p.conditional.phGraph_out;
}

static void conditions(void)
{
	enum { IF, WHILE, SWITCH };
	CUgraph g = graph(), *body;
	body = conditional(g, NULL, IF, 2, 0);
	spin_node(body[0], NULL, 100);
	spin_node(body[1], NULL, 3);
	CHECK(near(took(instantiate(g)), 3));

	/* Three rounds, by the setting; a graph below a condition below it. */
	g = graph();
	body = conditional(g, NULL, WHILE, 1, 1);
	CUgraph *inner = conditional(body[0], spin_node(body[0], NULL, 1), SWITCH, 3, 2);
	spin_node(inner[1], NULL, 100);
	spin_node(inner[2], NULL, 4);
	CHECK(near(took(instantiate(g)), 15));

	g = graph();
	body = conditional(g, NULL, SWITCH, 2, 7);
	spin_node(body[0], NULL, 100);
	CHECK(near(took(instantiate(g)), 0));

	/* Handles: of this graph, used once, and none left over. */
	unsigned long long handle = 0;
	OK(cuGraphConditionalHandleCreate,
	   (unsigned long long *, CUgraph, CUcontext, unsigned, unsigned), &handle, g, context, 0,
	   0);
	CUDA_GRAPH_INSTANTIATE_PARAMS ip = {0};
	CUgraphExec e = NULL;
	CHECK(CU(cuGraphInstantiateWithParams,
		 (CUgraphExec *, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS *), &e, g,
		 &ip) == CUDA_ERROR_INVALID_VALUE);
	CHECK(ip.result_out == 5);
	CUgraphNodeParams p = {.type = SIM_NODE_CONDITIONAL};
	CUgraphNode n = NULL;
	p.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){handle, WHILE, 1, NULL, context};
	CHECK(add(&n, graph(), NULL, &p) == CUDA_ERROR_INVALID_VALUE);
	CHECK(add(&n, g, NULL, &p) == 0 && add(&n, g, NULL, &p) == CUDA_ERROR_INVALID_VALUE);
	p = (CUgraphNodeParams){.type = SIM_NODE_HOST, .host = {on_end, NULL}};
	CHECK(add(&n, body[0], NULL, &p) == CUDA_ERROR_NOT_SUPPORTED);
}

static void events(void)
{
	CUgraph g = graph();
	CUevent inside = new_event(), outside = new_event(), out = NULL;
	CUstream other = new_stream(1);
	CUgraphNode wait = NULL, record = NULL;
	float ms = 0;
	spin(other, 5);
	OK(cuEventRecord, (CUevent, CUstream), outside, other);
	OK(cuGraphAddEventWaitNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUevent),
	   &wait, g, NULL, 0, outside);
	CUgraphNode k = spin_node(g, wait, 2);
	OK(cuGraphAddEventRecordNode,
	   (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUevent), &record, g, &k, 1,
	   outside);
	OK(cuGraphEventRecordNodeGetEvent, (CUgraphNode, CUevent *), record, &out);
	CHECK(out == outside);
	OK(cuGraphEventRecordNodeSetEvent, (CUgraphNode, CUevent), record, inside);
	spin_node(g, record, 30);
	CUgraphExec e = instantiate(g);
	took(e);
	OK(cuEventElapsedTime, (float *, CUevent, CUevent), &ms, outside, inside);
	CHECK(near((double)ms, 2)); /* began when the other stream was done */
}

static void memory(void)
{
	CUgraph g = graph();
	CUgraphNode alloc = NULL, set = NULL, copy = NULL, release = NULL;
	CUDA_MEM_ALLOC_NODE_PARAMS a = {.poolProps = {.allocType = 1, .locationType = 1},
					.bytesize = N};
	char *h = pinned_memory(N);
	uint64_t used = 1;
	OK(cuGraphAddMemAllocNode,
	   (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUDA_MEM_ALLOC_NODE_PARAMS *),
	   &alloc, g, NULL, 0, &a);
	CHECK(a.dptr != 0);
	CUDA_MEMSET_NODE_PARAMS sp = {a.dptr, 0, 9, 1, N, 1};
	OK(cuGraphAddMemsetNode,
	   (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_MEMSET_NODE_PARAMS *,
	    CUcontext),
	   &set, g, &alloc, 1, &sp, context);
	CUDA_MEMCPY3D cp = {.srcMemoryType = SIM_MEM_DEVICE,
			    .srcDevice = a.dptr,
			    .dstMemoryType = SIM_MEM_HOST,
			    .dstHost = h,
			    .WidthInBytes = N,
			    .Height = 1,
			    .Depth = 1};
	OK(cuGraphAddMemcpyNode,
	   (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_MEMCPY3D *, CUcontext),
	   &copy, g, &set, 1, &cp, context);
	CUgraphExec keeps = instantiate(g);
	OK(cuGraphLaunch, (CUgraphExec, CUstream), keeps, stream);
	/* Still allocated: not again, before it is freed in stream order. */
	CHECK(CU(cuGraphLaunch, (CUgraphExec, CUstream), keeps, stream) ==
	      CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFreeAsync, (CUdeviceptr, CUstream), a.dptr, stream);
	OK(cuGraphLaunch, (CUgraphExec, CUstream), keeps, stream);
	OK(cuMemFree_v2, (CUdeviceptr), a.dptr);
	CHECK(CU(cuMemFree_v2, (CUdeviceptr), a.dptr) == CUDA_ERROR_INVALID_VALUE);
	OK(cuDeviceGetGraphMemAttribute, (int, int, void *), 0, 0, &used);
	CHECK(used == 0);
	OK(cuGraphAddMemFreeNode,
	   (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUdeviceptr), &release, g, &copy,
	   1, a.dptr);
	CUgraphExec frees = instantiate(g);
	memset(h, 0, N);
	took(frees);
	took(frees);
	CHECK(h[0] == 9 && h[N - 1] == 9);
	CHECK(CU(cuGraphClone, (CUgraph *, CUgraph), &g, g) == CUDA_ERROR_NOT_SUPPORTED);
	CHECK(CU(cuGraphDestroyNode, (CUgraphNode), alloc) == CUDA_ERROR_NOT_SUPPORTED);
	OK(cuGraphExecDestroy, (CUgraphExec), keeps);
	OK(cuGraphExecDestroy, (CUgraphExec), frees);
	OK(cuGraphDestroy, (CUgraph), g);
	OK(cuDeviceGraphMemTrim, (int), 0);
	OK(cuDeviceGetGraphMemAttribute, (int, int, void *), 0, 2, &used);
	CHECK(used == 0);
}

static void values(void)
{
	enum { WAIT32 = 1, WRITE32 = 2, WRITE64 = 5, EQ = 1 };
	uint32_t *p = (uint32_t *)pinned_memory(64);
	CUgraph g = graph();
	CUgraphNode n = NULL;
	memset(p, 0, 64);
	CUstreamBatchMemOpParams ops[3] = {
		{.value = {.operation = WRITE32, .address = (uintptr_t)p, .value = 5}},
		{.value = {.operation = WAIT32, .address = (uintptr_t)p, .value = 5, .flags = EQ}},
		{.value = {.operation = WRITE64,
			   .address = (uintptr_t)(p + 2),
			   .value64 = 1ull << 40}}};
	CUDA_BATCH_MEM_OP_NODE_PARAMS bp = {context, 3, ops, 0}, got = {0};
	OK(cuGraphAddBatchMemOpNode,
	   (CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
	    const CUDA_BATCH_MEM_OP_NODE_PARAMS *),
	   &n, g, NULL, 0, &bp);
	memset(ops, 0, sizeof(ops)); /* were copied */
	took(instantiate(g));
	CHECK(p[0] == 5 && p[3] == 1 << 8);
	OK(cuGraphBatchMemOpNodeGetParams, (CUgraphNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *), n, &got);
	CHECK(got.count == 3 && got.paramArray[2].value.value64 == 1ull << 40);
	ops[0].value = (struct sim_value_params){
		.operation = WRITE32, .address = (uintptr_t)(p + 1), .value = 3};
	bp.count = 1;
	OK(cuGraphBatchMemOpNodeSetParams, (CUgraphNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *), n,
	   &bp);
	took(instantiate(g));
	CHECK(p[1] == 3);
	ops[0].value.address++;
	CHECK(CU(cuGraphBatchMemOpNodeSetParams,
		 (CUgraphNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *), n,
		 &bp) == CUDA_ERROR_INVALID_VALUE);
}

static void exchange(void)
{
	CUgraph g = graph(), h = graph(), shorter = graph(), other = graph();
	CUgraphExecUpdateResultInfo info;
	CUgraphNode error = NULL, n = NULL, a = spin_node(g, NULL, 1);
	int result = -1;
	spin_node(g, a, 2);
	spin_node(h, spin_node(h, NULL, 10), 20);
	spin_node(shorter, NULL, 1);
	CUgraphNodeParams p = {.type = SIM_NODE_EMPTY};
	CHECK(add(&n, other, NULL, &p) == 0);
	spin_node(other, n, 1);
	CUgraphExec e = instantiate(g);
	OK(cuGraphExecUpdate_v2, (CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *), e, h,
	   &info);
	CHECK(info.result == 0 && near(took(e), 30));
	CHECK(CU(cuGraphExecUpdate, (CUgraphExec, CUgraph, CUgraphNode *, int *), e, shorter,
		 &error, &result) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	CHECK(result == 2 && !error);
	CHECK(CU(cuGraphExecUpdate_v2, (CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *), e,
		 other, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	CHECK(info.result == 3 && info.errorNode == n);
	CHECK(near(took(e), 30)); /* as it was */

	/* A node of the first graph still means its place; switched off it takes no time. */
	OK(cuGraphNodeSetEnabled, (CUgraphExec, CUgraphNode, unsigned), e, a, 0);
	unsigned on = 1;
	OK(cuGraphNodeGetEnabled, (CUgraphExec, CUgraphNode, unsigned *), e, a, &on);
	CHECK(!on && near(took(e), 20));
}

static void structure(void)
{
	CUgraph g = graph();
	CUgraphNode a = spin_node(g, NULL, 1), b = spin_node(g, a, 1), c = spin_node(g, b, 1), bad;
	CUgraphNode from[8], to[8];
	CUgraphEdgeData edge = {.from_port = 1, .type = 1}, edges[8];
	size_t n = 8;
	OK(cuGraphAddDependencies_v2,
	   (CUgraph, const CUgraphNode *, const CUgraphNode *, const CUgraphEdgeData *, size_t), g,
	   &a, &c, &edge, 1);
	OK(cuGraphGetEdges_v2, (CUgraph, CUgraphNode *, CUgraphNode *, CUgraphEdgeData *, size_t *),
	   g, from, to, edges, &n);
	CHECK(n == 3 && from[2] == a && to[2] == c && edges[2].from_port == 1);
	CHECK(!edges[0].from_port && !from[3]);
	n = 8;
	CHECK(CU(cuGraphGetEdges, (CUgraph, CUgraphNode *, CUgraphNode *, size_t *), g, from, to,
		 &n) == CUDA_ERROR_LOSSY_QUERY);
	n = 8;
	OK(cuGraphNodeGetDependentNodes, (CUgraphNode, CUgraphNode *, size_t *), b, to, &n);
	CHECK(n == 1 && to[0] == c);
	OK(cuGraphRemoveDependencies, (CUgraph, const CUgraphNode *, const CUgraphNode *, size_t),
	   g, &a, &c, 1);
	CHECK(CU(cuGraphRemoveDependencies,
		 (CUgraph, const CUgraphNode *, const CUgraphNode *, size_t), g, &a, &c,
		 1) == CUDA_ERROR_INVALID_VALUE);
	CHECK(near(took(instantiate(g)), 3));
	OK(cuGraphAddDependencies, (CUgraph, const CUgraphNode *, const CUgraphNode *, size_t), g,
	   &c, &a, 1);
	CUDA_GRAPH_INSTANTIATE_PARAMS ip = {0};
	CUgraphExec e = NULL;
	CHECK(CU(cuGraphInstantiateWithParams,
		 (CUgraphExec *, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS *), &e, g,
		 &ip) == CUDA_ERROR_INVALID_VALUE);
	CHECK(ip.result_out == 2 && ip.hErrNode_out);
	CHECK(CU(cuGraphInstantiate_v2, (CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t), &e,
		 g, &bad, NULL, 0) == CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroyNode, (CUgraphNode), b);
	CHECK(near(took(instantiate(g)), 2));
	CHECK(CU(cuGraphAddExternalSemaphoresSignalNode,
		 (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const void *), &bad, g, NULL,
		 0, NULL) == CUDA_ERROR_NOT_SUPPORTED);
	const char *tmp = getenv("TFH_TMP");
	char path[4096];
	snprintf(path, sizeof(path), "%s/dot", tmp ? tmp : "/tmp");
	OK(cuGraphDebugDotPrint, (CUgraph, const char *, unsigned), g, path, 0);
	FILE *f = fopen(path, "r");
	CHECK(f && fgets(path, sizeof(path), f) && strstr(path, "digraph"));
	if (f)
		fclose(f);
}

static void parameters(void)
{
	CUgraph g = graph();
	CUgraphNode n = spin_node(g, NULL, 3), m = spin_node(g, NULL, 0);
	CUDA_KERNEL_NODE_PARAMS k;
	char value[64] = {7}, got[64];
	OK(cuGraphKernelNodeGetParams_v2, (CUgraphNode, CUDA_KERNEL_NODE_PARAMS *), n, &k);
	CHECK(k.func == spin_kernel && *(uint64_t *)k.kernelParams[0] == 3000000);
	uint64_t ns = 6000000;
	void *params[] = {&ns};
	k.kernelParams = params;
	OK(cuGraphKernelNodeSetParams, (CUgraphNode, const CUDA_KERNEL_NODE_PARAMS *), n, &k);
	CHECK(near(took(instantiate(g)), 6));
	OK(cuGraphKernelNodeSetAttribute, (CUgraphNode, int, const void *), n, 8, value);
	OK(cuGraphKernelNodeCopyAttributes, (CUgraphNode, CUgraphNode), m, n);
	OK(cuGraphKernelNodeGetAttribute, (CUgraphNode, int, void *), m, 8, got);
	CHECK(!memcmp(value, got, sizeof(got)));
	CUgraphNodeParams wrong = {.type = SIM_NODE_EMPTY};
	CHECK(CU(cuGraphNodeSetParams, (CUgraphNode, CUgraphNodeParams *), n, &wrong) ==
	      CUDA_ERROR_INVALID_VALUE);
}

static void users(void)
{
	int ended = 0;
	void *object = NULL;
	CUgraph g = graph();
	OK(cuUserObjectCreate, (void **, void *, CUhostFn, unsigned, unsigned), &object, &ended,
	   on_end, 2, 1);
	OK(cuGraphRetainUserObject, (CUgraph, void *, unsigned, unsigned), g, object, 1, 1);
	OK(cuUserObjectRelease, (void *, unsigned), object, 1);
	CUgraphExec e = instantiate(g);
	OK(cuGraphDestroy, (CUgraph), g);
	CHECK(!ended);
	OK(cuGraphExecDestroy, (CUgraphExec), e);
	CHECK(ended == 1);
}

int main(void)
{
	setenv("SIM_TIME", "virtual", 1);
	setenv("SIM_WHILE_COUNT", "3", 1);
	setenv("SIM_LAUNCH_COST", "0ns", 1);
	open_context();
	stream = new_stream(1);
	spin_kernel = kernel(SPIN_PTX, "spin");
	child_graphs();
	conditions();
	events();
	memory();
	values();
	exchange();
	structure();
	parameters();
	users();
	return failures != 0;
}
