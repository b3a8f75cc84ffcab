/*
 * Host functions in streams and graphs, in every way of giving one to the driver. Prints what each
 * was called with and how often, and what the driver says when it is asked for a node's function:
 * the same with and without a recorder. Each function runs for at least a millisecond.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hook/driver/cuda_types.h"

static void *driver;
static int calls[8], wrong, graphs_made;
static pthread_t main_thread;

#define CU(name, types, ...) (((int(*) types)find(#name))(__VA_ARGS__))
#define OK(name, types, ...)                                                                       \
	do {                                                                                       \
		int result_ = CU(name, types, __VA_ARGS__);                                        \
		if (result_)                                                                       \
			printf("line %d: %s: %d\n", __LINE__, #name, result_);                     \
	} while (0)

static void *find(const char *name)
{
	void *found = dlsym(driver, name);

	if (!found)
		printf("no %s\n", name), exit(1);
	return found;
}

static void work(void)
{
	struct timespec ms = {0, 1000000};

	wrong += pthread_equal(pthread_self(), main_thread) != 0;
	nanosleep(&ms, NULL);
}

static void host(void *user)
{
	++*(int *)user;
	work();
}

static void other_host(void *user)
{
	*(int *)user += 100;
	work();
}

static void callback(CUstream stream, CUresult status, void *user)
{
	wrong += stream == NULL || status != 0;
	++*(int *)user;
	work();
}

static void in_streams(CUstream stream)
{
	for (int i = 0; i < 40; i++)
		OK(cuLaunchHostFunc, (CUstream, CUhostFn, void *), stream, host, &calls[0]);
	for (int i = 0; i < 5; i++)
		OK(cuStreamAddCallback, (CUstream, CUstreamCallback, void *, unsigned), stream,
		   callback, &calls[1], 0);
	OK(cuLaunchHostFunc, (CUstream, CUhostFn, void *), NULL, host, &calls[2]);
	OK(cuLaunchHostFunc_ptsz, (CUstream, CUhostFn, void *), NULL, host, &calls[2]);
	OK(cuCtxSynchronize, (void));
	printf("null function: %d\n",
	       CU(cuLaunchHostFunc, (CUstream, CUhostFn, void *), stream, NULL, NULL));
}

static void show(const char *what, CUgraphNode node)
{
	CUDA_HOST_NODE_PARAMS params = {NULL, NULL};

	OK(cuGraphHostNodeGetParams, (CUgraphNode, CUDA_HOST_NODE_PARAMS *), node, &params);
	printf("%s: %s %d\n", what,
	       params.fn == host	 ? "host"
	       : params.fn == other_host ? "other"
					 : "a stranger",
	       (int)((int *)params.user - calls));
}

static void run(CUgraph graph, CUstream stream, CUgraphNode changed)
{
	CUDA_HOST_NODE_PARAMS params = {other_host, &calls[6]};
	CUgraphExec exec;

	graphs_made++;
	OK(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, uint64_t), &exec, graph, 0);
	for (int i = 0; i < 3; i++)
		OK(cuGraphLaunch, (CUgraphExec, CUstream), exec, stream);
	if (changed) {
		OK(cuGraphExecHostNodeSetParams,
		   (CUgraphExec, CUgraphNode, const CUDA_HOST_NODE_PARAMS *), exec, changed,
		   &params);
		OK(cuGraphLaunch, (CUgraphExec, CUstream), exec, stream);
	}
	OK(cuStreamSynchronize, (CUstream), stream);
	OK(cuGraphExecDestroy, (CUgraphExec), exec);
}

static void captured(CUstream stream)
{
	CUgraphNode node = NULL;
	CUgraph graph;
	size_t n = 1;

	OK(cuStreamBeginCapture_v2, (CUstream, int), stream, 2);
	OK(cuLaunchHostFunc, (CUstream, CUhostFn, void *), stream, host, &calls[3]);
	OK(cuStreamEndCapture, (CUstream, CUgraph *), stream, &graph);
	OK(cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *), graph, &node, &n);
	show("captured", node);
	/* Functions in between take and give back boxes. */
	in_streams(stream);
	run(graph, stream, NULL);
	run(graph, stream, NULL);
	OK(cuGraphDestroy, (CUgraph), graph);
}

static void built(CUstream stream)
{
	CUDA_HOST_NODE_PARAMS params = {host, &calls[4]};
	CUgraphNodeParams any = {.type = 3, .of.host = {host, &calls[5]}};
	CUgraphNode node, second = NULL;
	CUgraph graph, clone;

	OK(cuGraphCreate, (CUgraph *, unsigned), &graph, 0);
	OK(cuGraphAddHostNode,
	   (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_HOST_NODE_PARAMS *),
	   &node, graph, NULL, 0, &params);
	show("added", node);
	OK(cuGraphAddNode,
	   (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraphNodeParams *), &second,
	   graph, &node, 1, &any);
	if (second)
		show("added by type", second);
	run(graph, stream, node);
	params.fn = other_host;
	OK(cuGraphHostNodeSetParams, (CUgraphNode, const CUDA_HOST_NODE_PARAMS *), node, &params);
	show("set", node);
	OK(cuGraphHostNodeGetParams, (CUgraphNode, CUDA_HOST_NODE_PARAMS *), node, &params);
	OK(cuGraphHostNodeSetParams, (CUgraphNode, const CUDA_HOST_NODE_PARAMS *), node, &params);
	show("set to what was got", node);
	OK(cuGraphClone, (CUgraph *, CUgraph), &clone, graph);
	OK(cuGraphDestroy, (CUgraph), graph);
	run(clone, stream, NULL);
}

int main(void)
{
	CUcontext context;
	CUstream stream;

	main_thread = pthread_self();
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver)
		return 1;
	OK(cuInit, (unsigned), 0);
	OK(cuDevicePrimaryCtxRetain, (CUcontext *, int), &context, 0);
	OK(cuCtxSetCurrent, (CUcontext), context);
	OK(cuStreamCreate, (CUstream *, unsigned), &stream, 1);
	/* From the first copy on everything is recorded. */
	unsigned long long memory;
	OK(cuMemAlloc_v2, (unsigned long long *, size_t), &memory, 64);
	OK(cuMemcpyHtoD_v2, (unsigned long long, const void *, size_t), memory, calls, 4);
	in_streams(stream);
	captured(stream);
	built(stream);
	OK(cuStreamDestroy_v2, (CUstream), stream);
	for (int i = 0; i < 8; i++)
		printf("%d ", calls[i]);
	printf("wrong %d graphs %d\n", wrong, graphs_made);
	return 0;
}
