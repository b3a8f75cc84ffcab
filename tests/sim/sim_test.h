/* Shared by the programs of this folder: a driver opened as clients do it, and checks. */
#ifndef SIM_TEST_H
#define SIM_TEST_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/gpu/driver_types.h"

static int failures;
static void *driver;

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

/* CU(name, (argument types), arguments): the result of a driver function. */
#define CU(name, types, ...) (((int(*) types)symbol(#name))(__VA_ARGS__))
#define OK(name, types, ...)                                                                       \
	do {                                                                                       \
		int r_ = CU(name, types, __VA_ARGS__);                                             \
		if (r_) {                                                                          \
			fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #name, r_);   \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

static inline void *symbol(const char *name)
{
	void *f = dlsym(driver, name);
	if (!f) {
		fprintf(stderr, "no %s\n", name);
		exit(1);
	}
	return f;
}

static inline void open_driver(void)
{
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
}

static CUcontext context;

static inline void open_context(void)
{
	open_driver();
	OK(cuInit, (unsigned), 0);
	OK(cuDevicePrimaryCtxRetain, (CUcontext *, int), &context, 0);
	OK(cuCtxSetCurrent, (CUcontext), context);
}

static inline CUdeviceptr device_memory(size_t n)
{
	CUdeviceptr p = 0;
	OK(cuMemAlloc_v2, (CUdeviceptr *, size_t), &p, n);
	return p;
}

static inline char *pinned_memory(size_t n)
{
	void *p = NULL;
	OK(cuMemHostAlloc, (void **, size_t, unsigned), &p, n, 0);
	return p;
}

static inline CUstream new_stream(unsigned flags)
{
	CUstream s = NULL;
	OK(cuStreamCreate, (CUstream *, unsigned), &s, flags);
	return s;
}

static inline CUevent new_event(void)
{
	CUevent e = NULL;
	OK(cuEventCreate, (CUevent *, unsigned), &e, 0);
	return e;
}

static inline CUfunction kernel(const char *ptx, const char *name)
{
	CUmodule m = NULL;
	CUfunction f = NULL;
	OK(cuModuleLoadData, (CUmodule *, const void *), &m, ptx);
	OK(cuModuleGetFunction, (CUfunction *, CUmodule, const char *), &f, m, name);
	return f;
}

#define SPIN_PTX                                                                                   \
	".version 7.0\n.target sm_50\n.address_size 64\n"                                          \
	".visible .entry spin(.param .u64 ns)\n{\n\tret;\n}\n"

static inline int launch(CUfunction f, unsigned grid, unsigned block, CUstream s, void **params)
{
	return CU(cuLaunchKernel,
		  (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		   CUstream, void **, void **),
		  f, grid, 1, 1, block, 1, 1, 0, s, params, NULL);
}

/* A kernel that takes this long. */
static inline void spin(CUstream s, double ms)
{
	static CUfunction f;
	uint64_t ns = (uint64_t)(ms * 1e6);
	void *params[] = {&ns};
	if (!f)
		f = kernel(SPIN_PTX, "spin");
	CHECK(launch(f, 1, 1, s, params) == 0);
}

static inline int query(CUstream s)
{
	return CU(cuStreamQuery, (CUstream), s);
}

#endif
