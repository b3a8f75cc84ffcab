/*
 * A runtime library as small as one can be, on the driver's interface as NVIDIA's is: nothing is
 * linked, the driver is opened at the first call, cuGetProcAddress_v2 is asked for by dlsym, and
 * everything else of that. Built shared, and static into whatever wants one of its own.
 */
#ifndef MINIRT_H
#define MINIRT_H

#include <stddef.h>

enum { rtHostToDevice = 1, rtDeviceToHost = 2, rtDeviceToDevice = 3, rtDefault = 4 };

typedef void *rtStream;
typedef void *rtEvent;
typedef void *rtKernel;

int rtMalloc(void **memory, size_t bytes);
int rtFree(void *memory);
int rtMallocHost(void **memory, size_t bytes);
int rtFreeHost(void *memory);
int rtMemcpy(void *dst, const void *src, size_t bytes, int kind);
int rtMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, rtStream stream);
int rtMemsetAsync(void *memory, int value, size_t bytes, rtStream stream);
int rtStreamCreate(rtStream *stream);
int rtStreamSynchronize(rtStream stream);
int rtStreamDestroy(rtStream stream);
int rtEventCreate(rtEvent *event);
int rtEventRecord(rtEvent event, rtStream stream);
int rtEventSynchronize(rtEvent event);
int rtEventDestroy(rtEvent event);
int rtKernelLoad(rtKernel *kernel, const char *ptx, const char *name);
int rtLaunchKernel(rtKernel kernel, unsigned grid, unsigned block, void **arguments,
		   rtStream stream);
int rtDeviceSynchronize(void);

/* What one user of a runtime does: a few steps whose copies are `bytes` and up. 0 if all went well.
 */
int rt_work(unsigned bytes);

#endif
