/*
 * Memory and the objects made of it do what the driver's documentation says: bytes arrive where
 * they should by every way of copying, and misuse (freeing twice, wrong handles, NULL results, no
 * memory, no access, beyond the end) gets its error and changes nothing. Run without arguments.
 */
#include "objects_test.h"

#include <sys/mman.h>
#include <unistd.h>

/* ---- plain memory ---- */
static void plain(void)
{
	CUdeviceptr d = device_memory(1000), p;
	size_t pitch, n;
	unsigned char h[64], back[64];
	fill_bytes(h, sizeof(h), 1);
	IS(0, cuMemcpyHtoD_v2, (CUdeviceptr, void *, size_t), d, h, 64);
	IS(0, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t), back, d, 64);
	CHECK(!memcmp(h, back, 64));
	/* beyond the end, up to the page */
	IS(INVALID, cuMemcpyHtoD_v2, (CUdeviceptr, void *, size_t), d + 4090, h, 64);
	IS(INVALID, cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t), d, 0, 5000);
	IS(INVALID, cuMemAlloc_v2, (CUdeviceptr *, size_t), NULL, 16);
	IS(INVALID, cuMemAlloc_v2, (CUdeviceptr *, size_t), &p, 0);
	IS(NO_MEMORY, cuMemAlloc_v2, (CUdeviceptr *, size_t), &p, (size_t)1 << 50);
	IS(INVALID, cuMemFree_v2, (CUdeviceptr), d + 8);
	IS(0, cuMemFree_v2, (CUdeviceptr), d);
	IS(INVALID, cuMemFree_v2, (CUdeviceptr), d);
	IS(0, cuMemFree_v2, (CUdeviceptr), 0);
	IS(INVALID, cuMemcpyHtoD_v2, (CUdeviceptr, void *, size_t), d, h, 64);
	IS(0, cuMemAllocPitch_v2, (CUdeviceptr *, size_t *, size_t, size_t, unsigned), &p, &pitch,
	   100, 3, 4);
	CHECK(pitch >= 100 && pitch % 512 == 0);
	IS(0, cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr), &d, &n, p + 5);
	CHECK(d == p && n == 3 * pitch);
	IS(INVALID, cuMemAllocPitch_v2, (CUdeviceptr *, size_t *, size_t, size_t, unsigned), &d,
	   &pitch, 100, 3, 5);
	IS(0, cuMemFree_v2, (CUdeviceptr), p);
	void *host = NULL;
	unsigned flags;
	IS(INVALID, cuMemHostAlloc, (void **, size_t, unsigned), &host, 64, 0x40);
	IS(0, cuMemHostAlloc, (void **, size_t, unsigned), &host, 64, 2);
	IS(0, cuMemHostGetFlags, (unsigned *, void *), &flags, host);
	CHECK(flags == 2);
	IS(INVALID, cuMemFree_v2, (CUdeviceptr), (uintptr_t)host);
	IS(0, cuMemFreeHost, (void *), host);
	IS(INVALID, cuMemFreeHost, (void *), host);
	IS(712, cuMemHostRegister_v2, (void *, size_t, unsigned),
	   (IS(0, cuMemHostRegister_v2, (void *, size_t, unsigned), h, 64, 0), h), 64, 0);
	IS(0, cuMemHostUnregister, (void *), h);
	IS(713, cuMemHostUnregister, (void *), h);
}

/* Interior forms of the first CUDA versions: pointers of 32 bits. */
static void first_versions(void)
{
	uint32_t d = 0, base;
	unsigned pitch, n, available, total;
	unsigned char h[256], back[256];
	fill_bytes(h, sizeof(h), 2);
	IS(0, cuMemAlloc, (uint32_t *, unsigned), &d, 256);
	CHECK(d != 0);
	IS(0, cuMemcpyHtoD, (uint32_t, void *, unsigned), d, h, 256);
	IS(0, cuMemcpyDtoD, (uint32_t, uint32_t, unsigned), d + 128, d, 128);
	IS(0, cuMemsetD16, (uint32_t, unsigned short, unsigned), d, 0x1234, 4);
	IS(0, cuMemcpyDtoHAsync, (void *, uint32_t, unsigned, CUstream), back, d, 256, NULL);
	IS(0, cuCtxSynchronize, (void), );
	CHECK(back[0] == 0x34 && back[1] == 0x12 && !memcmp(back + 8, h + 8, 120) &&
	      !memcmp(back + 128, h, 128));
	IS(0, cuMemGetAddressRange, (uint32_t *, unsigned *, uint32_t), &base, &n, d + 9);
	CHECK(base == d && n == 256);
	IS(0, cuMemGetInfo, (unsigned *, unsigned *), &available, &total);
	CHECK(total >= available && total > 0);
	IS(0, cuMemFree, (uint32_t), d);
	IS(INVALID, cuMemFree, (uint32_t), d);
	IS(0, cuMemAllocPitch, (uint32_t *, unsigned *, unsigned, unsigned, unsigned), &d, &pitch,
	   16, 4, 4);
	struct {
		unsigned sx, sy;
		int st;
		const void *sh;
		uint32_t sd;
		CUarray sa;
		unsigned sp, dx, dy;
		int dt;
		void *dh;
		uint32_t dd;
		CUarray da;
		unsigned dp, w, h;
	} c = {.st = 1, .sh = h, .sp = 16, .dt = 2, .dd = d, .dp = pitch, .w = 16, .h = 4};
	IS(0, cuMemcpy2D, (void *), &c);
	IS(0, cuMemcpyDtoH, (void *, uint32_t, unsigned), back, d + 3 * pitch, 16);
	CHECK(!memcmp(back, h + 48, 16));
	IS(0, cuMemFree, (uint32_t), d);
}

/* ---- arrays ---- */
struct desc {
	size_t w, h;
	int format;
	unsigned channels;
};
struct desc3 {
	size_t w, h, d;
	int format;
	unsigned channels, flags;
};

static void arrays_1d(void)
{
	struct desc d = {64, 0, FLOAT, 1}, got;
	CUarray a = NULL, b = NULL;
	unsigned char h[256], back[256];
	CUdeviceptr mem = device_memory(256);
	char *pinned = pinned_memory(256);
	fill_bytes(h, sizeof(h), 3);
	IS(0, cuArrayCreate_v2, (CUarray *, void *), &a, &d);
	IS(0, cuArrayCreate_v2, (CUarray *, void *), &b, &d);
	IS(0, cuArrayGetDescriptor_v2, (void *, CUarray), &got, a);
	CHECK(got.w == 64 && got.h == 0 && got.format == FLOAT && got.channels == 1);
	IS(0, cuMemcpyHtoA_v2, (CUarray, size_t, void *, size_t), a, 0, h, 256);
	IS(0, cuMemcpyAtoA_v2, (CUarray, size_t, CUarray, size_t, size_t), b, 128, a, 0, 128);
	IS(0, cuMemcpyAtoD_v2, (CUdeviceptr, CUarray, size_t, size_t), mem, b, 128, 128);
	IS(0, cuMemcpyDtoA_v2, (CUarray, size_t, CUdeviceptr, size_t), b, 0, mem, 128);
	IS(0, cuMemcpyAtoHAsync_v2, (void *, CUarray, size_t, size_t, CUstream), pinned, b, 0, 256,
	   NULL);
	IS(0, cuCtxSynchronize, (void), );
	CHECK(!memcmp(pinned, h, 128) && !memcmp(pinned + 128, h, 128));
	IS(0, cuMemcpyHtoAAsync_v2, (CUarray, size_t, void *, size_t, CUstream), a, 8, h, 8, NULL);
	IS(0, cuMemcpyAtoH_v2, (void *, CUarray, size_t, size_t), back, a, 0, 16);
	CHECK(!memcmp(back, h, 8) && !memcmp(back + 8, h, 8));
	IS(0, cuMemcpyAtoH, (void *, CUarray, unsigned, unsigned), back, a, 0, 16);
	IS(INVALID, cuMemcpyAtoH_v2, (void *, CUarray, size_t, size_t), back, a, 250, 16);
	IS(INVALID, cuMemcpyHtoA_v2, (CUarray, size_t, void *, size_t), NULL, 0, h, 16);
	IS(0, cuArrayDestroy, (CUarray), a);
	IS(0, cuArrayDestroy, (CUarray), b);
	IS(INVALID, cuArrayCreate_v2, (CUarray *, void *), NULL, &d);
	d.channels = 3;
	IS(INVALID, cuArrayCreate_v2, (CUarray *, void *), &a, &d);
	d = (struct desc){0, 0, FLOAT, 1};
	IS(INVALID, cuArrayCreate_v2, (CUarray *, void *), &a, &d);
	IS(400, cuArrayDestroy, (CUarray), NULL);
	IS(0, cuMemFree_v2, (CUdeviceptr), mem);
	IS(0, cuMemFreeHost, (void *), pinned);
}

/* A box of an array of two and three dimensions, there and back. */
static void arrays_boxes(void)
{
	struct desc d = {16, 8, UINT8, 4};
	struct desc3 d3 = {8, 4, 3, UINT8, 1, 0}, got;
	CUarray a = NULL, b = NULL;
	unsigned char h[512], back[512] = {0};
	fill_bytes(h, sizeof(h), 4);
	IS(0, cuArrayCreate_v2, (CUarray *, void *), &a, &d);
	CUDA_MEMCPY2D up = {.srcMemoryType = SIM_MEM_HOST,
			    .srcHost = h,
			    .srcPitch = 64,
			    .dstMemoryType = SIM_MEM_ARRAY,
			    .dstArray = a,
			    .WidthInBytes = 64,
			    .Height = 8};
	CUDA_MEMCPY2D down = {.srcXInBytes = 4,
			      .srcY = 2,
			      .srcMemoryType = SIM_MEM_ARRAY,
			      .srcArray = a,
			      .dstMemoryType = SIM_MEM_HOST,
			      .dstHost = back,
			      .dstPitch = 8,
			      .WidthInBytes = 8,
			      .Height = 5};
	IS(0, cuMemcpy2D_v2, (void *), &up);
	IS(0, cuMemcpy2DAsync_v2, (void *, CUstream), &down, NULL);
	for (int y = 0; y < 5; y++)
		CHECK(!memcmp(back + y * 8, h + (y + 2) * 64 + 4, 8));
	down.Height = 7;
	IS(INVALID, cuMemcpy2D_v2, (void *), &down);
	IS(0, cuArray3DCreate_v2, (CUarray *, void *), &b, &d3);
	IS(0, cuArray3DGetDescriptor_v2, (void *, CUarray), &got, b);
	CHECK(got.w == 8 && got.h == 4 && got.d == 3 && got.format == UINT8 && got.channels == 1);
	CUDA_MEMCPY3D p = {.srcMemoryType = SIM_MEM_HOST,
			   .srcHost = h,
			   .srcPitch = 8,
			   .srcHeight = 4,
			   .dstMemoryType = SIM_MEM_ARRAY,
			   .dstArray = b,
			   .WidthInBytes = 8,
			   .Height = 4,
			   .Depth = 3};
	CUDA_MEMCPY3D q = {.srcXInBytes = 2,
			   .srcY = 1,
			   .srcZ = 1,
			   .srcMemoryType = SIM_MEM_ARRAY,
			   .srcArray = b,
			   .dstMemoryType = SIM_MEM_HOST,
			   .dstHost = back,
			   .WidthInBytes = 3,
			   .Height = 2,
			   .Depth = 2};
	IS(0, cuMemcpy3D_v2, (void *), &p);
	IS(0, cuMemcpy3D_v2, (void *), &q);
	for (int z = 0; z < 2; z++)
		for (int y = 0; y < 2; y++)
			CHECK(!memcmp(back + z * 6 + y * 3, h + (z + 1) * 32 + (y + 1) * 8 + 2, 3));
	IS(INVALID, cuMemcpyAtoH_v2, (void *, CUarray, size_t, size_t), back, b, 0, 4);
	IS(0, cuArrayDestroy, (CUarray), a);
	IS(0, cuArrayDestroy, (CUarray), b);
}

static void mipmaps(void)
{
	struct desc3 d = {16, 16, 0, FLOAT, 1, 0}, got;
	CUarray m = NULL, level = NULL;
	IS(0, cuMipmappedArrayCreate, (CUarray *, void *, unsigned), &m, &d, 99);
	IS(0, cuMipmappedArrayGetLevel, (CUarray *, CUarray, unsigned), &level, m, 4);
	IS(0, cuArray3DGetDescriptor_v2, (void *, CUarray), &got, level);
	CHECK(got.w == 1 && got.h == 1);
	IS(INVALID, cuMipmappedArrayGetLevel, (CUarray *, CUarray, unsigned), &level, m, 5);
	IS(INVALID, cuArrayDestroy, (CUarray), level);
	IS(400, cuMipmappedArrayDestroy, (CUarray), level);
	IS(0, cuMipmappedArrayDestroy, (CUarray), m);
	d.flags = 0x40; /* sparse */
	IS(801, cuArray3DCreate_v2, (CUarray *, void *), &m, &d);
}

/* ---- textures ---- */
struct resource {
	int type;
	union {
		CUarray array;
		struct {
			CUdeviceptr p;
			int format;
			unsigned channels;
			size_t n;
		} linear;
		int reserved[32];
	} res;
	unsigned flags;
};

static void textures(void)
{
	struct desc d = {16, 16, FLOAT, 1};
	struct resource r = {0}, got;
	char tex[104] = {0}, view[112] = {0};
	CUarray a = NULL;
	CUtexObject t = 0, s = 0;
	CUdeviceptr mem = device_memory(4096);
	IS(0, cuArrayCreate_v2, (CUarray *, void *), &a, &d);
	r.res.array = a;
	IS(0, cuTexObjectCreate, (CUtexObject *, void *, void *, void *), &t, &r, tex, view);
	IS(0, cuTexObjectGetResourceDesc, (void *, CUtexObject), &got, t);
	CHECK(got.res.array == a);
	IS(0, cuTexObjectGetResourceViewDesc, (void *, CUtexObject), view, t);
	IS(0, cuSurfObjectCreate, (CUtexObject *, void *), &s, &r);
	IS(INVALID, cuTexObjectDestroy, (CUtexObject), s);
	IS(0, cuSurfObjectDestroy, (CUtexObject), s);
	IS(0, cuTexObjectDestroy, (CUtexObject), t);
	IS(INVALID, cuTexObjectDestroy, (CUtexObject), t);
	r = (struct resource){.type = 2, .res.linear = {mem, FLOAT, 4, 4096}};
	IS(0, cuTexObjectCreate, (CUtexObject *, void *, void *, void *), &t, &r, tex, NULL);
	IS(INVALID, cuTexObjectCreate, (CUtexObject *, void *, void *, void *), &t, &r, tex, view);
	r.res.linear.n = 1 << 20;
	IS(INVALID, cuTexObjectCreate, (CUtexObject *, void *, void *, void *), &t, &r, tex, NULL);
	CUmodule m = NULL;
	void *ref = NULL, *again = NULL;
	int format, channels;
	IS(0, cuModuleLoadData, (CUmodule *, const void *), &m,
	   ".version 3.0\n.target sm_30\n.global .texref pic;\n.global .surfref out;\n");
	IS(0, cuModuleGetTexRef, (void **, CUmodule, const char *), &ref, m, "pic");
	IS(0, cuModuleGetTexRef, (void **, CUmodule, const char *), &again, m, "pic");
	CHECK(ref && ref == again);
	IS(500, cuModuleGetTexRef, (void **, CUmodule, const char *), &again, m, "pi");
	IS(500, cuModuleGetTexRef, (void **, CUmodule, const char *), &again, m, "out");
	IS(0, cuModuleGetSurfRef, (void **, CUmodule, const char *), &again, m, "out");
	IS(0, cuTexRefSetArray, (void *, CUarray, unsigned), ref, a, 1);
	IS(0, cuTexRefGetFormat, (int *, int *, void *), &format, &channels, ref);
	CHECK(format == FLOAT && channels == 1);
	IS(400, cuParamSetTexRef, (CUfunction, int, void *), NULL, -1, ref);
	IS(INVALID, cuTexRefSetFilterMode, (void *, int), ref, 7);
	IS(INVALID, cuTexRefDestroy, (void *), ref);
	IS(0, cuModuleUnload, (CUmodule), m);
	IS(0, cuArrayDestroy, (CUarray), a);
	IS(0, cuMemFree_v2, (CUdeviceptr), mem);
}

int main(void)
{
	open_context();
	plain();
	first_versions();
	arrays_1d();
	arrays_boxes();
	mipmaps();
	textures();
	return failures != 0;
}
