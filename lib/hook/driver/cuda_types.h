/*
 * The types of the CUDA driver interface that the hooks read, binary compatible with the vendor's.
 *
 * Not taken from cuda.h: its #defines rename half of the exported symbols (cuMemcpyHtoD becomes
 * cuMemcpyHtoD_v2), and the hooks must cover names that newer headers have dropped.
 * scripts/check-cuda-table compares sizes and offsets.
 */
#ifndef TFH_HOOK_DRIVER_CUDA_TYPES_H
#define TFH_HOOK_DRIVER_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef unsigned long long CUdeviceptr;
typedef unsigned int CUdeviceptr_v1;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef void *CUstream;
typedef void *CUevent;
typedef void *CUcontext;
typedef void *CUgreenCtx;
typedef void *CUfunction;
typedef void *CUkernel;
typedef void *CUmodule;
typedef void *CUlibrary;
typedef void *CUlinkState;
typedef void *CUgraph;
typedef void *CUgraphNode;
typedef void *CUgraphExec;
typedef void *CUarray;
typedef void *CUmipmappedArray;
typedef void *CUmemoryPool;
typedef void *CUexternalMemory;
typedef void *CUexternalSemaphore;
typedef void *CUdevResourceDesc;
typedef void (*CUhostFn)(void *user);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *user);

/* Results that tfhook checks or returns. */
enum {
	TFH_CUDA_SUCCESS = 0,
	/* returned to a program whose driver cannot be loaded */
	TFH_CUDA_SHARED_OBJECT_INIT_FAILED = 303,
	TFH_CUDA_NOT_SUPPORTED = 801,
	TFH_CUDA_CAPTURE_INVALIDATED = 901,
	TFH_CUDA_CAPTURE_UNJOINED = 904,
};

/* Stream handles with a special meaning. */
#define TFH_STREAM_LEGACY ((CUstream)1)
#define TFH_STREAM_PER_THREAD ((CUstream)2)

enum { TFH_MEMORY_HOST = 1, TFH_MEMORY_DEVICE = 2, TFH_MEMORY_ARRAY = 3, TFH_MEMORY_UNIFIED = 4 };

enum {
	TFH_GPA_PER_THREAD = 2, /* flag of cuGetProcAddress: return the _ptsz or _ptds variant */
};

enum { TFH_LOCATION_DEVICE = 1 }; /* all others are on the host */

typedef struct {
	int type;
	int id;
} CUmemLocation;

typedef struct {
	char reserved[64];
} CUipcMemHandle;

enum {
	TFH_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
	TFH_LAUNCH_ATTRIBUTE_CLUSTER = 4,
	TFH_LAUNCH_ATTRIBUTE_PROGRAMMATIC = 6,
};

typedef struct {
	int id;
	int pad;
	union {
		unsigned cluster[3];
		int number;
		char bytes[64];
	} value;
} CUlaunchAttribute;

typedef struct {
	unsigned grid[3];
	unsigned block[3];
	unsigned shared;
	CUstream stream;
	CUlaunchAttribute *attributes;
	unsigned count;
} CUlaunchConfig;

/* One end of a 3D copy; `word` is unsigned int in the interface of CUDA 2, size_t since 3.2. */
#define TFH_COPY_3D_END(word, address)                                                             \
	struct {                                                                                   \
		word x, y, z, lod;                                                                 \
		int type;                                                                          \
		const void *host;                                                                  \
		address device;                                                                    \
		CUarray array;                                                                     \
		CUcontext context; /* of a peer copy, else unused */                               \
		word pitch, height;                                                                \
	}

/* Flat, since a nested struct would be padded. */
typedef struct {
	unsigned src_x, src_y;
	int src_type;
	const void *src_host;
	CUdeviceptr_v1 src_device;
	CUarray src_array;
	unsigned src_pitch;
	unsigned dst_x, dst_y;
	int dst_type;
	const void *dst_host;
	CUdeviceptr_v1 dst_device;
	CUarray dst_array;
	unsigned dst_pitch;
	unsigned width, height;
} CUDA_MEMCPY2D_v1;

typedef struct {
	struct {
		size_t x, y;
		int type;
		const void *host;
		CUdeviceptr device;
		CUarray array;
		size_t pitch;
	} src, dst;
	size_t width, height;
} CUDA_MEMCPY2D;

typedef struct {
	TFH_COPY_3D_END(unsigned, CUdeviceptr_v1) src, dst;
	unsigned width, height, depth;
} CUDA_MEMCPY3D_v1;

typedef struct {
	TFH_COPY_3D_END(size_t, CUdeviceptr) src, dst;
	size_t width, height, depth;
} CUDA_MEMCPY3D;

typedef CUDA_MEMCPY3D CUDA_MEMCPY3D_PEER;

typedef struct {
	int type; /* 1 pointer, 2 array */
	union {
		struct {
			CUdeviceptr address;
			size_t row, layer;
			CUmemLocation hint;
		} pointer;
		struct {
			CUarray array;
			size_t x, y, z;
		} array;
	} at;
} tfh_copy_operand;

typedef struct {
	tfh_copy_operand src, dst;
	size_t width, height, depth;
	int order;
	unsigned flags;
} CUDA_MEMCPY3D_BATCH_OP;

typedef struct {
	size_t src_bytes, dst_bytes;
	uint32_t *dst_actual;
	const void *src;
	void *dst;
	int algorithm;
	unsigned char padding[20];
} CUmemDecompressParams;

typedef struct {
	unsigned width, height;
	int format;
	unsigned channels;
} CUDA_ARRAY_DESCRIPTOR_v1;

typedef struct {
	size_t width, height;
	int format;
	unsigned channels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
	unsigned width, height, depth;
	int format;
	unsigned channels, flags;
} CUDA_ARRAY3D_DESCRIPTOR_v1;

typedef struct {
	size_t width, height, depth;
	int format;
	unsigned channels, flags;
} CUDA_ARRAY3D_DESCRIPTOR;

typedef struct {
	unsigned long long offset, size;
	unsigned flags, reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;

typedef struct {
	CUfunction function;
	unsigned grid[3], block[3], shared;
	CUstream stream;
	void **parameters;
} CUDA_LAUNCH_PARAMS;

typedef struct {
	CUhostFn fn;
	void *user;
} CUDA_HOST_NODE_PARAMS;

/* Node types that the hooks inspect. */
typedef struct {
	int type;
	int reserved[3];
	union {
		struct {
			int flags, reserved;
			CUcontext context;
			CUDA_MEMCPY3D params;
		} copy;
		CUDA_HOST_NODE_PARAMS host;
		CUgraph graph;
		long long room[29];
	} of;
	long long reserved2;
} CUgraphNodeParams;

#endif
