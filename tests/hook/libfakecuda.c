/*
 * A driver for tests of the doors: it counts calls of the real functions, asks the loader for its
 * own names while it initialises and inside cuGetProcAddress (as some real drivers do), has a name
 * that nobody knows, a version of a known one that is newer than all headers, and two pairs of
 * names with one address: two versions of a function, and two that it does not support.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef unsigned long long ptr;
enum { OK = 0, INVALID = 1, NOT_INITIALISED = 3 };

static int initialised, self_lookup_wrong;
int fake_calls; /* calls that reached this driver, for the client */

int cuMemcpyHtoD_v2(ptr dst, const void *src, size_t bytes)
{
	(void)src;
	(void)bytes;
	fake_calls++;
	return dst ? OK : INVALID;
}

/* The driver's own reference to itself, which no preload can take. */
extern int same_copy(ptr dst, const void *src, size_t bytes)
	__attribute__((alias("cuMemcpyHtoD_v2"), visibility("hidden")));

static void *own(const char *name)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
	void *found = handle ? dlsym(handle, name) : NULL;

	if (handle)
		dlclose(handle);
	return found;
}

int cuInit(unsigned flags)
{
	fake_calls++;
	if (own("cuMemcpyHtoD_v2") != (void *)same_copy)
		self_lookup_wrong = 1;
	initialised = 1;
	return flags ? INVALID : OK;
}

/* 1 if the driver got anything but its own function for its own name. */
int fake_self_lookup_wrong(void)
{
	return self_lookup_wrong;
}

int cuCtxGetCurrent(void **context)
{
	*context = (void *)0xc0;
	return initialised ? OK : NOT_INITIALISED;
}

int cuCtxGetDevice(int *device)
{
	*device = 0;
	return OK;
}

int cuDeviceGetCount(int *count)
{
	*count = 1;
	return OK;
}

int cuMemcpyHtoD(unsigned dst, const void *src, unsigned bytes)
{
	return cuMemcpyHtoD_v2(dst, src, bytes);
}

int cuMemcpyHtoDAsync_v2(ptr dst, const void *src, size_t bytes, void *stream)
{
	(void)stream;
	return cuMemcpyHtoD_v2(dst, src, bytes);
}

int cuMemcpyHtoDAsync_v2_ptsz(ptr dst, const void *src, size_t bytes, void *stream)
{
	(void)stream;
	fake_calls++;
	return dst && src ? OK : bytes ? INVALID : OK;
}

int cuStreamDestroy(void *stream)
{
	fake_calls++;
	return stream ? OK : INVALID;
}
int cuStreamDestroy_v2(void *stream) __attribute__((alias("cuStreamDestroy")));

int cuMemMapArrayAsync(void)
{
	return 801;
}
int cuMulticastCreate(void) __attribute__((alias("cuMemMapArrayAsync")));

/* Newer than any header. */
int cuMemcpyHtoD_v9(ptr dst, const void *src, size_t bytes, int hint)
{
	(void)src;
	(void)bytes;
	(void)hint;
	return dst ? OK : INVALID;
}

int cuMemAlloc_v2(ptr *out, size_t bytes)
{
	fake_calls++;
	if (!out || !bytes)
		return INVALID;
	*out = 0x1000;
	return OK;
}

int cuModuleGetFunction(void **out, void *module, const char *name)
{
	(void)module;
	fake_calls++;
	if (!out || !strcmp(name, "missing"))
		return 500;
	*out = (void *)0x7000;
	return OK;
}

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		   unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
	fake_calls++;
	/* every argument arrives as it was given */
	return f == (void *)0x7000 && gx == 1 && gy == 2 && gz == 3 && bx == 4 && by == 5 &&
			       bz == 6 && shared == 7 && stream == NULL && params == (void **)8 &&
			       extra == (void **)9
		       ? OK
		       : INVALID;
}

/* A name that no table has. */
int cuFrobnicate(int x)
{
	return x;
}

int cuGetProcAddress_v2(const char *symbol, void **out, int version, unsigned long long flags,
			int *status)
{
	char name[128];

	if (!out || !symbol)
		return INVALID;
	*out = NULL;
	if (status)
		*status = 0;
	if (version > 99000)
		return INVALID;
	if (!strcmp(symbol, "cuMemcpyHtoD") && version >= 90000) {
		*out = (void *)cuMemcpyHtoD_v9;
		return OK;
	}
	if (!strcmp(symbol, "cuGetProcAddress") && version < 12000) {
		*out = own(symbol);
		return OK;
	}
	for (int i = 0; i < 4 && !*out; i++) {
		static const char *const ending[] = {"_v2_ptsz", "_ptsz", "_v2", ""};
		if ((i < 2 && flags != 2) || (i == 2 && version < 3020) || !*symbol)
			continue;
		snprintf(name, sizeof(name), "%s%s", symbol, ending[i]);
		*out = own(name);
	}
	if (status && !*out)
		*status = 1;
	return OK;
}

int cuGetProcAddress(const char *symbol, void **out, int version, unsigned long long flags)
{
	return cuGetProcAddress_v2(symbol, out, version, flags, NULL);
}
