/* Names of calls and copies in other tools' traces, and their meaning. */
#include <string.h>

#include "base/text.h"
#include "import/import.h"

/* CUDA runtime calls and the equivalent driver functions; HIP's names are the same after "hip".
 * Matched by prefix, the first match counts: suffixes (_v2, _ptsz, _v11020) do not change the
 * meaning. */
static const struct {
	const char *prefix; /* after "cuda" */
	enum tfh_fn fn;
} runtime[] = {
	{"LaunchKernel", TFH_FN_cuLaunchKernel},
	{"LaunchCooperativeKernel", TFH_FN_cuLaunchCooperativeKernel},
	{"LaunchHostFunc", TFH_FN_cuLaunchHostFunc},
	{"ExtModuleLaunchKernel", TFH_FN_cuLaunchKernel}, /* HIP */
	{"ExtLaunch", TFH_FN_cuLaunchKernel},		  /* HIP */
	{"ModuleLaunchKernel", TFH_FN_cuLaunchKernel},	  /* HIP */
	{"Launch", TFH_FN_cuLaunchKernel},
	{"GraphLaunch", TFH_FN_cuGraphLaunch},
	{"GraphInstantiate", TFH_FN_cuGraphInstantiate},
	{"GraphExec", TFH_FN_cuGraphExecUpdate},
	{"GraphUpload", TFH_FN_cuGraphUpload},
	{"StreamBeginCapture", TFH_FN_cuStreamBeginCapture},
	{"StreamEndCapture", TFH_FN_cuStreamEndCapture},
	{"MemcpyPeerAsync", TFH_FN_cuMemcpyPeerAsync},
	{"Memcpy3DPeerAsync", TFH_FN_cuMemcpy3DPeerAsync},
	{"MemcpyPeer", TFH_FN_cuMemcpyPeer},
	{"Memcpy3DPeer", TFH_FN_cuMemcpy3DPeer},
	{"MemPrefetch", TFH_FN_cuMemPrefetchAsync},
	{"MemAdvise", TFH_FN_cuMemAdvise},
	{"StreamAttachMem", TFH_FN_cuStreamAttachMemAsync},
	{"StreamSynchronize", TFH_FN_cuStreamSynchronize},
	{"EventSynchronize", TFH_FN_cuEventSynchronize},
	{"DeviceSynchronize", TFH_FN_cuCtxSynchronize},
	{"ThreadSynchronize", TFH_FN_cuCtxSynchronize},
	{"EventQuery", TFH_FN_cuEventQuery},
	{"StreamQuery", TFH_FN_cuStreamQuery},
	{"EventRecord", TFH_FN_cuEventRecord},
	{"EventCreate", TFH_FN_cuEventCreate},
	{"EventDestroy", TFH_FN_cuEventDestroy_v2},
	{"EventElapsedTime", TFH_FN_cuEventElapsedTime},
	{"StreamWaitEvent", TFH_FN_cuStreamWaitEvent},
	{"StreamCreate", TFH_FN_cuStreamCreate},
	{"StreamDestroy", TFH_FN_cuStreamDestroy_v2},
	{"StreamAddCallback", TFH_FN_cuStreamAddCallback},
	{"HostRegister", TFH_FN_cuMemHostRegister_v2},
	{"HostUnregister", TFH_FN_cuMemHostUnregister},
	{"HostAlloc", TFH_FN_cuMemHostAlloc},
	{"HostMalloc", TFH_FN_cuMemHostAlloc}, /* HIP */
	{"MallocHost", TFH_FN_cuMemHostAlloc},
	{"MallocManaged", TFH_FN_cuMemAllocManaged},
	{"MallocAsync", TFH_FN_cuMemAllocAsync},
	{"MallocFromPool", TFH_FN_cuMemAllocAsync},
	{"Malloc", TFH_FN_cuMemAlloc_v2},
	{"FreeAsync", TFH_FN_cuMemFreeAsync},
	{"FreeHost", TFH_FN_cuMemFreeHost},
	{"HostFree", TFH_FN_cuMemFreeHost}, /* HIP */
	{"Free", TFH_FN_cuMemFree_v2},
	{"ModuleLoad", TFH_FN_cuModuleLoad},
	{"LibraryLoad", TFH_FN_cuLibraryLoadData},
	{"FuncGetAttributes", TFH_FN_cuModuleGetFunction},
	{"SetDevice", TFH_FN_cuCtxSetCurrent},
	{"DeviceReset", TFH_FN_cuDevicePrimaryCtxReset_v2},
	{"ProfilerSt", TFH_FN_cuProfilerStart},
};

/* Runtimes with other prefixes: Intel's (urEnqueueKernelLaunch, piextUSMEnqueueMemcpy,
 * zeCommandListAppendLaunchKernel), Meta's. Matched by substring, the first match counts. */
static const struct {
	const char *part;
	enum tfh_fn fn;
} others[] = {
	{"hsa_dispatch", TFH_FN_cuLaunchKernel}, /* rocprof's, of AMD's HSA */
	{"hsa_signal_wait", TFH_FN_cuStreamSynchronize},
	{"hsa_amd_memory_async_copy", TFH_FN_cuMemcpyAsync},
	{"hsa_memory_copy", TFH_FN_cuMemcpy},
	{"hsa_memory_allocate", TFH_FN_cuMemAlloc_v2},
	{"memory_pool_allocate", TFH_FN_cuMemAlloc_v2},
	{"hsa_memory_free", TFH_FN_cuMemFree_v2},
	{"memory_pool_free", TFH_FN_cuMemFree_v2},
	{"aclrtSynchronizeDevice", TFH_FN_cuCtxSynchronize}, /* Ascend */
	{"aclrtSynchronizeEvent", TFH_FN_cuEventSynchronize},
	{"aclrtSynchronizeStream", TFH_FN_cuStreamSynchronize},
	{"aclrtMemcpy", TFH_FN_cuStreamSynchronize}, /* waits for its copy, which has a launch */
	{"aclrtMallocHost", TFH_FN_cuMemHostAlloc},
	{"aclrtMalloc", TFH_FN_cuMemAlloc_v2},
	{"aclrtFreeHost", TFH_FN_cuMemFreeHost},
	{"aclrtFree", TFH_FN_cuMemFree_v2},
	{"KernelLaunch", TFH_FN_cuLaunchKernel},
	{"AppendLaunch", TFH_FN_cuLaunchKernel},
	{"runFunction", TFH_FN_cuLaunchKernel},
	{"Memcpy", TFH_FN_cuMemcpyAsync},
	{"memcpy", TFH_FN_cuMemcpyAsync},
	{"AppendMemoryCopy", TFH_FN_cuMemcpyAsync},
	{"EnqueueMemBuffer", TFH_FN_cuMemcpyAsync},
	{"Fill", TFH_FN_cuMemsetD8Async},
	{"Memset", TFH_FN_cuMemsetD8Async},
	{"EventWait", TFH_FN_cuEventSynchronize},
	{"EventHostSynchronize", TFH_FN_cuEventSynchronize},
	{"QueueFinish", TFH_FN_cuStreamSynchronize},
	{"QueueSynchronize", TFH_FN_cuStreamSynchronize},
	{"synchronize", TFH_FN_cuStreamSynchronize},
	{"USMDeviceAlloc", TFH_FN_cuMemAlloc_v2},
	{"MemAllocDevice", TFH_FN_cuMemAlloc_v2},
	{"USMHostAlloc", TFH_FN_cuMemHostAlloc},
	{"MemAllocHost", TFH_FN_cuMemHostAlloc},
	{"USMSharedAlloc", TFH_FN_cuMemAllocManaged},
	{"MemAllocShared", TFH_FN_cuMemAllocManaged},
	{"USMFree", TFH_FN_cuMemFree_v2},
	{"MemFree", TFH_FN_cuMemFree_v2},
};

/* Memory copies and sets; the Async forms only queue. */
static const struct tfh_fn_info *memory_call(const char *rest)
{
	bool async = strstr(rest, "Async") != NULL;

	if (tfh_starts_with(rest, "Memcpy"))
		return &tfh_fn_table[async ? TFH_FN_cuMemcpyAsync : TFH_FN_cuMemcpy];
	if (tfh_starts_with(rest, "Memset"))
		return &tfh_fn_table[async ? TFH_FN_cuMemsetD8Async : TFH_FN_cuMemsetD8_v2];
	return NULL;
}

static const struct tfh_fn_info *driver_call(const char *name)
{
	for (uint32_t i = 1; i < TFH_FN_COUNT; i++)
		if (!strcmp(tfh_fn_table[i].name, name))
			return &tfh_fn_table[i];
	return NULL;
}

const struct tfh_fn_info *tfh_import_call(const char *name)
{
	const char *rest;

	if (tfh_starts_with(name, "cuda"))
		rest = name + 4;
	else if (tfh_starts_with(name, "hip"))
		rest = name + 3;
	else if (tfh_starts_with(name, "cu"))
		return driver_call(name);
	else
		return NULL;
	for (size_t i = 0; i < sizeof(runtime) / sizeof(*runtime); i++)
		if (tfh_starts_with(rest, runtime[i].prefix))
			return &tfh_fn_table[runtime[i].fn];
	return memory_call(rest);
}

const struct tfh_fn_info *tfh_import_other_call(const char *name)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (strstr(name, others[i].part))
			return &tfh_fn_table[others[i].fn];
	return NULL;
}

void tfh_import_copy_name(const char *name, struct tfh_op *op)
{
	static const struct {
		const char *text;
		uint8_t dir;
	} dirs[] = {{"HtoD", TFH_DIR_H2D},
		    {"H2D", TFH_DIR_H2D},
		    {"DtoH", TFH_DIR_D2H},
		    {"D2H", TFH_DIR_D2H},
		    {"DtoD", TFH_DIR_D2D},
		    {"D2D", TFH_DIR_D2D},
		    {"HtoH", TFH_DIR_H2H},
		    {"H2H", TFH_DIR_H2H},
		    {"M2D", TFH_DIR_H2D},
		    {"D2M", TFH_DIR_D2H},
		    {"PtoP", TFH_DIR_P2P},
		    {"P2P", TFH_DIR_P2P},
		    {"HtoA", TFH_DIR_H2D},
		    {"AtoH", TFH_DIR_D2H},
		    {"Host To Device", TFH_DIR_H2D},
		    {"Device To Host", TFH_DIR_D2H},
		    {"HostToDevice", TFH_DIR_H2D},
		    {"DeviceToHost", TFH_DIR_D2H},
		    {"DeviceToDevice", TFH_DIR_D2D},
		    {"Peer", TFH_DIR_P2P}};

	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs) && op->dir == TFH_DIR_NONE; i++)
		if (strstr(name, dirs[i].text))
			op->dir = dirs[i].dir;
	op->pageable |= strstr(name, "Pageable") || strstr(name, "pageable");
	op->communication = op->dir == TFH_DIR_P2P;
	op->managed |= strstr(name, "Unified") || strstr(name, "Managed");
}
