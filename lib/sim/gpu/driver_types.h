/*
 * The part of the CUDA driver interface that the simulator implements, binary compatible with the
 * real one. Written from the public documentation, so that the simulator builds without CUDA.
 */
#ifndef TFH_SIM_GPU_DRIVER_TYPES_H
#define TFH_SIM_GPU_DRIVER_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef enum CUresult {
#define SIM_ERROR(name, value) name = value,
#include "sim/gpu/errors.def"
#undef SIM_ERROR
} CUresult;

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct sim_ctx *CUcontext;
typedef struct sim_stream *CUstream;
typedef struct sim_event *CUevent;
typedef struct sim_module *CUmodule;
typedef struct sim_module *CUlibrary;
typedef struct sim_func *CUfunction;
typedef struct sim_func *CUkernel;
typedef struct sim_graph *CUgraph;
typedef struct sim_node *CUgraphNode;
typedef struct sim_exec *CUgraphExec;
typedef struct sim_pool *CUmemoryPool;
typedef struct sim_link *CUlinkState;
typedef struct sim_array *CUarray;
typedef unsigned long long CUtexObject;
typedef struct {
	char bytes[16];
} CUuuid;
typedef void (*CUhostFn)(void *);
typedef void (*CUstreamCallback)(CUstream, CUresult, void *);
typedef size_t (*CUoccupancyB2DSize)(int block);

#define SIM_STREAM_LEGACY ((CUstream)1)
#define SIM_STREAM_PER_THREAD ((CUstream)2)

enum { SIM_MEM_HOST = 1, SIM_MEM_DEVICE = 2, SIM_MEM_ARRAY = 3, SIM_MEM_UNIFIED = 4 };
enum { SIM_STREAM_NON_BLOCKING = 1 };
enum { SIM_EVENT_BLOCKING_SYNC = 1, SIM_EVENT_DISABLE_TIMING = 2 };
enum { SIM_LAUNCH_PARAM_END = 0, SIM_LAUNCH_PARAM_POINTER = 1, SIM_LAUNCH_PARAM_SIZE = 2 };
enum { SIM_CAPTURE_NONE = 0, SIM_CAPTURE_ACTIVE = 1, SIM_CAPTURE_INVALIDATED = 2 };
enum { SIM_GPA_SUCCESS = 0, SIM_GPA_NOT_FOUND = 1, SIM_GPA_VERSION_NOT_SUFFICIENT = 2 };
enum {
	SIM_NODE_KERNEL = 0,
	SIM_NODE_MEMCPY = 1,
	SIM_NODE_MEMSET = 2,
	SIM_NODE_HOST = 3,
	SIM_NODE_GRAPH = 4,
	SIM_NODE_EMPTY = 5,
	SIM_NODE_WAIT_EVENT = 6,
	SIM_NODE_RECORD_EVENT = 7,
	SIM_NODE_ALLOC = 10,
	SIM_NODE_FREE = 11,
	SIM_NODE_MEMOP = 12,
	SIM_NODE_CONDITIONAL = 13
};

typedef struct {
	size_t srcXInBytes, srcY;
	int srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	size_t srcPitch, dstXInBytes, dstY;
	int dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	size_t dstPitch, WidthInBytes, Height;
} CUDA_MEMCPY2D;

/* CUDA_MEMCPY3D and, with the contexts filled in, CUDA_MEMCPY3D_PEER: one layout. */
typedef struct {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	int srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	CUcontext srcContext;
	size_t srcPitch, srcHeight, dstXInBytes, dstY, dstZ, dstLOD;
	int dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	CUcontext dstContext;
	size_t dstPitch, dstHeight, WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

/* Version 1 ends before kern; versions 2 and 3 have it. */
typedef struct {
	CUfunction func;
	unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	void **kernelParams, **extra;
	CUkernel kern;
	CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct {
	CUdeviceptr dst;
	size_t pitch;
	unsigned value, elementSize;
	size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct {
	CUhostFn fn;
	void *userData;
} CUDA_HOST_NODE_PARAMS;

struct sim_value_params {
	int operation;
	CUdeviceptr address;
	union {
		uint32_t value;
		uint64_t value64;
	};
	unsigned flags;
	CUdeviceptr alias;
};
typedef union {
	int operation;
	struct sim_value_params value; /* waits and writes */
	struct {
		int operation;
		unsigned flags;
	} flags; /* flushes and barriers */
	uint64_t pad[6];
} CUstreamBatchMemOpParams;

typedef struct {
	CUcontext ctx;
	unsigned count;
	CUstreamBatchMemOpParams *paramArray;
	unsigned flags;
} CUDA_BATCH_MEM_OP_NODE_PARAMS;

/* Of the pool properties only what is used. */
typedef struct {
	struct {
		int allocType, handleTypes, locationType, locationId;
		char rest[72];
	} poolProps;
	const void *accessDescs;
	size_t accessDescCount, bytesize;
	CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef struct {
	unsigned long long handle;
	int type;
	unsigned size;
	CUgraph *phGraph_out;
	CUcontext ctx;
} CUDA_CONDITIONAL_NODE_PARAMS;

typedef struct {
	unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;

typedef struct {
	unsigned long long flags;
	CUstream hUploadStream;
	CUgraphNode hErrNode_out;
	int result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

typedef struct {
	int type, reserved0[3];
	union {
		long long reserved1[29];
		CUDA_KERNEL_NODE_PARAMS kernel;
		struct {
			int flags, reserved;
			CUcontext copyCtx;
			CUDA_MEMCPY3D copyParams;
		} memcpy;
		CUDA_MEMSET_NODE_PARAMS memset;
		CUDA_HOST_NODE_PARAMS host;
		struct {
			CUgraph graph;
			int ownership;
		} graph;
		CUevent event;
		CUDA_MEM_ALLOC_NODE_PARAMS alloc;
		CUdeviceptr free;
		CUDA_BATCH_MEM_OP_NODE_PARAMS memOp;
		CUDA_CONDITIONAL_NODE_PARAMS conditional;
	};
	long long reserved2;
} CUgraphNodeParams;

typedef struct {
	int result;
	CUgraphNode errorNode, errorFromNode;
} CUgraphExecUpdateResultInfo;

typedef struct {
	int id, pad;
	union {
		char bytes[64];
		unsigned dim[3]; /* of a cluster */
		CUevent event;
	};
} CUlaunchAttribute;

typedef struct {
	unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	CUstream hStream;
	CUlaunchAttribute *attrs;
	unsigned numAttrs;
} CUlaunchConfig;

typedef struct {
	int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], sharedMemPerBlock;
	int totalConstantMemory, SIMDWidth, memPitch, regsPerBlock, clockRate, textureAlign;
} CUdevprop;

#endif
