/*
 * Access to the real driver: the loader's own lookup functions, the driver's handle, the real
 * functions.
 *
 * Nothing here allocates or takes a lock of tfhook's, so it can run inside dlsym, before
 * constructors, and while the driver initialises itself.
 */
#ifndef TFH_HOOK_DRIVER_DRIVER_H
#define TFH_HOOK_DRIVER_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fn.h"
#include "hook/driver/cuda_types.h"

/* The lookup functions that a program would reach without tfhook: the next preload's if one wraps
 * them, else libc's. */
extern void *(*tfh_next_dlsym)(void *handle, const char *name);
extern void *(*tfh_next_dlvsym)(void *handle, const char *name, const char *version);

/* Fills both; cheap when already done. Cannot fail: a process without libc's dlsym could not have
 * loaded tfhook. */
void tfh_lookup_init(void);

/* glibc's struct dl_find_object, where its headers have none. */
struct tfh_object {
	unsigned long long flags;
	void *start, *end;
	struct link_map *map;
	void *eh_frame; /* the segment PT_GNU_EH_FRAME; NULL: none */
	unsigned long long reserved[7];
};

/* glibc's _dl_find_object(), which takes no lock: 0 if it finds one. NULL: a glibc before 2.35. */
typedef int (*tfh_find_object_fn)(const void *address, struct tfh_object *found);
#pragma GCC visibility push(hidden)
extern tfh_find_object_fn tfh_find_object;
#pragma GCC visibility pop

/* The loaded object that contains `address`, without a lock: 1, or 0 if there is none. Before glibc
 * 2.35 it is found in /proc/self/maps, and `map` is NULL; -errno if that cannot be read. */
int tfh_object_at(const void *address, struct tfh_object *found);

/* libc's dl_iterate_phdr. It waits while another thread runs a callback of the job, which may
 * itself wait for the calling thread (for the GIL, for example). In the job's threads, prefer
 * tfh_object_at(). */
struct dl_phdr_info;
int tfh_each_object(int (*look)(struct dl_phdr_info *, size_t, void *), void *data);

/* Whether an object of that list contains `address`. */
bool tfh_holds(const struct dl_phdr_info *info, uintptr_t address);

/* The loader's list in the order of its searches, without its lock: what a program starts with
 * stays, the rest may go. */
const struct link_map *tfh_first_object(void);

/* The driver's file, as it is opened: TFHOOK_CUDA_LIB, or libcuda.so.1. */
const char *tfh_driver_path(void);

/* Address of a driver function, as a lookup on the driver's handle by the program would return it;
 * NULL if the driver lacks it. */
void *tfh_driver_symbol(const char *name);

/* The file, without its folder, of the object that contains `address`, cut to `size` bytes: "" if
 * no object does. Of the program, "" or its own. */
void tfh_file_holding(const void *address, char *file, size_t size);

/* True if `address` is in the driver's own object (by name: libcuda.so*, or TFHOOK_CUDA_LIB). */
bool tfh_in_driver(const void *address);

/* True if `address` is in the driver, in one of the vendor's tools or in tfhook, whose lookups are
 * not redirected. */
bool tfh_in_vendor(const void *address);

/* True for an object before tfhook in search order: an earlier preload, or the program. */
bool tfh_loaded_before_us(const void *address);

/* Real functions by fn number; NULL until found. Read by every wrapper. */
#pragma GCC visibility push(hidden)
extern void *tfh_real[TFH_FN_COUNT];
#pragma GCC visibility pop

/* The driver's function for a row, looked up once; NULL if there is no driver or it lacks the
 * function. */
void *tfh_real_find(enum tfh_fn fn);

/* Like tfh_real_find(), but without the loader's lock, and only if the driver's own object exports
 * the function. */
void *tfh_real_exported(enum tfh_fn fn);

/*
 * For a wrapper whose real function is not known yet: the driver's function, or, with no driver
 * loaded, the definition that the caller would bind to without tfhook. In the second case *record
 * is false, because whatever that definition calls next passes through our wrappers again. Returns
 * NULL if no object defines the name; the wrapper then returns tfh_no_driver().
 */
void *tfh_real_for(enum tfh_fn fn, const void *caller, bool *record);

/* The definition of `name` that the caller would bind to without tfhook, or NULL. */
void *tfh_without_us(const char *name, const void *caller);

/* Enclose a call to such a definition. `here`: the call's stack address; `before`: the result of
 * tfh_forward(). */
unsigned tfh_forward(const char *here);
void tfh_forwarded(unsigned before);

/* marks.c: a range that ends now, possibly begun on another thread. */
void tfh_range(const char *name, uint64_t begin_ticks);

/* The error that a call returns if no driver can serve it. */
CUresult tfh_no_driver(void);

/* ---- names.c ---- */

/* fn of a driver function by exported name; TFH_FN_NONE if it is not hooked. */
enum tfh_fn tfh_fn_find(const char *name);

/* True for names in cuda_left.def; `base`: also if only the name without _v2, _ptsz, ... is listed.
 */
bool tfh_left_alone(const char *name, bool base);

/* True if a hooked or listed name is `base`, optionally with a suffix _v<n>, _ptsz or _ptds. */
bool tfh_same_base(const char *symbol, const char *base);

/* ---- getproc.c ---- */

/* Our wrapper of a row. */
void *tfh_hook_of(enum tfh_fn fn);

/* Whether `address` is one of our wrappers. */
bool tfh_is_hook(const void *address);

/* True for `cu` and a capital letter: the only names that the lookup hooks examine. */
static inline bool tfh_driver_name(const char *name)
{
	return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

/* Unhooked driver functions that the hooks call themselves. X(id, symbol, parameters) */
#define TFH_ASK_LIST(X)                                                                            \
	X(CTX_CURRENT, cuCtxGetCurrent, (CUcontext *))                                             \
	X(CTX_DEVICE, cuCtxGetDevice, (int *))                                                     \
	X(MEMORY, cuMemGetInfo_v2, (size_t *, size_t *))                                           \
	X(STREAM_CTX, cuStreamGetCtx, (CUstream, CUcontext *))                                     \
	X(CAPTURING, cuStreamIsCapturing, (CUstream, int *))                                       \
	X(CAPTURE_MODE, cuThreadExchangeStreamCaptureMode, (int *))                                \
	X(FUNC_NAME, cuFuncGetName, (const char **, CUfunction))                                   \
	X(KERNEL_NAME, cuKernelGetName, (const char **, CUkernel))                                 \
	X(POINTER, cuPointerGetAttribute, (void *, int, CUdeviceptr))                              \
	X(RANGE, cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr))                  \
	X(GRAPH_NODES, cuGraphGetNodes, (CUgraph, CUgraphNode *, size_t *))                        \
	X(NODE_TYPE, cuGraphNodeGetType, (CUgraphNode, int *))                                     \
	X(NODE_COPY, cuGraphMemcpyNodeGetParams, (CUgraphNode, CUDA_MEMCPY3D *))                   \
	X(NODE_CHILD, cuGraphChildGraphNodeGetGraph, (CUgraphNode, CUgraph *))

enum tfh_ask {
#define X(id, symbol, parameters) TFH_ASK_##id,
	TFH_ASK_LIST(X)
#undef X
		TFH_ASK_COUNT
};
#define X(id, symbol, parameters) typedef CUresult(*tfh_ask_##id) parameters;
TFH_ASK_LIST(X)
#undef X

/* The driver's function, looked up once; NULL if the driver lacks it. */
void *tfh_ask(enum tfh_ask which);
#define TFH_ASK(id) ((tfh_ask_##id)tfh_ask(TFH_ASK_##id))

#endif
