/*
 * Internal interface of memory and of objects made of it, with the driver's types that only they
 * need (binary compatible with the real ones).
 */
#ifndef TFH_SIM_GPU_OBJECTS_H
#define TFH_SIM_GPU_OBJECTS_H

#include "sim/gpu/api.h"

enum { SIM_PAGE = 4096 };
static inline size_t sim_pages(size_t n)
{
	return (n + SIM_PAGE - 1) & ~(size_t)(SIM_PAGE - 1);
}

static inline bool sim_is_device(CUdevice d)
{
	return d >= 0 && d < sim_cfg.devices;
}

/* Result of a call that the simulator knows but cannot perform; leaves a note. */
static inline CUresult sim_cannot(const struct sim_call *c)
{
	sim_truth_note("not supported: %s", c->name);
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- memory (memory/allocate.c) ---- */
enum sim_owner {
	SIM_OWN_ALLOC,	/* cuMemFree, cuMemFreeHost */
	SIM_OWN_CLIENT, /* registered host memory */
	SIM_OWN_VMM,	/* cuMemUnmap */
	SIM_OWN_IPC,	/* cuIpcCloseMemHandle */
	SIM_OWN_OBJECT	/* array or module: not freed by the client */
};
enum { SIM_READ = 1, SIM_READ_WRITE = 3 };

/* Inserts *r into the table; CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED if it overlaps another. */
CUresult sim_mem_insert(const struct sim_range *r);
/* Charges device memory that has no address: CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sim_mem_charge(struct sim_device *dev, size_t n);
void sim_mem_uncharge(struct sim_device *dev, size_t n);
/* Removes the range that starts at p and has this owner; it stays mapped. */
bool sim_mem_remove(const void *p, enum sim_owner owner, struct sim_range *out);
/* Runs fn on the range that holds p, with the table locked. */
bool sim_mem_change(const void *p, void (*fn)(struct sim_range *, void *), void *arg);
/* Allocates n bytes as *want says; low: in the first 2 GiB, for pointers of 32 bits. */
CUresult sim_mem_new(struct sim_call *c, const struct sim_range *want, size_t n, bool low,
		     char **out);
/* Checks that the device may use [p, p + n): CUDA_ERROR_INVALID_VALUE beyond the end of the
 * allocation or without access. Unknown memory is pageable host memory, which is valid. */
CUresult sim_mem_check(const void *p, size_t n, bool write);
CUresult sim_mem_free(struct sim_call *c, CUdeviceptr p);
CUresult sim_mem_pitch(struct sim_call *c, CUdeviceptr *out, size_t *pitch, size_t w, size_t h,
		       unsigned element, bool low);
CUresult sim_host_alloc(struct sim_call *c, void **out, size_t n, unsigned flags);
CUresult sim_host_pointer(struct sim_call *c, CUdeviceptr *out, void *p, unsigned flags);
CUresult sim_mem_info(struct sim_call *c, size_t *available, size_t *total);
CUresult sim_mem_range(struct sim_call *c, CUdeviceptr *base, size_t *n, CUdeviceptr p);

/* ---- files that other processes can map (memory/memfd.c) ---- */
struct sim_share {
	uint32_t magic;
	int32_t pid, fd, device;
	uint64_t inode, size, id;
	uint32_t kind, flags;
};
enum sim_share_kind { SIM_SHARE_MEMORY = 1, SIM_SHARE_PHYS, SIM_SHARE_POOL, SIM_SHARE_EVENT };
/* A new file of n zero bytes with a trailing page that describes it; -1 if files run out. */
int sim_share_file(size_t n, const struct sim_share *about);
/* Reads that trailing page; false if fd is not such a file. */
bool sim_share_read(int fd, struct sim_share *about);
/* Fills *h so that another process can open fd; it must stay open here. */
void sim_share_export(int fd, struct sim_share *h);
/* Opens and maps what *h describes: CUDA_ERROR_INVALID_HANDLE if it is something else,
 * CUDA_ERROR_MAP_FAILED if it is gone. */
CUresult sim_share_open(const struct sim_share *h, enum sim_share_kind kind, char **out);
/* Replaces the device memory that starts at p with a shared file. Waits for its context. */
CUresult sim_mem_share(const void *p, struct sim_share *h);

/* ---- pools (memory/pool.c) ---- */
unsigned sim_pool_handles(const struct sim_pool *p);
/* n bytes of the pool were freed. */
void sim_pool_return(struct sim_pool *p, size_t n);

/* ---- managed memory (memory/managed.c) ---- */
void sim_managed_free(struct sim_managed *m);

/* ---- virtual memory (memory/vmm.c) ---- */
unsigned sim_phys_handles(const struct sim_phys *f);
/* Whether p lies in a reservation. Fast where there is none. */
bool sim_vmm_reserved(const void *p);

/* ---- copies (memory/copy.c) ---- */
/* Fields that descriptions of 2D and 3D copies of every version have, for an initializer. */
#define SIM_COPY_FIELDS(p)                                                                         \
	.srcXInBytes = (p)->srcXInBytes, .srcY = (p)->srcY, .srcMemoryType = (p)->srcMemoryType,   \
	.srcHost = (p)->srcHost, .srcDevice = (p)->srcDevice, .srcArray = (p)->srcArray,           \
	.srcPitch = (p)->srcPitch, .dstXInBytes = (p)->dstXInBytes, .dstY = (p)->dstY,             \
	.dstMemoryType = (p)->dstMemoryType, .dstHost = (p)->dstHost, .dstDevice = (p)->dstDevice, \
	.dstArray = (p)->dstArray, .dstPitch = (p)->dstPitch, .WidthInBytes = (p)->WidthInBytes,   \
	.Height = (p)->Height

struct sim_linear {
	uintptr_t dst, src;
	size_t n;
	CUstream stream;
	bool async;
	int want; /* enum sim_dir, or -1 if the function's name does not determine it */
};
CUresult sim_linear_copy(struct sim_call *c, const struct sim_linear *l);
CUresult sim_copy_2d(struct sim_call *c, const CUDA_MEMCPY2D *p, CUstream h, bool async);
CUresult sim_copy_3d(struct sim_call *c, const CUDA_MEMCPY3D *p, CUstream h, bool async);
/* The steps of a copy, for batches: classify, then run. */
CUresult sim_copy_classify(struct sim_work *w, struct sim_ctx *ctx);
CUresult sim_copy_run(struct sim_call *c, CUstream h, struct sim_work *w, bool async);

/* ---- arrays (texture/array.c) ---- */
struct sim_array {
	int magic;
	bool part; /* a level or a plane: freed with its parent */
	size_t width, height, depth;
	int format;
	unsigned channels, flags, elem; /* elem: bytes of an element */
	struct sim_device *dev;
	char *data;
	size_t pitch, slice;
	struct sim_array *levels; /* of a mipmapped array */
	unsigned nlevels;
};
enum {
	SIM_MAGIC_ARRAY = 0x51e0,
	SIM_MAGIC_MIPMAP,
	SIM_MAGIC_TEXREF,
	SIM_MAGIC_GREEN,
	SIM_MAGIC_DESC,
	SIM_MAGIC_PHYS,
	SIM_MAGIC_EXTERNAL
};
bool sim_array_is(const void *a);
bool sim_mipmap_is(const void *a);
/* Bytes of one channel of a format, 0 if the format is unknown. */
unsigned sim_format_bytes(int format);

typedef struct {
	size_t Width, Height;
	int Format;
	unsigned NumChannels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
	size_t Width, Height, Depth;
	int Format;
	unsigned NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR;

/* ---- shared types ---- */
enum { SIM_LOC_DEVICE = 1, SIM_LOC_HOST = 2, SIM_LOC_NUMA = 3, SIM_LOC_NUMA_CURRENT = 4 };
typedef struct {
	int type, id;
} CUmemLocation;

typedef struct {
	CUmemLocation location;
	unsigned flags;
} CUmemAccessDesc;

enum { SIM_HANDLE_FD = 1 };

#endif
