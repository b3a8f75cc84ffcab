/* The driver's functions, looked up as the real library does; errors. */
#include "sim/nccl/sim_nccl.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct sim_nccl_driver driver;
static __thread char last_error[200];

static void find(void)
{
	CUresult (*lookup)(const char *, void **, int, uint64_t, int *);
	const struct {
		const char *name;
		int version;
		void *to;
	} names[] = {
		{"cuInit", 2000, &driver.init},
		{"cuCtxGetCurrent", 4000, &driver.get_current},
		{"cuCtxSetCurrent", 4000, &driver.set_current},
		{"cuCtxGetDevice", 2000, &driver.get_device},
		{"cuDeviceGet", 2000, &driver.device_get},
		{"cuDevicePrimaryCtxRetain", 7000, &driver.retain},
		{"cuModuleLoadData", 2000, &driver.load},
		{"cuModuleGetFunction", 2000, &driver.get_function},
		{"cuLaunchKernelEx", 11060, &driver.launch},
		{"cuMemAlloc", 3020, &driver.alloc},
		{"cuMemFree", 3020, &driver.free},
		{"cuGetExportTable", 3000, &driver.table},
	};
	const void *table = NULL;
	CUuuid id;
	void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	*(void **)&lookup = lib ? dlsym(lib, "cuGetProcAddress_v2") : NULL;
	if (!lookup)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *f = NULL;
		if (lookup(names[i].name, &f, names[i].version, 0, NULL) || !f)
			return;
		*(void **)names[i].to = f;
	}
	memcpy(id.bytes, SIM_NATIVE_UUID, sizeof(id.bytes));
	if (driver.table(&table, &id) || !table)
		return;
	const struct sim_native_table *t = table;
	if (t->version == SIM_NATIVE_VERSION && t->size >= sizeof(*t))
		driver.native = t;
}

const struct sim_nccl_driver *sim_nccl_driver(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, find);
	return driver.native ? &driver : NULL;
}

ncclResult_t sim_nccl_begin(const char *name)
{
	const struct sim_nccl_driver *d = sim_nccl_driver();
	return d ? (ncclResult_t)(int)d->native->injected(name) : ncclSuccess;
}

ncclResult_t sim_nccl_error(struct ncclComm *comm, ncclResult_t r, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(last_error, sizeof(last_error), fmt, ap);
	va_end(ap);
	if (comm)
		memcpy(comm->error, last_error, sizeof(comm->error));
	return r;
}

NCCL_API(ncclGetVersion, (int *version), (version))
{
	enum { VERSION = 22703 };
	if (!version)
		return ncclInvalidArgument;
	*version = VERSION;
	return ncclSuccess;
}

NCCL_EXPORTED const char *ncclGetErrorString(ncclResult_t r);
const char *ncclGetErrorString(ncclResult_t r)
{
	static const char *const texts[] = {
		"no error",
		"unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
		"unhandled system error (run with NCCL_DEBUG=INFO for details)",
		"internal error - please report this issue to the NCCL developers",
		"invalid argument (run with NCCL_DEBUG=WARN for details)",
		"invalid usage (run with NCCL_DEBUG=WARN for details)",
		"remote process exited or there was a network error",
		"NCCL operation in progress",
	};
	return (size_t)r < sizeof(texts) / sizeof(texts[0]) ? texts[r] : "unknown result code";
}

NCCL_EXPORTED const char *ncclGetLastError(ncclComm_t comm);
const char *ncclGetLastError(ncclComm_t comm)
{
	return sim_comm_valid(comm) ? comm->error : last_error;
}

NCCL_EXPORTED void ncclResetDebugInit(void);
void ncclResetDebugInit(void)
{
}

NCCL_API(ncclMemAlloc, (void **p, size_t n), (p, n))
{
	const struct sim_nccl_driver *d = sim_nccl_driver();
	CUdeviceptr at = 0;
	if (!p)
		return ncclInvalidArgument;
	if (!d || d->alloc(&at, n))
		return sim_nccl_error(NULL, ncclUnhandledCudaError, "cuMemAlloc of %zu bytes", n);
	*p = (void *)(uintptr_t)at;
	return ncclSuccess;
}

NCCL_API(ncclMemFree, (void *p), (p))
{
	const struct sim_nccl_driver *d = sim_nccl_driver();
	if (!d || d->free((CUdeviceptr)(uintptr_t)p))
		return sim_nccl_error(NULL, ncclUnhandledCudaError, "cuMemFree");
	return ncclSuccess;
}
