/*
 * Virtual memory, pools, managed memory and batches of copies: bytes move, memory in use is
 * counted, misuse gets its error. Run without arguments.
 */
#include "objects_test.h"

#include <stdbool.h>
#include <unistd.h>

typedef unsigned long long handle;

struct prop {
	int type;
	unsigned handles;
	struct location location;
	void *win32;
	unsigned char flags[8];
};
struct access {
	struct location location;
	unsigned flags;
};
static const struct prop on_device = {.type = 1, .location = {1, 0}};
static const struct access read_write = {{1, 0}, 3}, read_only = {{1, 0}, 1};

static size_t in_use(void)
{
	size_t available = 0, total = 0;
	IS(0, cuMemGetInfo_v2, (size_t *, size_t *), &available, &total);
	return total - available;
}

/* ---- virtual memory ---- */
static void mappings(void)
{
	size_t g = 0, before = in_use();
	CUdeviceptr va = 0;
	handle a = 0, b = 0, again = 0;
	char h[64], back[64];
	unsigned long long flags = 9;
	fill_bytes(h, sizeof(h), 5);
	IS(0, cuMemGetAllocationGranularity, (size_t *, const void *, int), &g, &on_device, 0);
	CHECK(g >= 4096 && !(g & (g - 1)));
	IS(0, cuMemAddressReserve, (CUdeviceptr *, size_t, size_t, CUdeviceptr, handle), &va, 4 * g,
	   0, 0, 0);
	CHECK(in_use() == before && va % g == 0);
	IS(INVALID, cuMemcpyHtoD_v2, (CUdeviceptr, void *, size_t), va, h, 64);
	IS(0, cuMemCreate, (handle *, size_t, const void *, handle), &a, g, &on_device, 0);
	IS(0, cuMemCreate, (handle *, size_t, const void *, handle), &b, 2 * g, &on_device, 0);
	CHECK(in_use() == before + 3 * g);
	IS(INVALID, cuMemCreate, (handle *, size_t, const void *, handle), &again, 100, &on_device,
	   0);
	IS(NO_MEMORY, cuMemCreate, (handle *, size_t, const void *, handle), &again,
	   ((size_t)1 << 50), &on_device, 0);
	IS(0, cuMemMap, (CUdeviceptr, size_t, size_t, handle, handle), va, g, 0, a, 0);
	IS(INVALID, cuMemMap, (CUdeviceptr, size_t, size_t, handle, handle), va, g, 0, b, 0);
	IS(0, cuMemMap, (CUdeviceptr, size_t, size_t, handle, handle), va + g, g, g, b, 0);
	IS(0, cuMemMap, (CUdeviceptr, size_t, size_t, handle, handle), va + 3 * g, g, g, b, 0);
	IS(INVALID, cuMemMap, (CUdeviceptr, size_t, size_t, handle, handle), va + 2 * g, g, 2 * g,
	   b, 0);
	IS(INVALID, cuMemcpyHtoD_v2, (CUdeviceptr, void *, size_t), va, h, 64); /* no access */
	IS(INVALID, cuMemSetAccess, (CUdeviceptr, size_t, const void *, size_t), va, 3 * g,
	   &read_write, 1);
	IS(0, cuMemSetAccess, (CUdeviceptr, size_t, const void *, size_t), va, 2 * g, &read_write,
	   1);
	IS(0, cuMemSetAccess, (CUdeviceptr, size_t, const void *, size_t), va + 3 * g, g,
	   &read_only, 1);
	IS(0, cuMemGetAccess, (handle *, const void *, CUdeviceptr), &flags, &read_only,
	   va + 3 * g + 5);
	CHECK(flags == 1);
	/* across the border of two mappings; the third shows the second's memory */
	IS(0, cuMemcpyHtoD_v2, (CUdeviceptr, void *, size_t), va + g - 32, h, 64);
	IS(0, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), back, va + 3 * g, 32);
	CHECK(!memcmp(back, h + 32, 32));
	IS(INVALID, cuMemcpyHtoD_v2, (CUdeviceptr, void *, size_t), va + 3 * g, h, 64);
	IS(INVALID, cuMemcpyHtoD_v2, (CUdeviceptr, void *, size_t), va + 2 * g - 32, h, 64);
	IS(0, cuMemRetainAllocationHandle, (handle *, void *), &again, (void *)(uintptr_t)(va + 7));
	CHECK(again == a);
	IS(INVALID, cuMemFree_v2, (CUdeviceptr), va);
	IS(INVALID, cuMemAddressFree, (CUdeviceptr, size_t), va, 4 * g);
	IS(0, cuMemRelease, (handle), a);
	IS(0, cuMemRelease, (handle), a);
	IS(INVALID, cuMemRelease, (handle), a);
	IS(0, cuMemRelease, (handle), b);
	IS(0, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), back, va + g - 32, 64);
	CHECK(!memcmp(back, h, 64) && in_use() == before + 3 * g);
	IS(INVALID, cuMemUnmap, (CUdeviceptr, size_t), va, g / 2);
	IS(0, cuMemUnmap, (CUdeviceptr, size_t), va, 2 * g);
	IS(0, cuMemUnmap, (CUdeviceptr, size_t), va + 3 * g, g);
	CHECK(in_use() == before);
	IS(INVALID, cuMemUnmap, (CUdeviceptr, size_t), va, g);
	IS(INVALID, cuMemAddressFree, (CUdeviceptr, size_t), va, g);
	IS(0, cuMemAddressFree, (CUdeviceptr, size_t), va, 4 * g);
}

/* ---- pools ---- */
struct pool_props {
	int type;
	unsigned handles;
	struct location location;
	void *security;
	size_t max;
	char rest[56];
};

static uint64_t pool_value(CUmemoryPool p, int what)
{
	uint64_t v = 77;
	IS(0, cuMemPoolGetAttribute, (CUmemoryPool, int, void *), p, what, &v);
	return v;
}

static void pools(void)
{
	struct pool_props props = {.type = 1, .location = {1, 0}, .max = 1 << 20};
	CUmemoryPool pool = NULL, was = NULL, now = NULL;
	CUdeviceptr a = 0, b = 0;
	CUstream s = new_stream(1);
	uint64_t zero = 0, one = 1;
	unsigned access = 0;
	struct location here = {1, 0};
	size_t before = in_use();
	IS(0, cuMemPoolCreate, (CUmemoryPool *, void *), &pool, &props);
	IS(0, cuMemAllocFromPoolAsync, (CUdeviceptr *, size_t, CUmemoryPool, CUstream), &a, 700000,
	   pool, s);
	CHECK(pool_value(pool, 7) == 700000 && in_use() > before);
	/* Memory whose free is on the way is waited for. */
	spin(s, 5);
	IS(0, cuMemFreeAsync, (CUdeviceptr, CUstream), a, s);
	IS(INVALID, cuMemFreeAsync, (CUdeviceptr, CUstream), a, s);
	IS(INVALID, cuMemFree_v2, (CUdeviceptr), a);
	IS(0, cuMemAllocFromPoolAsync, (CUdeviceptr *, size_t, CUmemoryPool, CUstream), &b, 600000,
	   pool, s);
	IS(NO_MEMORY, cuMemAllocFromPoolAsync, (CUdeviceptr *, size_t, CUmemoryPool, CUstream), &a,
	   500000, pool, s);
	CHECK(pool_value(pool, 8) == 700000);
	IS(0, cuMemPoolSetAttribute, (CUmemoryPool, int, void *), pool, 8, &zero);
	IS(INVALID, cuMemPoolSetAttribute, (CUmemoryPool, int, void *), pool, 8, &one);
	CHECK(pool_value(pool, 8) == 600000);
	IS(0, cuMemPoolGetAccess, (unsigned *, CUmemoryPool, void *), &access, pool, &here);
	CHECK(access == 3);
	IS(0, cuDeviceGetMemPool, (CUmemoryPool *, int), &was, 0);
	IS(0, cuDeviceSetMemPool, (int, CUmemoryPool), 0, pool);
	IS(0, cuMemGetMemPool, (CUmemoryPool *, void *, int), &now, &here, 1);
	CHECK(now == pool);
	IS(0, cuMemPoolDestroy, (CUmemoryPool), pool); /* while an allocation lives */
	IS(0, cuDeviceGetMemPool, (CUmemoryPool *, int), &now, 0);
	CHECK(now == was);
	IS(INVALID, cuMemPoolDestroy, (CUmemoryPool), was);
	IS(0, cuMemFreeAsync, (CUdeviceptr, CUstream), b, s);
	IS(0, cuStreamSynchronize, (CUstream), s);
	CHECK(in_use() == before);
	props.location.id = 99;
	IS(101, cuMemPoolCreate, (CUmemoryPool *, void *), &pool, &props);
	IS(INVALID, cuMemPoolCreate, (CUmemoryPool *, void *), &pool, NULL);
}

/* ---- managed memory ---- */
static int attribute(int what, CUdeviceptr d, size_t n)
{
	int v = 77;
	IS(0, cuMemRangeGetAttribute, (void *, size_t, int, CUdeviceptr, size_t), &v, 4, what, d,
	   n);
	return v;
}

static void managed(void)
{
	enum { N = 1 << 20 };
	CUdeviceptr m = 0, d = device_memory(64);
	struct location host = {2, 0}, gpu = {1, 0};
	CUstream s = new_stream(1);
	int by[2];
	IS(INVALID, cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned), &m, N, 0);
	IS(0, cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned), &m, N, 1);
	char *p = (char *)(uintptr_t)m;
	fill_bytes(p, N, 6);
	CHECK(attribute(4, m, N) == -2);
	IS(0, cuMemPrefetchAsync, (CUdeviceptr, size_t, int, CUstream), m, N, 0, s);
	IS(0, cuMemPrefetchAsync_v2, (CUdeviceptr, size_t, struct location, unsigned, CUstream), m,
	   N / 2, host, 0, s);
	IS(0, cuStreamSynchronize, (CUstream), s);
	CHECK(attribute(4, m, N / 2) == -1 && attribute(4, m + N / 2, N / 2) == 0 &&
	      attribute(4, m, N) == -2);
	IS(0, cuMemAdvise, (CUdeviceptr, size_t, int, int), m, N, 5, 0);
	IS(0, cuMemAdvise_v2, (CUdeviceptr, size_t, int, struct location), m, 4096, 3, gpu);
	IS(0, cuMemAdvise, (CUdeviceptr, size_t, int, int), m, N, 1, -1);
	IS(0, cuMemRangeGetAttribute, (void *, size_t, int, CUdeviceptr, size_t), by, 8, 3, m, N);
	CHECK(by[0] == 0 && by[1] == -2 && attribute(1, m, N) == 1);
	CHECK(attribute(2, m, 4096) == 0 && attribute(2, m, 8192) == -2 && attribute(5, m, 9) == 1);
	IS(INVALID, cuMemAdvise, (CUdeviceptr, size_t, int, int), d, 64, 1, 0);
	IS(INVALID, cuMemAdvise, (CUdeviceptr, size_t, int, int), m, N + 4096, 1, 0);
	IS(101, cuMemAdvise, (CUdeviceptr, size_t, int, int), m, N, 3, 55);
	IS(INVALID, cuMemPrefetchAsync, (CUdeviceptr, size_t, int, CUstream), d, 64, 0, s);
	CUdeviceptr ds[2] = {m, m + N / 2};
	size_t sizes[2] = {4096, 4096}, first[2] = {0, 1};
	struct location to[2] = {{1, 0}, {2, 0}};
	IS(0, cuMemPrefetchBatchAsync,
	   (CUdeviceptr *, size_t *, size_t, void *, size_t *, size_t, unsigned long long,
	    CUstream),
	   ds, sizes, 2, to, first, 2, 0, s);
	IS(0, cuMemDiscardBatchAsync,
	   (CUdeviceptr *, size_t *, size_t, unsigned long long, CUstream), ds, sizes, 2, 0, s);
	IS(INVALID, cuMemDiscardBatchAsync,
	   (CUdeviceptr *, size_t *, size_t, unsigned long long, CUstream), ds, sizes, 2, 0, NULL);
	IS(0, cuStreamSynchronize, (CUstream), s);
	IS(0, cuMemFree_v2, (CUdeviceptr), m);
	IS(0, cuMemFree_v2, (CUdeviceptr), d);
}

/* ---- batches ---- */
struct copy_attributes {
	int order;
	struct location src, dst;
	unsigned flags;
};
typedef int (*batch_fn)(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, void *, size_t *, size_t,
			size_t *, CUstream);

struct operand {
	int type;
	union {
		struct {
			CUdeviceptr p;
			size_t row, height;
			struct location hint;
		} ptr;
		struct {
			CUarray array;
			size_t x, y, z;
		} array;
	} op;
};
struct box {
	struct operand src, dst;
	size_t w, h, d;
	int order;
	unsigned flags;
};

static void batches(void)
{
	CUstream s = new_stream(1);
	CUdeviceptr d = device_memory(4096);
	char *pinned = pinned_memory(4096), h[256], back[256];
	struct copy_attributes a[2] = {{.order = 1}, {.order = 2}};
	size_t sizes[3] = {100, 100, 56}, first[2] = {0, 1}, fail = 5;
	CUdeviceptr dst[3] = {d, d + 100, d + 200};
	batch_fn copy = (batch_fn)symbol("cuMemcpyBatchAsync");
	fill_bytes(h, sizeof(h), 7);
	memcpy(pinned, h, 256);
	CUdeviceptr src[3] = {(uintptr_t)pinned, (uintptr_t)pinned + 100, (uintptr_t)h + 200};
	spin(s, 5);
	CHECK(copy(dst, src, sizes, 3, a, first, 2, &fail, s) == 0);
	memset(pinned + 100, 0, 100); /* taken during the call */
	IS(0, cuStreamSynchronize, (CUstream), s);
	IS(0, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), back, d, 256);
	CHECK(!memcmp(back, h, 256));
	dst[1] = d + 4000;
	CHECK(copy(dst, src, sizes, 3, a, first, 2, &fail, s) == INVALID && fail == 1);
	CHECK(copy(dst, src, sizes, 1, a, first, 2, &fail, s) == INVALID && fail == SIZE_MAX);
	dst[1] = d;
	CHECK(copy(dst, src, sizes, 3, a, first, 2, &fail, NULL) == INVALID);
	a[1].order = 0;
	CHECK(copy(dst, src, sizes, 3, a, first, 2, &fail, s) == INVALID);
	struct {
		size_t w, h;
		int format;
		unsigned channels;
	} desc = {8, 4, UINT8, 2};
	CUarray array = NULL;
	IS(0, cuArrayCreate_v2, (CUarray *, void *), &array, &desc);
	struct box up = {.src = {1, .op.ptr = {(uintptr_t)h, 0, 0, {0}}},
			 .dst = {2, .op.array = {array, 0, 0, 0}},
			 .w = 8,
			 .h = 4,
			 .d = 1,
			 .order = 1};
	struct box down = {.src = {2, .op.array = {array, 1, 1, 0}},
			   .dst = {1, .op.ptr = {(uintptr_t)back, 4, 0, {0}}},
			   .w = 2,
			   .h = 2,
			   .d = 1,
			   .order = 1};
	IS(0, cuMemcpy3DBatchAsync_v2, (size_t, void *, unsigned long long, CUstream), 1, &up, 0,
	   s);
	IS(0, cuMemcpy3DBatchAsync, (size_t, void *, size_t *, unsigned long long, CUstream), 1,
	   &down, &fail, 0, s);
	IS(0, cuStreamSynchronize, (CUstream), s);
	CHECK(!memcmp(back, h + 16 + 2, 4) && !memcmp(back + 8, h + 32 + 2, 4));
	down.w = 9;
	IS(INVALID, cuMemcpy3DBatchAsync, (size_t, void *, size_t *, unsigned long long, CUstream),
	   1, &down, &fail, 0, s);
	CHECK(fail == 0);
	IS(0, cuArrayDestroy, (CUarray), array);
}

int main(void)
{
	open_context();
	mappings();
	pools();
	managed();
	batches();
	return failures != 0;
}
