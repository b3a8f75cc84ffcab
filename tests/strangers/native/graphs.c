/*
 * Inference of a net with many small layers: requests of changing sizes run as a graph, which is
 * captured anew for each. The twin keeps one for each size.
 */
#include "native.h"

enum { LAYERS = 420, REQUESTS = 800 };
static CUfunction layer[3];

static CUstream s;

static NOINLINE CUgraphExec make_graph(int batch)
{
	CUgraph graph;
	CUgraphExec made;
	CK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	for (int i = 0; i < LAYERS; i++)
		run_kernel(layer[i % 3], 3 + batch / 4, 32, s);
	CK(cuStreamEndCapture(s, &graph));
	CK(cuGraphInstantiateWithFlags(&made, graph, 0));
	CK(cuGraphDestroy(graph));
	return made;
}

int main(void)
{
	boot(0);
	layer[0] = kernel_of("spin_depthwise");
	layer[1] = kernel_of("spin_pointwise");
	layer[2] = kernel_of("spin_swish");
	s = new_stream();
	CUdeviceptr d = on_device(1 << 20);
	char *h = pinned(1 << 20);
	CUgraphExec kept[9] = {0};
	unsigned seed = 1;
	double since = now();
	for (int i = 0; i < REQUESTS; i++) {
		int batch = 1 + rand_r(&seed) % 8;
		CK(cuMemcpyHtoDAsync(d, h, (size_t)batch << 14, s));
		CUgraphExec graph = kept[batch] ? kept[batch] : make_graph(batch);
		CK(cuGraphLaunch(graph, s));
		CK(cuMemcpyDtoHAsync(h, d, (size_t)batch * 4000, s));
		CK(cuStreamSynchronize(s));
		if (fixed())
			kept[batch] = graph;
		else
			CK(cuGraphExecDestroy(graph));
	}
	tell(REQUESTS, since);
	return 0;
}
