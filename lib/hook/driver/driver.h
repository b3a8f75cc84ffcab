/*
 * The way to the real driver: the loader's own lookup functions, the driver's handle, the real
 * entry points.
 *
 * Nothing here allocates or takes a lock of ours, so that it can run inside dlsym, before
 * constructors, and while the driver initialises itself.
 */
#ifndef TFH_HOOK_DRIVER_H
#define TFH_HOOK_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fn.h"
#include "hook/driver/cuda_types.h"

/* The lookup functions that a program would reach without tfhook: the next preload's if one wraps
 * them, else libc's. */
extern void *(*tfh_next_dlsym)(void *handle, const char *name);
extern void *(*tfh_next_dlvsym)(void *handle, const char *name, const char *version);

/* Fills both. Cheap when already done. Never fails: a process without libc's dlsym could not have
 * loaded us. */
void tfh_lookup_init(void);

/* libc's dl_iterate_phdr. */
struct dl_phdr_info;
int tfh_each_object(int (*look)(struct dl_phdr_info *, size_t, void *), void *data);

/* The driver's address of a name, as the program's own lookup on the driver's handle would return it;
 * NULL if the driver lacks it. */
void *tfh_driver_symbol(const char *name);

/* True if `address` lies in the driver's own object (by name: libcuda.so*, or TFHOOK_CUDA_LIB). */
bool tfh_in_driver(const void *address);

/* True if `address` lies in the driver, in one of the vendor's tools or in tfhook: lookups from there
 * are not redirected. */
bool tfh_in_vendor(const void *address);

/* True for an object in front of ours in the order of search: a preload named before us, or the
 * program. */
bool tfh_loaded_before_us(const void *address);

/* Real functions by fn number; NULL until found. Read by every wrapper. */
#pragma GCC visibility push(hidden)
extern void *tfh_real[TFH_FN_COUNT];
#pragma GCC visibility pop

/* The driver's function for a row, looked up once; NULL if there is no driver or it lacks the name.
 */
void *tfh_real_find(enum tfh_fn fn);

/* The same, but without the loader's lock, and only of what the driver's own object exports. */
void *tfh_real_exported(enum tfh_fn fn);

/*
 * For a wrapper whose real function is not known yet: the driver's function, or, with no driver
 * loaded, the definition that the caller would bind to without tfhook. In the second case *record is
 * false, because whatever that definition calls next passes through our wrappers again. NULL: no
 * object defines the name, and the wrapper returns tfh_no_driver().
 */
void *tfh_real_for(enum tfh_fn fn, const void *caller, bool *record);

/* The definition of `name` that the caller would bind to without tfhook, or NULL. */
void *tfh_without_us(const char *name, const void *caller);

/* Enclose a call of such a definition. `here`: the call's place on the stack; `before`: what
 * tfh_forward() returned. */
unsigned tfh_forward(const char *here);
void tfh_forwarded(unsigned before);

/* marks.c: a range that ends now; it may have begun on another thread. */
void tfh_range(const char *name, uint64_t begin_ticks);

/* The error that a call returns when no driver can serve it. */
CUresult tfh_no_driver(void);

/* ---- names.c ---- */

/* fn of a driver entry point by exported name; TFH_FN_NONE if it is not hooked. */
enum tfh_fn tfh_fn_find(const char *name);

/* True for names on the list of those left alone; `base`: also when only the name without _v2,
 * _ptsz, ... is. */
bool tfh_left_alone(const char *name, bool base);

/* True if some row or name left alone is `base` with an ending of _v<n>, _ptsz or _ptds, or without
 * one. */
bool tfh_same_base(const char *symbol, const char *base);

/* ---- getproc.c ---- */

/* Address of our wrapper of a row. */
void *tfh_hook_of(enum tfh_fn fn);

/* True for the address of any of our wrappers. */
bool tfh_is_hook(const void *address);

/* True for `cu` and a capital: the only names that the lookup doors look at. */
static inline bool tfh_driver_name(const char *name)
{
	return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

/* Unhooked driver functions that the hooks themselves ask. X(id, symbol, parameters) */
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

/* The driver's function, looked up once; NULL if it lacks it. */
void *tfh_ask(enum tfh_ask which);
#define TFH_ASK(id) ((tfh_ask_##id)tfh_ask(TFH_ASK_##id))

#endif
