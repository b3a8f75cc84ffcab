/*
 * Many threads use the simulated driver at once, each with streams, events and copies of its own
 * and the shared legacy stream between: every byte arrives, everything ends, memory is given back.
 */
#include "sim_test.h"

#include <pthread.h>

enum { THREADS = 6, TURNS = 150, N = 8192 };

static void *work(void *arg)
{
	uint8_t seed = (uint8_t)(uintptr_t)arg;
	OK(cuCtxSetCurrent, (CUcontext), context);
	CUstream s = new_stream(seed % 2), t = new_stream(0);
	CUevent e = new_event(), f = new_event();
	CUdeviceptr d = device_memory(N), d2 = device_memory(N);
	char *h = pinned_memory(N), *back = malloc(N);
	for (int i = 0; i < TURNS; i++) {
		CUdeviceptr tmp = 0;
		char v = (char)(seed + i);
		memset(h, v, N);
		OK(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream), d, h, N, s);
		spin(s, 0.01);
		OK(cuEventRecord, (CUevent, CUstream), e, s);
		OK(cuStreamWaitEvent, (CUstream, CUevent, unsigned), t, e, 0);
		OK(cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream), &tmp, N, t);
		OK(cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream), tmp, d, N,
		   t);
		OK(cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream), d2, tmp, N,
		   t);
		OK(cuMemFreeAsync, (CUdeviceptr, CUstream), tmp, t);
		OK(cuEventRecord, (CUevent, CUstream), f, t);
		if (i % 3 == 0)
			OK(cuMemsetD8_v2, (CUdeviceptr, uint8_t, size_t), d, 0, N / 2);
		OK(cuStreamWaitEvent, (CUstream, CUevent, unsigned), s, f, 0);
		OK(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream), back, d2, N, t);
		/* The set on the legacy stream may come before the copy out of d, if s does not
		 * wait for it. */
		CHECK(back[N - 1] == v && (seed % 2 || i % 3 == 0 || back[0] == v));
		if (i % 10 == 0) {
			OK(cuStreamDestroy_v2, (CUstream), t);
			t = new_stream(0);
		}
	}
	OK(cuStreamSynchronize, (CUstream), s);
	OK(cuMemFree_v2, (CUdeviceptr), d);
	OK(cuMemFree_v2, (CUdeviceptr), d2);
	OK(cuMemFreeHost, (void *), h);
	free(back);
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];
	size_t before = 0, after = 0, total = 0;
	setenv("SIM_QUEUE_DEPTH", "32", 1);
	open_context();
	spin(NULL, 0);
	OK(cuMemGetInfo_v2, (size_t *, size_t *), &before, &total);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, (void *)(i + 1));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	OK(cuCtxSynchronize, (void), );
	OK(cuMemGetInfo_v2, (size_t *, size_t *), &after, &total);
	CHECK(before == after);
	return failures != 0;
}
