/* Changes and updates an executable graph without copies over and over, as XLA does before each launch:
 * graphs_changed TIMES. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *cuda;

#define CALL(name, types) ((int(*) types)dlsym(cuda, #name))

static int add_memset(void *graph, void *context, unsigned long long memory)
{
	struct {
		unsigned long long dst;
		size_t pitch;
		unsigned value, element;
		size_t width, height;
	} set = {memory, 0, 1, 1, 100, 1};
	void *node;

	return CALL(cuGraphAddMemsetNode, (void **, void *, void *const *, size_t, const void *,
					   void *))(&node, graph, NULL, 0, &set, context);
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 1, failed = 0;
	void *context, *graph = NULL, *child = NULL, *inner, *exec;
	unsigned long long memory;
	struct {
		int result;
		void *node, *from;
	} info;

	cuda = dlopen("libcuda.so.1", RTLD_NOW);
	if (!cuda || CALL(cuInit, (unsigned))(0) ||
	    CALL(cuDevicePrimaryCtxRetain, (void **, int))(&context, 0) ||
	    CALL(cuCtxSetCurrent, (void *))(context) ||
	    CALL(cuMemAlloc_v2, (unsigned long long *, size_t))(&memory, 4096))
		return 2;
	int (*create)(void **, unsigned) = CALL(cuGraphCreate, (void **, unsigned));
	failed |= create(&graph, 0) || create(&child, 0) || add_memset(child, context, memory) ||
		  add_memset(child, context, memory) || add_memset(graph, context, memory);
	failed |= CALL(cuGraphAddChildGraphNode, (void **, void *, void *const *, size_t, void *))(
		&inner, graph, NULL, 0, child);
	failed |= CALL(cuGraphInstantiateWithFlags,
		       (void **, void *, unsigned long long))(&exec, graph, 0);
	for (int i = 0; i < times && !failed; i++) {
		failed |= CALL(cuGraphExecChildGraphNodeSetParams,
			       (void *, void *, void *))(exec, inner, child);
		failed |= CALL(cuGraphExecUpdate_v2, (void *, void *, void *))(exec, graph, &info);
		failed |= CALL(cuGraphLaunch, (void *, void *))(exec, NULL);
	}
	return failed || CALL(cuCtxSynchronize, (void))();
}
