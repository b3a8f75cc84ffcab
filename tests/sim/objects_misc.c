/*
 * The rest of the driver's face: green contexts and their events, occupancy, questions about
 * modules, devices and contexts, tensor maps, settings for debugging, copies between devices, and
 * a machine on which no more threads can be made. Run with two devices.
 */
#include "objects_test.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- green contexts ---- */
struct resource {
	int type;
	unsigned char padding[92];
	union {
		struct {
			unsigned count, least, alignment;
		} sm;
		unsigned char oversize[48];
	} u;
};

static void green(void)
{
	struct resource all, part[8], rest;
	unsigned n = 2;
	void *desc = NULL, *g = NULL, *of_stream = NULL;
	CUcontext ctx = NULL, of = NULL, before = NULL;
	CUstream s = NULL, other = new_stream(1);
	CUevent e = new_event();
	IS(914, cuDeviceGetDevResource, (int, void *, int), 0, &all, 9);
	IS(0, cuDeviceGetDevResource, (int, void *, int), 0, &all, 1);
	IS(0, cuDevSmResourceSplitByCount,
	   (void *, unsigned *, const void *, void *, unsigned, unsigned), part, &n, &all, &rest, 0,
	   17);
	CHECK(n == 2 && part[0].u.sm.count >= 17 && part[0].u.sm.count % all.u.sm.alignment == 0 &&
	      rest.u.sm.count == all.u.sm.count - 2 * part[0].u.sm.count);
	IS(INVALID, cuDevSmResourceSplitByCount,
	   (void *, unsigned *, const void *, void *, unsigned, unsigned), part, &n, &all, &rest, 0,
	   10000);
	IS(0, cuDevResourceGenerateDesc, (void **, void *, unsigned), &desc, part, 2);
	IS(INVALID, cuGreenCtxCreate, (void **, void *, int, unsigned), &g, desc, 0, 0);
	IS(0, cuGreenCtxCreate, (void **, void *, int, unsigned), &g, desc, 0, 1);
	IS(0, cuGreenCtxGetDevResource, (void *, void *, int), g, &rest, 1);
	CHECK(rest.u.sm.count == 2 * part[0].u.sm.count);
	IS(0, cuCtxFromGreenCtx, (CUcontext *, void *), &ctx, g);
	IS(INVALID, cuGreenCtxStreamCreate, (CUstream *, void *, unsigned, int), &s, g, 0, 0);
	IS(0, cuGreenCtxStreamCreate, (CUstream *, void *, unsigned, int), &s, g, 1, 0);
	IS(0, cuStreamGetCtx_v2, (CUstream, CUcontext *, void **), s, &of, &of_stream);
	CHECK(of == ctx && of_stream == g);
	IS(0, cuStreamGetGreenCtx, (CUstream, void **), other, &of_stream);
	CHECK(!of_stream);
	/* An event of the primary context waits for the green ones' streams, too. */
	spin(s, 20);
	IS(0, cuCtxRecordEvent, (CUcontext, CUevent), context, e);
	IS(600, cuEventQuery, (CUevent), e);
	IS(0, cuCtxWaitEvent, (CUcontext, CUevent), context, e);
	IS(600, cuStreamQuery, (CUstream), other);
	IS(0, cuEventSynchronize, (CUevent), e);
	IS(0, cuStreamSynchronize, (CUstream), other);
	IS(0, cuStreamQuery, (CUstream), s);
	IS(0, cuCtxGetCurrent, (CUcontext *), &before);
	IS(0, cuCtxSetCurrent, (CUcontext), ctx);
	CUdeviceptr d = device_memory(64);
	IS(0, cuMemFree_v2, (CUdeviceptr), d);
	IS(0, cuCtxSetCurrent, (CUcontext), before);
	IS(0, cuGreenCtxDestroy, (void *), g);
	IS(201, cuCtxSetCurrent, (CUcontext), ctx);
	IS(0, cuCtxGetDevResource, (CUcontext, void *, int), NULL, &rest, 1);
	CHECK(rest.u.sm.count == all.u.sm.count);
}

/* ---- modules and occupancy ---- */
static const char vars[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
			   ".visible .global .align 4 .b8 plain[64];\n"
			   ".visible .global .attribute(.managed) .align 8 .u64 shared;\n"
			   ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n\tret;\n}\n";

static size_t block_shared(int block)
{
	return (size_t)block * 64;
}

static void modules(void)
{
	CUmodule m = NULL;
	CUfunction f = NULL, list[4];
	CUdeviceptr p = 0, q = 0;
	uint32_t low = 0;
	size_t n = 0, off = 0, size = 0;
	unsigned count = 0, n1 = 0;
	int blocks = 0, grid = 0, block = 0, mode = 0;
	IS(0, cuModuleLoadData, (CUmodule *, const void *), &m, vars);
	IS(0, cuModuleGetGlobal, (uint32_t *, unsigned *, CUmodule, const char *), &low, &n1, m,
	   "plain");
	IS(0, cuModuleGetGlobal_v2, (CUdeviceptr *, size_t *, CUmodule, const char *), &p, &n, m,
	   "plain");
	CHECK(p == low && n == 64 && n1 == 64);
	IS(INVALID, cuMemFree_v2, (CUdeviceptr), p);
	IS(0, cuLibraryGetManaged, (CUdeviceptr *, size_t *, CUmodule, const char *), &q, &n, m,
	   "shared");
	CHECK(q && n == 8);
	*(uint64_t *)(uintptr_t)q = 5;
	IS(500, cuLibraryGetManaged, (CUdeviceptr *, size_t *, CUmodule, const char *), &q, &n, m,
	   "plain");
	IS(500, cuLibraryGetUnifiedFunction, (void **, CUmodule, const char *), (void **)&q, m,
	   "k");
	IS(0, cuModuleGetFunctionCount, (unsigned *, CUmodule), &count, m);
	IS(0, cuModuleEnumerateFunctions, (CUfunction *, unsigned, CUmodule), list, 4, m);
	IS(0, cuModuleGetFunction, (CUfunction *, CUmodule, const char *), &f, m, "k");
	CHECK(count == 1 && list[0] == f);
	IS(0, cuFuncGetParamInfo, (CUfunction, size_t, size_t *, size_t *), f, 1, &off, &size);
	CHECK(off == 8 && size == 4);
	IS(INVALID, cuFuncGetParamInfo, (CUfunction, size_t, size_t *, size_t *), f, 2, &off,
	   &size);
	IS(0, cuModuleGetLoadingMode, (int *), &mode);
	IS(0, cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, CUfunction, int, size_t),
	   &blocks, f, 256, 0);
	CHECK(blocks == 8);
	IS(0, cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, CUfunction, int, size_t),
	   &blocks, f, 256, 60000);
	CHECK(blocks == 2);
	IS(INVALID, cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, CUfunction, int, size_t),
	   NULL, f, 256, 0);
	IS(0, cuOccupancyMaxPotentialBlockSize,
	   (int *, int *, CUfunction, CUoccupancyB2DSize, size_t, int), &grid, &block, f,
	   block_shared, 0, 0);
	CHECK(block > 0 && block <= 1024 && grid > 0);
	IS(0, cuOccupancyAvailableDynamicSMemPerBlock, (size_t *, CUfunction, int, int), &n, f, 2,
	   256);
	IS(0, cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, CUfunction, int, size_t),
	   &blocks, f, 256, n);
	CHECK(blocks == 2);
	IS(0, cuModuleUnload, (CUmodule), m);
}

/* ---- devices and contexts ---- */
static void questions(void)
{
	size_t v = 0;
	int affinity[2], pair = 7, ops[2] = {0, 12};
	unsigned caps[2] = {9, 9}, bytes;
	CUcontext peer = NULL, second = NULL;
	IS(0, cuCtxSetLimit, (int, size_t), 0, 4096);
	IS(0, cuCtxGetLimit, (size_t *, int), &v, 0);
	CHECK(v == 4096);
	IS(0, cuDevicePrimaryCtxRetain, (CUcontext *, int), &peer, 1);
	IS(0, cuCtxPushCurrent_v2, (CUcontext), peer);
	IS(0, cuCtxGetLimit, (size_t *, int), &v, 0);
	CHECK(v != 4096); /* each context has its own */
	IS(0, cuCtxPopCurrent_v2, (CUcontext *), &second);
	IS(215, cuCtxGetLimit, (size_t *, int), &v, 99);
	IS(INVALID, cuCtxGetLimit, (size_t *, int), NULL, 0);
	IS(0, cuCtxGetExecAffinity, (int *, int), affinity, 0);
	IS(0, cuCtxEnablePeerAccess, (CUcontext, unsigned), peer, 0);
	IS(704, cuCtxEnablePeerAccess, (CUcontext, unsigned), peer, 0);
	IS(201, cuCtxEnablePeerAccess, (CUcontext, unsigned), context, 0);
	IS(0, cuCtxDisablePeerAccess, (CUcontext), peer);
	IS(705, cuCtxDisablePeerAccess, (CUcontext), peer);
	IS(0, cuDeviceGetP2PAttribute, (int *, int, int, int), &pair, 2, 0, 1);
	CHECK(pair == 1);
	IS(101, cuDeviceGetP2PAttribute, (int *, int, int, int), &pair, 2, 0, 0);
	IS(0, cuDeviceGetHostAtomicCapabilities, (unsigned *, int *, unsigned, int), caps, ops, 2,
	   0);
	IS(0, cuDeviceGetTexture1DLinearMaxWidth, (size_t *, int, unsigned, int), &v, FLOAT, 4, 0);
	IS(0, cuDeviceTotalMem, (unsigned *, int), &bytes, 0);
	CHECK(bytes == 0xffffffffu);
	IS(801, cuMulticastCreate, (void **, void *), NULL, NULL);
}

/* A box from one device to the other and back to the host. */
static void between_devices(void)
{
	CUcontext peer = NULL;
	char h[256], back[64];
	CUdeviceptr a = device_memory(256), b = 0;
	fill_bytes(h, sizeof(h), 9);
	IS(0, cuDevicePrimaryCtxRetain, (CUcontext *, int), &peer, 1);
	IS(0, cuCtxPushCurrent_v2, (CUcontext), peer);
	b = device_memory(256);
	IS(0, cuCtxPopCurrent_v2, (CUcontext *), &peer);
	IS(0, cuMemcpyHtoD_v2, (CUdeviceptr, void *, size_t), a, h, 256);
	CUDA_MEMCPY3D p = {.srcXInBytes = 4,
			   .srcY = 1,
			   .srcMemoryType = SIM_MEM_DEVICE,
			   .srcDevice = a,
			   .srcContext = context,
			   .srcPitch = 16,
			   .srcHeight = 4,
			   .dstMemoryType = SIM_MEM_DEVICE,
			   .dstDevice = b,
			   .dstContext = peer,
			   .WidthInBytes = 8,
			   .Height = 2,
			   .Depth = 3};
	IS(0, cuMemcpy3DPeer, (void *), &p);
	IS(0, cuMemcpy3DPeerAsync, (void *, CUstream), &p, NULL);
	IS(0, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), back, b, 48);
	for (int z = 0; z < 3; z++)
		for (int y = 0; y < 2; y++)
			CHECK(!memcmp(back + z * 16 + y * 8, h + z * 64 + (y + 1) * 16 + 4, 8));
	p.dstContext = NULL;
	IS(201, cuMemcpy3DPeer, (void *), &p);
}

/* ---- tensor maps, debugging ---- */
static void descriptions(void)
{
	static char map[128] __attribute__((aligned(64))), name[1024] = "/tmp/none";
	CUdeviceptr d = device_memory(1 << 16), was = 0;
	uint64_t dim[2] = {64, 64}, stride[1] = {256};
	uint32_t box[2] = {16, 16}, step[2] = {1, 1};
	size_t n = 0;
	unsigned at = 9;
	void *handle = NULL;
	int (*tiled)(void *, unsigned, uint32_t, void *, const uint64_t *, const uint64_t *,
		     const uint32_t *, const uint32_t *, unsigned, unsigned, unsigned, unsigned) =
		symbol("cuTensorMapEncodeTiled");
	CHECK(tiled(map, 7, 2, (void *)(uintptr_t)d, dim, stride, box, step, 0, 0, 0, 0) == 0);
	memcpy(&was, map, 8);
	CHECK(was == d);
	CHECK(tiled(map + 8, 7, 2, (void *)(uintptr_t)d, dim, stride, box, step, 0, 0, 0, 0) ==
	      INVALID);
	stride[0] = 100;
	CHECK(tiled(map, 7, 2, (void *)(uintptr_t)d, dim, stride, box, step, 0, 0, 0, 0) ==
	      INVALID);
	IS(0, cuTensorMapReplaceAddress, (void *, void *), map, (void *)(uintptr_t)(d + 256));
	n = 10;
	IS(0, cuCoredumpSetAttribute, (int, void *, size_t *), 5, name, &n);
	IS(0, cuCoredumpGetAttribute, (int, void *, size_t *), 5, NULL, &n);
	CHECK(n == 10);
	IS(INVALID, cuCoredumpGetAttribute, (int, void *, size_t *), 99, NULL, &n);
	IS(0, cuLogsCurrent, (unsigned *, unsigned), &at, 0);
	n = sizeof(name);
	IS(0, cuLogsDumpToMemory, (unsigned *, char *, size_t *, unsigned), &at, name, &n, 0);
	CHECK(n == 0);
	IS(0, cuLogsRegisterCallback, (void *, void *, void **), (void *)descriptions, NULL,
	   &handle);
	IS(0, cuLogsUnregisterCallback, (void *), handle);
	IS(INVALID, cuLogsUnregisterCallback, (void *), handle);
}

/* Memory that is freed before a copy of it has its turn: a fault of the context, not a crash. */
static void freed_early(void)
{
	CUcontext ctx = NULL;
	IS(0, cuCtxCreate_v2, (CUcontext *, unsigned, int), &ctx, 0, 0);
	CUstream a = new_stream(1), b = new_stream(1);
	CUdeviceptr d = 0, e = device_memory(64);
	IS(0, cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream), &d, 64, b);
	spin(a, 20);
	IS(0, cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream), e, d, 64, a);
	IS(0, cuMemFreeAsync, (CUdeviceptr, CUstream), d, b);
	IS(700, cuStreamSynchronize, (CUstream), a);
	IS(700, cuCtxSynchronize, (void), );
	IS(0, cuCtxDestroy_v2, (CUcontext), ctx);
	IS(0, cuCtxSetCurrent, (CUcontext), context);
}

/* An engine that gets no thread makes calls fail, not wait. */
static void no_threads(void)
{
	const char *clock = getenv("SIM_TIME");
	int want = clock && !strcmp(clock, "virtual") ? 0 : 304; /* virtual time needs no threads */
	pid_t child = fork();
	int status = 0;
	if (!child) {
		struct rlimit none = {0, 0};
		open_context();
		CUdeviceptr d = device_memory(1 << 20);
		char *h = pinned_memory(1 << 20);
		/* Limits of this kind do not hold for the administrator. */
		if (setuid(65534) || setrlimit(RLIMIT_NPROC, &none))
			_exit(0);
		IS(want, cuMemcpyHtoD_v2, (CUdeviceptr, void *, size_t), d, h, 1 << 20);
		IS(want, cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream), d, 0, 64,
		   NULL);
		IS(0, cuCtxSynchronize, (void), );
		_exit(failures != 0);
	}
	waitpid(child, &status, 0);
	CHECK(status == 0);
}

int main(void)
{
	no_threads();
	open_context();
	green();
	modules();
	questions();
	between_devices();
	descriptions();
	freed_early();
	return failures != 0;
}
