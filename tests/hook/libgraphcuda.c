/* A driver whose executable graphs all have handles of their own: none comes back. */
#include <stddef.h>

int cuInit(unsigned flags)
{
	return flags ? 1 : 0;
}

int cuCtxGetCurrent(void **context)
{
	*context = (void *)0x1000;
	return 0;
}

int cuGraphGetNodes(void *graph, void **nodes, size_t *count)
{
	*count = 0;
	return graph || nodes ? 0 : 1;
}

int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags)
{
	static size_t last = 0x100000;

	*exec = (void *)(last += 64);
	return graph && !flags ? 0 : 1;
}

int cuGraphLaunch(void *exec, void *stream)
{
	return exec && !stream ? 0 : 1;
}

int cuGraphExecDestroy(void *exec)
{
	return exec ? 0 : 1;
}
