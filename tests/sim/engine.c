/*
 * The time side of the simulated driver, exact to the nanosecond in virtual time: engines work at
 * once, streams of higher priority go first, kernels overlap as far as the setting allows, waits
 * for values end when the value is written by a stream or by the host, host functions take no
 * time, queries let the clock go on, the first launch loads the kernel. Launches in all forms.
 */
#include "sim_test.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

enum { MS = 1000000 };
static CUevent start;

/* ns from `start` to now in stream s. */
static long at(CUstream s)
{
	CUevent e = new_event();
	float ms = -1;
	OK(cuEventRecord, (CUevent, CUstream), e, s);
	OK(cuEventSynchronize, (CUevent), e);
	OK(cuEventElapsedTime, (float *, CUevent, CUevent), &ms, start, e);
	OK(cuEventDestroy_v2, (CUevent), e);
	return (long)((double)ms * 1e6 + 0.5);
}

static void from_now(CUstream s)
{
	OK(cuCtxSynchronize, (void), );
	OK(cuEventRecord, (CUevent, CUstream), start, s);
}

static void overlap(void)
{
	CUstream s[3] = {new_stream(1), new_stream(1), new_stream(1)};
	from_now(s[0]);
	for (int i = 0; i < 3; i++)
		spin(s[i], 10);
	/* Two at a time. */
	CHECK(at(s[0]) == 10 * MS && at(s[1]) == 10 * MS && at(s[2]) == 20 * MS);

	/* A copy each way beside a kernel; 4 bytes take a nanosecond, and 6 us come on top. */
	enum { N = 4 * MS };
	CUdeviceptr d = device_memory(N);
	char *h = pinned_memory(N), *k = pinned_memory(N);
	from_now(s[0]);
	OK(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream), d, h, N, s[0]);
	OK(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream), k, d, N / 2, s[1]);
	spin(s[2], 3);
	OK(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream), d, h, N / 4, s[1]);
	CHECK(at(s[0]) == MS + 6000);
	/* The second copy waits for the engine that the first stream has. */
	CHECK(at(s[1]) == MS + 6000 + MS / 4 + 6000 && at(s[2]) == 3 * MS);
}

static CUstream with_priority(int p)
{
	CUstream s = NULL;
	OK(cuStreamCreateWithPriority, (CUstream *, unsigned, int), &s, 1, p);
	return s;
}

static void priorities(void)
{
	CUstream low = with_priority(0), low2 = with_priority(0), high = with_priority(-2);
	int p = 0;
	char value[64];
	OK(cuStreamGetPriority, (CUstream, int *), high, &p);
	CHECK(p == -2);
	from_now(low);
	for (int i = 0; i < 2; i++)
		spin(low, 4);
	for (int i = 0; i < 2; i++)
		spin(low2, 4);
	CUstream third = with_priority(0);
	spin(third, 4);
	spin(high, 1);
	/* It goes before what waited longer, but nothing is interrupted. */
	CHECK(at(high) == 5 * MS);
	OK(cuCtxSynchronize, (void), );
	OK(cuStreamCopyAttributes, (CUstream, CUstream), low, high);
	OK(cuStreamGetAttribute, (CUstream, int, void *), low, 8, value);
	memcpy(&p, value, sizeof(p));
	CHECK(p == -2);
	CHECK(CU(cuStreamGetAttribute, (CUstream, int, void *), low, 4, value) ==
	      CUDA_ERROR_INVALID_VALUE);
}

static void *write_later(void *p)
{
	usleep(50000);
	__atomic_store_n((uint64_t *)p, 1ull << 33, __ATOMIC_RELEASE);
	return NULL;
}

static void values(void)
{
	enum { GEQ, EQ, AND, NOR };
	CUstream a = new_stream(1), b = new_stream(1);
	uint32_t *p = (uint32_t *)pinned_memory(64);
	uint64_t *wide = (uint64_t *)(p + 4);
	memset(p, 0, 64);
	from_now(a);
	OK(cuStreamWaitValue32_v2, (CUstream, CUdeviceptr, uint32_t, unsigned), a, (uintptr_t)p, 3,
	   GEQ);
	spin(a, 1);
	CHECK(query(a) == CUDA_ERROR_NOT_READY);
	spin(b, 2);
	OK(cuStreamWriteValue32, (CUstream, CUdeviceptr, uint32_t, unsigned), b, (uintptr_t)p, 2,
	   0);
	spin(b, 3);
	OK(cuStreamWriteValue32_v2, (CUstream, CUdeviceptr, uint32_t, unsigned), b, (uintptr_t)p, 4,
	   0);
	CHECK(at(a) == 6 * MS + 1000); /* the question took a microsecond */

	/* The host writes; the clock stands still meanwhile. */
	pthread_t thread;
	pthread_create(&thread, NULL, write_later, wide);
	from_now(a);
	OK(cuStreamWaitValue64_v2, (CUstream, CUdeviceptr, uint64_t, unsigned), a, (uintptr_t)wide,
	   1ull << 33, AND);
	spin(a, 1);
	CHECK(at(a) == MS);
	pthread_join(thread, NULL);
	OK(cuStreamWaitValue64, (CUstream, CUdeviceptr, uint64_t, unsigned), a, (uintptr_t)wide, 0,
	   NOR);
	CHECK(CU(cuStreamWaitValue32_v2, (CUstream, CUdeviceptr, uint32_t, unsigned), a,
		 (uintptr_t)p + 1, 0, EQ) == CUDA_ERROR_INVALID_VALUE);
	CHECK(CU(cuStreamWaitValue32_v2, (CUstream, CUdeviceptr, uint32_t, unsigned), a,
		 (uintptr_t)&thread, 0, EQ) == CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamSynchronize, (CUstream), a);
}

static void nap(void *arg)
{
	usleep(20000);
	++*(int *)arg;
}

static void waits(void)
{
	CUstream a = new_stream(1);
	int called = 0, polls = 0;
	from_now(a);
	spin(a, 1);
	OK(cuLaunchHostFunc, (CUstream, CUhostFn, void *), a, nap, &called);
	spin(a, 1);
	CHECK(at(a) == 2 * MS && called == 1);
	/* Each question costs a microsecond. */
	from_now(a);
	spin(a, 1);
	while (query(a) == CUDA_ERROR_NOT_READY)
		polls++;
	CHECK(polls == 999);
}

static void loading(void)
{
	CUfunction f = kernel(SPIN_PTX, "spin");
	CUstream a = new_stream(1);
	uint64_t ns = 0;
	void *params[] = {&ns};
	int loaded = -1;
	OK(cuFuncIsLoaded, (int *, CUfunction), &loaded, f);
	CHECK(loaded == 0);
	from_now(a);
	CHECK(launch(f, 1, 1, a, params) == 0 && at(a) == 5 * MS);
	from_now(a);
	CHECK(launch(f, 1, 1, a, params) == 0 && at(a) == 0);
	OK(cuFuncIsLoaded, (int *, CUfunction), &loaded, f);
	CHECK(loaded == 1);
}

static int launch_with(CUfunction f, CUstream s, uint64_t ns, CUlaunchAttribute *attrs, unsigned n)
{
	void *params[] = {&ns};
	CUlaunchConfig k = {4, 1, 1, 1, 1, 1, 0, s, attrs, n};
	return CU(cuLaunchKernelEx, (const CUlaunchConfig *, CUfunction, void **, void **), &k, f,
		  params, NULL);
}

static void launches(void)
{
	CUfunction f = kernel(SPIN_PTX, "spin");
	CUstream a = new_stream(1);
	CUevent e = NULL;
	float ms = 0;
	OK(cuFuncLoad, (CUfunction), f);
	OK(cuEventCreate, (CUevent *, unsigned), &e, 0);
	CUlaunchAttribute attrs[] = {{.id = 2},			  /* cooperative */
				     {.id = 4, .dim = {2, 1, 1}}, /* cluster */
				     {.id = 6},			  /* programmatic serialization */
				     {.id = 12, .event = e}};	  /* completion event */
	from_now(a);
	CHECK(launch_with(f, a, 2 * MS, attrs, 4) == 0);
	OK(cuEventSynchronize, (CUevent), e);
	OK(cuEventElapsedTime, (float *, CUevent, CUevent), &ms, start, e);
	CHECK((long)(ms * 1e6f + 0.5f) == 2 * MS);
	attrs[1].dim[0] = 3;
	CHECK(launch_with(f, a, 0, attrs, 2) == CUDA_ERROR_INVALID_CLUSTER_SIZE);
	attrs[0].id = 99;
	CHECK(launch_with(f, a, 0, attrs, 1) == CUDA_ERROR_INVALID_VALUE);
	CHECK(launch_with(f, a, 0, NULL, 1) == CUDA_ERROR_INVALID_VALUE);

	uint64_t ns = 3 * MS;
	OK(cuFuncSetBlockShape, (CUfunction, int, int, int), f, 1, 1, 1);
	OK(cuParamSetv, (CUfunction, int, void *, unsigned), f, 0, &ns, 8);
	OK(cuParamSetSize, (CUfunction, unsigned), f, 8);
	from_now(a);
	OK(cuLaunchGridAsync, (CUfunction, int, int, CUstream), f, 2, 2, a);
	CHECK(at(a) == 3 * MS);
}

/* Nowhere to put the answer: an error, no crash. */
static void nowhere(void)
{
	CUstream a = new_stream(1);
	CUfunction f = kernel(SPIN_PTX, "spin");
	int bad = CUDA_ERROR_INVALID_VALUE;
	CHECK(CU(cuStreamGetCtx, (CUstream, CUcontext *), a, NULL) == bad);
	CHECK(CU(cuStreamGetId, (CUstream, unsigned long long *), a, NULL) == bad);
	CHECK(CU(cuStreamGetFlags, (CUstream, unsigned *), a, NULL) == bad);
	CHECK(CU(cuStreamGetPriority, (CUstream, int *), a, NULL) == bad);
	CHECK(CU(cuStreamCreate, (CUstream *, unsigned), NULL, 0) == bad);
	CHECK(CU(cuEventCreate, (CUevent *, unsigned), NULL, 0) == bad);
	CHECK(CU(cuFuncGetAttribute, (int *, int, CUfunction), NULL, 0, f) == bad);
	CHECK(CU(cuFuncGetName, (const char **, CUfunction), NULL, f) == bad);
	CHECK(CU(cuFuncGetModule, (CUmodule *, CUfunction), NULL, f) == bad);
	CHECK(CU(cuFuncIsLoaded, (int *, CUfunction), NULL, f) == bad);
	CHECK(CU(cuGraphCreate, (CUgraph *, unsigned), NULL, 0) == bad);
	CHECK(CU(cuStreamIsCapturing, (CUstream, int *), a, NULL) == bad);
	CHECK(CU(cuStreamEndCapture, (CUstream, CUgraph *), a, NULL) == bad);
	CHECK(CU(cuLaunchKernelEx, (const CUlaunchConfig *, CUfunction, void **, void **), NULL, f,
		 NULL, NULL) == bad);
}

/* The real clock and a slot per kernel: they overlap there, too. */
static void in_real_time(void)
{
	CUstream a = new_stream(1), b = new_stream(1);
	start = new_event();
	spin(a, 0);
	from_now(a);
	spin(a, 60);
	spin(b, 60);
	long first = at(a), second = at(b);
	CHECK(first >= 60 * MS && second >= 60 * MS && second < 120 * MS);
	uint32_t *p = (uint32_t *)pinned_memory(64);
	*p = 0;
	OK(cuStreamWaitValue32_v2, (CUstream, CUdeviceptr, uint32_t, unsigned), a, (uintptr_t)p, 7,
	   1);
	usleep(2000);
	CHECK(query(a) == CUDA_ERROR_NOT_READY);
	__atomic_store_n(p, 7, __ATOMIC_RELEASE);
	OK(cuStreamSynchronize, (CUstream), a);
}

int main(int argc, char **argv)
{
	bool real = argc > 1 && !strcmp(argv[1], "real"), one = argc > 1 && !strcmp(argv[1], "one");
	setenv("SIM_TIME", real ? "real" : "virtual", 1);
	setenv("SIM_CONCURRENT_KERNELS", one ? "1" : "2", 1);
	setenv("SIM_LAUNCH_COST", "0ns", 1);
	setenv("SIM_LAZY_LOAD", real ? "0ns" : "5ms", 1);
	open_context();
	if (real) {
		in_real_time();
		return failures != 0;
	}
	start = new_event();
	spin(NULL, 0);
	if (one) {
		priorities();
	} else {
		overlap();
		values();
		waits();
		loading();
		launches();
		nowhere();
	}
	return failures != 0;
}
