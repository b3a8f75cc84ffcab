/*
 * What the strangers' jobs in C share: the driver's set-up, kernels that take a set time, a clock,
 * and what the job says of itself in its last line of output.
 */
#ifndef STRANGERS_NATIVE_H
#define STRANGERS_NATIVE_H
#include <cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CK(call)                                                                                   \
	do {                                                                                       \
		CUresult r_ = (call);                                                              \
		if (r_) {                                                                          \
			fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, r_);   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)
#define NOINLINE __attribute__((noinline))

static inline double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Whether this is the twin, which has no defect. */
static inline int fixed(void)
{
	return getenv("FIX") != NULL;
}

static inline CUcontext boot(int number)
{
	CUcontext context;
	CUdevice device;
	CK(cuInit(0));
	CK(cuDeviceGet(&device, number));
	CK(cuDevicePrimaryCtxRetain(&context, device));
	CK(cuCtxSetCurrent(context));
	return context;
}

static inline CUfunction kernel_of(const char *name)
{
	char ptx[300];
	CUmodule module;
	CUfunction function;
	snprintf(ptx, sizeof(ptx),
		 ".version 8.0\n.target sm_80\n.address_size 64\n"
		 ".visible .entry %s(.param .u64 ns, .param .u64 p) { ret; }\n",
		 name);
	CK(cuModuleLoadData(&module, ptx));
	CK(cuModuleGetFunction(&function, module, name));
	return function;
}

/* Launches a kernel that takes `us` microseconds. */
static inline void run_kernel(CUfunction function, double us, unsigned grid, CUstream stream)
{
	uint64_t ns = (uint64_t)(us * 1e3), nothing = 0;
	void *arguments[] = {&ns, &nothing};
	CK(cuLaunchKernel(function, grid, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
}

static inline CUstream new_stream(void)
{
	CUstream stream;
	CK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

static inline CUevent new_event(void)
{
	CUevent event;
	CK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	return event;
}

static inline CUdeviceptr on_device(size_t bytes)
{
	CUdeviceptr memory;
	CK(cuMemAlloc(&memory, bytes));
	return memory;
}

static inline void *pinned(size_t bytes)
{
	void *memory;
	CK(cuMemHostAlloc(&memory, bytes, 0));
	return memory;
}

static inline void tell(long steps, double since)
{
	printf("{\"steps\": %ld, \"step_ms\": %.4f}\n", steps,
	       (now() - since) * 1e3 / (double)steps);
	fflush(stdout);
}
#endif
