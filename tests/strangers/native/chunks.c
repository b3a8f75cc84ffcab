/*
 * Beamforming of a long recording in chunks, on four streams with buffers of their own; a launch
 * in the default stream makes them wait for each other. The twin's streams do not wait for it.
 */
#include "native.h"

enum { CHUNK = 4 << 20, WAYS = 4, CHUNKS = 1000 };

int main(void)
{
	boot(0);
	CUfunction fft = kernel_of("spin_fft"), beam = kernel_of("spin_beamform"),
		   count = kernel_of("spin_progress");
	CUstream s[WAYS];
	CUevent done[WAYS];
	CUdeviceptr in[WAYS], out[WAYS];
	char *chunk[WAYS], *result[WAYS];
	for (int i = 0; i < WAYS; i++) {
		CK(cuStreamCreate(&s[i], fixed() ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
		done[i] = new_event();
		in[i] = on_device(CHUNK);
		out[i] = on_device(CHUNK);
		chunk[i] = pinned(CHUNK);
		result[i] = pinned(CHUNK);
	}
	double since = now();
	for (int i = 0; i < CHUNKS; i++) {
		int k = i % WAYS;
		if (i >= WAYS)
			CK(cuEventSynchronize(done[k]));
		chunk[k][i] = 1;
		CK(cuMemcpyHtoDAsync(in[k], chunk[k], CHUNK, s[k]));
		run_kernel(fft, 500, 512, s[k]);
		run_kernel(beam, 900, 512, s[k]);
		CK(cuMemcpyDtoHAsync(result[k], out[k], CHUNK / 2, s[k]));
		CK(cuEventRecord(done[k], s[k]));
		run_kernel(count, 5, 1, NULL); /* counts chunks for the progress bar */
	}
	CK(cuCtxSynchronize());
	tell(CHUNKS, since);
	return 0;
}
