/*
 * Monte Carlo pricing without a defect: two streams take turns, a batch's result is read while the
 * next runs.
 */
#include "native.h"

enum { BATCHES = 300 };

int main(void)
{
	boot(0);
	CUfunction paths = kernel_of("spin_heston_paths"), reduce = kernel_of("spin_reduce");
	CUstream s[2] = {new_stream(), new_stream()};
	CUevent done[2] = {new_event(), new_event()};
	CUdeviceptr in[2] = {on_device(1 << 20), on_device(1 << 20)},
		    out[2] = {on_device(4096), on_device(4096)};
	double *result[2] = {pinned(4096), pinned(4096)}, sum = 0;
	char *parameters[2] = {pinned(1 << 20), pinned(1 << 20)};
	double since = now();
	for (int i = 0; i < BATCHES; i++) {
		int k = i & 1;
		if (i >= 2) {
			CK(cuEventSynchronize(done[k]));
			sum += result[k][0];
		}
		for (int j = 0; j < 4096; j++)
			parameters[k][j] = (char)(i * j);
		CK(cuMemcpyHtoDAsync(in[k], parameters[k], 1 << 20, s[k]));
		run_kernel(paths, 8200 + i % 7 * 150, 2048, s[k]);
		run_kernel(reduce, 260, 64, s[k]);
		CK(cuMemcpyDtoHAsync(result[k], out[k], 8, s[k]));
		CK(cuEventRecord(done[k], s[k]));
	}
	CK(cuCtxSynchronize());
	printf("price %g\n", sum / BATCHES);
	tell(BATCHES, since);
	return 0;
}
