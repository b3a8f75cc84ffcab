/*
 * The simulated driver orders work as the real one: engines overlap, events and the legacy stream
 * order, pageable memory blocks and pinned does not, a full queue blocks; bytes move; every name is
 * found at its exported address; fork, exit and host functions answer as documented. Run without
 * arguments.
 */
#include "sim_test.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- names ---- */
struct row {
	const char *symbol, *base;
	int version, pt;
};
static const struct row rows[] = {
#define SIM_EXPORT(symbol, base, version, pt) {#symbol, #base, version, pt},
#define SIM_ALIAS SIM_EXPORT
#include "sim/gpu/entry/exports.def"
};

static int look_up(const char *name, int version, uint64_t flags, void **fn, int *status)
{
	return CU(cuGetProcAddress_v2, (const char *, void **, int, uint64_t, int *), name, fn,
		  version, flags, status);
}

static void names(void)
{
	void *fn;
	int status;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *exported = dlsym(driver, rows[i].symbol);
		CHECK(exported != NULL);
		if (!rows[i].version)
			continue;
		CHECK(look_up(rows[i].base, rows[i].version, rows[i].pt ? 2 : 0, &fn, &status) ==
			      0 &&
		      status == 0);
		/* A base name without a legacy twin of this age may have a per-thread one, and the
		 * reverse. */
		if (fn != exported)
			fprintf(stderr, "%s %d: another address\n", rows[i].symbol,
				rows[i].version);
		CHECK(fn == exported);
	}
	CHECK(look_up("cuMemAlloc", 2000, 0, &fn, &status) == 0 && fn == symbol("cuMemAlloc"));
	CHECK(look_up("cuMemAlloc", 12000, 0, &fn, &status) == 0 && fn == symbol("cuMemAlloc_v2"));
	CHECK(look_up("cuMemAlloc", 12000, 2, &fn, &status) == 0 && fn == symbol("cuMemAlloc_v2"));
	CHECK(look_up("cuLaunchKernel", 12000, 1, &fn, &status) == 0 &&
	      fn == symbol("cuLaunchKernel"));
	CHECK(look_up("cuLaunchKernel", 12000, 2, &fn, &status) == 0 &&
	      fn == symbol("cuLaunchKernel_ptsz"));
	CHECK(look_up("cuFuncSetAttribute", 2000, 0, &fn, &status) == 0 &&
	      fn == symbol("cuFuncSetAttribute"));
	CHECK(look_up("cuGetProcAddress", 11030, 0, &fn, &status) == 0 &&
	      fn == symbol("cuGetProcAddress"));
	CHECK(look_up("cuGetProcAddress", 12000, 0, &fn, &status) == 0 &&
	      fn == symbol("cuGetProcAddress_v2"));
	CHECK(look_up("cuNoSuchThing", 12000, 0, &fn, &status) == 0 && !fn && status == 1);
	CHECK(look_up("", 0, 0, &fn, &status) == 0 && !fn && status == 1);
	CHECK(look_up("cuInit", 99000, 0, &fn, &status) == 1);
	CHECK(look_up("cuInit", 12000, 7, &fn, &status) == 1);
	CHECK(CU(cuGetProcAddress, (const char *, void **, int, uint64_t), "cuInit", &fn, 12000,
		 0) == 0 &&
	      fn == symbol("cuInit"));
}

/* ---- order and overlap ---- */
static float between(CUevent a, CUevent b)
{
	float ms = 0;
	OK(cuEventElapsedTime, (float *, CUevent, CUevent), &ms, a, b);
	return ms;
}

static void record(CUevent e, CUstream s)
{
	OK(cuEventRecord, (CUevent, CUstream), e, s);
}

static void sync_stream(CUstream s)
{
	OK(cuStreamSynchronize, (CUstream), s);
}

static int htod_async(CUdeviceptr d, const void *h, size_t n, CUstream s)
{
	return CU(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream), d, h, n, s);
}

static int dtoh_async(void *h, CUdeviceptr d, size_t n, CUstream s)
{
	return CU(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream), h, d, n, s);
}

static void set8(CUdeviceptr d, uint8_t v, size_t n, CUstream s)
{
	OK(cuMemsetD8Async, (CUdeviceptr, uint8_t, size_t, CUstream), d, v, n, s);
}

enum { N = 1 << 20 };

static void overlap(void)
{
	CUstream a = new_stream(1), b = new_stream(1);
	CUevent k0 = new_event(), k1 = new_event(), c0 = new_event(), c1 = new_event();
	CUdeviceptr d = device_memory(N);
	char *h = pinned_memory(N);
	record(k0, a);
	spin(a, 100);
	record(k1, a);
	record(c0, b);
	CHECK(htod_async(d, h, N, b) == 0);
	record(c1, b);
	sync_stream(b);
	CHECK(query(a) == CUDA_ERROR_NOT_READY); /* the copy did not wait for the kernel */
	sync_stream(a);
	CHECK(between(k0, c1) > 0 && between(c0, k1) > 0 && between(c0, c1) > 0);
	CHECK(between(k0, k1) >= 99.9F);
}

static void order(void)
{
	CUstream a = new_stream(1), b = new_stream(1);
	CUevent e = new_event();
	CUdeviceptr d = device_memory(N);
	char *h = pinned_memory(N);
	spin(a, 20);
	set8(d, 7, N, a);
	record(e, a);
	OK(cuStreamWaitEvent, (CUstream, CUevent, unsigned), b, e, 0);
	CHECK(dtoh_async(h, d, N, b) == 0);
	sync_stream(b);
	CHECK(h[0] == 7 && h[N - 1] == 7);
	CHECK(CU(cuEventQuery, (CUevent), e) == 0);
}

static void legacy(void)
{
	CUstream a = new_stream(0), b = new_stream(0), apart = new_stream(1);
	CUdeviceptr d = device_memory(N), d2 = device_memory(N);
	char *h = pinned_memory(N);
	spin(a, 20);
	set8(d, 9, N, a);
	OK(cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream), d2, d, N, NULL);
	CHECK(dtoh_async(h, d2, N, b) == 0);
	sync_stream(b);
	CHECK(h[0] == 9 && h[N - 1] == 9);
	spin(apart, 200);
	sync_stream(NULL);
	CHECK(query(apart) == CUDA_ERROR_NOT_READY);
	/* The per-thread default stream and the legacy one wait for each other. */
	spin((CUstream)2, 20);
	CHECK(CU(cuStreamQuery_ptsz, (CUstream), NULL) == CUDA_ERROR_NOT_READY);
	sync_stream(NULL);
	CHECK(CU(cuStreamQuery_ptsz, (CUstream), NULL) == 0);
	OK(cuCtxSynchronize, (void), );
	CHECK(query(apart) == 0);
}

static void blocking(void)
{
	CUstream s = new_stream(1);
	CUdeviceptr d = device_memory(N);
	char *pinned = pinned_memory(N), *pageable = malloc(N), small[1000];
	memset(pageable, 3, N);
	memset(small, 4, sizeof(small));
	memset(pinned, 5, N);

	spin(s, 100);
	CHECK(htod_async(d, pinned, N, s) == 0);
	CHECK(query(s) == CUDA_ERROR_NOT_READY);
	sync_stream(s);

	spin(s, 20);
	CHECK(htod_async(d, pageable, N, s) == 0);
	CHECK(query(s) == 0);

	spin(s, 100);
	CHECK(htod_async(d, small, sizeof(small), s) == 0); /* staged: the source is free again */
	CHECK(query(s) == CUDA_ERROR_NOT_READY);
	memset(small, 0, sizeof(small));
	CHECK(dtoh_async(pinned, d, N, s) == 0);
	CHECK(query(s) == CUDA_ERROR_NOT_READY);
	sync_stream(s);
	CHECK(pinned[0] == 4 && pinned[999] == 4 && pinned[1000] == 3 && pinned[N - 1] == 3);

	spin(s, 20);
	set8(d, 8, N, s);
	CHECK(dtoh_async(pageable, d, N, s) == 0);
	CHECK(pageable[0] == 8 && pageable[N - 1] == 8);

	/* Registered memory is pinned; a synchronous call of pinned memory waits. */
	OK(cuMemHostRegister_v2, (void *, size_t, unsigned), pageable, N, 0);
	spin(s, 100);
	CHECK(htod_async(d, pageable, N, s) == 0);
	CHECK(query(s) == CUDA_ERROR_NOT_READY);
	sync_stream(s);
	OK(cuMemHostUnregister, (void *), pageable);
	spin(NULL, 20);
	OK(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), pinned, d, N);
	CHECK(query(NULL) == 0 && pinned[5] == 8);
	free(pageable);
}

static void queue(void)
{
	CUstream s = new_stream(1);
	CUevent first = new_event();
	spin(s, 200);
	record(first, s);
	for (int i = 0; i < 13; i++)
		spin(s, 0.001);
	CHECK(CU(cuEventQuery, (CUevent), first) == CUDA_ERROR_NOT_READY);
	for (int i = 0; i < 3; i++)
		spin(s, 0.001);
	CHECK(CU(cuEventQuery, (CUevent), first) == 0); /* the seventeenth call had to wait */
	sync_stream(s);
}

/* ---- host functions ---- */
struct note {
	pthread_t thread;
	int calls, inner;
};

static void on_host(void *arg)
{
	struct note *n = arg;
	n->thread = pthread_self();
	n->inner = CU(cuCtxSynchronize, (void), );
	n->calls++;
}

static void on_stream(CUstream s, CUresult r, void *arg)
{
	(void)s;
	if (!r)
		on_host(arg);
}

static void callbacks(void)
{
	CUstream s = new_stream(1);
	struct note n = {0};
	OK(cuLaunchHostFunc, (CUstream, CUhostFn, void *), s, on_host, &n);
	OK(cuStreamAddCallback, (CUstream, CUstreamCallback, void *, unsigned), s, on_stream, &n,
	   0);
	sync_stream(s);
	CHECK(n.calls == 2 && !pthread_equal(n.thread, pthread_self()) &&
	      n.inner == CUDA_ERROR_NOT_PERMITTED);
}

/* ---- memory ---- */
static void memory(void)
{
	size_t before = 0, after = 0, total = 0, n = 0;
	CUdeviceptr base = 0, d;
	unsigned type = 0;
	int local = 0;
	OK(cuMemGetInfo_v2, (size_t *, size_t *), &before, &total);
	d = device_memory(10000);
	OK(cuMemGetInfo_v2, (size_t *, size_t *), &after, &total);
	CHECK(after < before && before <= total);
	OK(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr), &base, &n, d + 17);
	CHECK(base == d && n == 10000);
	OK(cuPointerGetAttribute, (void *, int, CUdeviceptr), &type, 2, d + 17);
	CHECK(type == SIM_MEM_DEVICE);
	CHECK(CU(cuPointerGetAttribute, (void *, int, CUdeviceptr), &type, 2,
		 (CUdeviceptr)(uintptr_t)&local) == 1);
	OK(cuMemFree_v2, (CUdeviceptr), d);
	OK(cuMemGetInfo_v2, (size_t *, size_t *), &after, &total);
	CHECK(after == before);
	CHECK(CU(cuMemFree_v2, (CUdeviceptr), d) == CUDA_ERROR_INVALID_VALUE);
	CHECK(CU(cuMemAlloc_v2, (CUdeviceptr *, size_t), &d, total + 1) ==
	      CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(CU(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t),
		 (CUdeviceptr)(uintptr_t)&local, &type, 4) == 1);

	CUstream s = new_stream(0);
	OK(cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream), &d, 4096, s);
	spin(s, 20);
	set8(d, 1, 4096, s);
	OK(cuMemFreeAsync, (CUdeviceptr, CUstream), d, s);
	sync_stream(s);
	OK(cuMemGetInfo_v2, (size_t *, size_t *), &after, &total);
	CHECK(after == before);
	OK(cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned), &d, 4096, 1);
	set8(d, 6, 4096, s);
	sync_stream(s);
	CHECK(*(char *)(uintptr_t)d == 6);
	OK(cuStreamDestroy_v2, (CUstream), s);

	d = device_memory(64);
	uint32_t back[16];
	OK(cuMemsetD32_v2, (CUdeviceptr, uint32_t, size_t), d, 0x01020304, 16);
	OK(cuMemcpy, (CUdeviceptr, CUdeviceptr, size_t), (CUdeviceptr)(uintptr_t)back, d, 64);
	CHECK(back[0] == 0x01020304 && back[15] == 0x01020304);
	CUDA_MEMCPY2D c = {.srcMemoryType = SIM_MEM_HOST,
			   .srcHost = "abcdefghij",
			   .srcPitch = 5,
			   .srcXInBytes = 1,
			   .dstMemoryType = SIM_MEM_DEVICE,
			   .dstDevice = d,
			   .dstPitch = 8,
			   .WidthInBytes = 3,
			   .Height = 2};
	OK(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *), &c);
	OK(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), back, d, 16);
	CHECK(!memcmp(back, "bcd", 3) && !memcmp((char *)back + 8, "ghi", 3));
}

/* ---- process life ---- */
static void *from_thread(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)CU(cuCtxSynchronize, (void), );
}

static void contexts(void)
{
	pthread_t t;
	void *r = NULL;
	CUcontext c = NULL, now = NULL;
	pthread_create(&t, NULL, from_thread, NULL);
	pthread_join(t, &r);
	CHECK((intptr_t)r == CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxCreate_v2, (CUcontext *, unsigned, int), &c, 0, 0);
	OK(cuCtxGetCurrent, (CUcontext *), &now);
	CHECK(now == c);
	OK(cuCtxPopCurrent_v2, (CUcontext *), &now);
	CHECK(now == c);
	OK(cuCtxGetCurrent, (CUcontext *), &now);
	CHECK(now == context);
	OK(cuCtxDestroy_v2, (CUcontext), c);
	CHECK(CU(cuCtxSetCurrent, (CUcontext), NULL) == 0);
	CHECK(CU(cuCtxSynchronize, (void), ) == CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxSetCurrent, (CUcontext), context);
}

static void forked(void)
{
	int status = 0;
	spin(NULL, 20);
	pid_t pid = fork();
	if (!pid)
		_exit(CU(cuCtxSynchronize, (void), ) == CUDA_ERROR_NOT_INITIALIZED &&
				      CU(cuMemAlloc_v2, (CUdeviceptr *, size_t), NULL, 1) ==
					      CUDA_ERROR_NOT_INITIALIZED
			      ? 0
			      : 1);
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	OK(cuCtxSynchronize, (void), );
}

/* Registered before cuInit, so that it runs after the driver's own handler. */
static void after_driver(void)
{
	if (CU(cuCtxSynchronize, (void), ) != CUDA_ERROR_DEINITIALIZED) {
		fprintf(stderr, "a call after the driver's exit handler is not refused\n");
		_exit(1);
	}
}

int main(void)
{
	setenv("SIM_QUEUE_DEPTH", "16", 1);
	setenv("SIM_FAIL", "cuMemAllocHost_v2:2:2", 1);
	open_driver();
	CHECK(CU(cuCtxSynchronize, (void), ) == CUDA_ERROR_NOT_INITIALIZED);
	atexit(after_driver);
	names();
	open_context();
	overlap();
	order();
	legacy();
	blocking();
	queue();
	callbacks();
	memory();
	contexts();
	forked();
	void *p;
	OK(cuMemAllocHost_v2, (void **, size_t), &p, 64);
	CHECK(CU(cuMemAllocHost_v2, (void **, size_t), &p, 64) == CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAllocHost_v2, (void **, size_t), &p, 64);
	CHECK(CU(cuMulticastCreate, (void **, void *), &p, NULL) == CUDA_ERROR_NOT_SUPPORTED);
	/* Closing the library while its threads work must not pull it from under them. */
	spin(NULL, 20);
	dlclose(driver);
	driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	CHECK(driver != NULL);
	if (driver)
		OK(cuCtxSynchronize, (void), );
	return failures != 0;
}
