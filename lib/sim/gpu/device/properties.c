/* Devices: count, names, attributes, peers. */
#include "sim/gpu/device/context.h"

#include <stdio.h>
#include <string.h>

static CUresult count(struct sim_call *c, int *n)
{
	(void)c;
	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	*n = sim_cfg.devices;
	return CUDA_SUCCESS;
}

static CUresult get(struct sim_call *c, CUdevice *d, int i)
{
	(void)c;
	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_device(i))
		return CUDA_ERROR_INVALID_DEVICE;
	*d = i;
	return CUDA_SUCCESS;
}

static CUresult name(struct sim_call *c, char *s, int n, CUdevice d)
{
	(void)c;
	if (!s || n < 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(s, (size_t)n, "Simulated GPU");
	return CUDA_SUCCESS;
}

static CUresult total(struct sim_call *c, size_t *n, CUdevice d)
{
	(void)c;
	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*n = sim_cfg.total_memory;
	return CUDA_SUCCESS;
}

static CUresult capability(struct sim_call *c, int *major, int *minor, CUdevice d)
{
	(void)c;
	if (!major || !minor)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*major = sim_cfg.cc_major;
	*minor = sim_cfg.cc_minor;
	return CUDA_SUCCESS;
}

static CUresult uuid(struct sim_call *c, CUuuid *u, CUdevice d)
{
	(void)c;
	if (!u)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	memcpy(u->bytes, "simulated-gpu-00", 16);
	u->bytes[15] = (char)('0' + d);
	return CUDA_SUCCESS;
}

static CUresult pci_id(struct sim_call *c, char *s, int n, CUdevice d)
{
	(void)c;
	if (!s || n < 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(s, (size_t)n, "0000:%02x:00.0", d + 1);
	return CUDA_SUCCESS;
}

static CUresult by_pci_id(struct sim_call *c, CUdevice *d, const char *s)
{
	(void)c;
	unsigned domain, bus;
	if (!s || sscanf(s, "%x:%x", &domain, &bus) != 2 || !sim_is_device((int)bus - 1))
		return CUDA_ERROR_INVALID_DEVICE;
	*d = (int)bus - 1;
	return CUDA_SUCCESS;
}

static CUresult can_peer(struct sim_call *c, int *v, CUdevice a, CUdevice b)
{
	(void)c;
	if (!v)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_device(a) || !sim_is_device(b))
		return CUDA_ERROR_INVALID_DEVICE;
	*v = a != b;
	return CUDA_SUCCESS;
}

/* Access, but no atomic operations, across the link. */
static CUresult peer_attribute(struct sim_call *c, int *v, int what, CUdevice a, CUdevice b)
{
	enum { RANK = 1, ACCESS = 2, ARRAYS = 4, LAST = 5 };
	CUresult r = can_peer(c, v, a, b);
	if (r)
		return r;
	if (a == b)
		return CUDA_ERROR_INVALID_DEVICE;
	if (what < RANK || what > LAST)
		return CUDA_ERROR_INVALID_VALUE;
	*v = what == ACCESS || what == ARRAYS;
	return CUDA_SUCCESS;
}

static CUresult atomics(unsigned *out, const int *operations, unsigned n)
{
	enum { LAST = 12 };
	if (!out || !operations || !n)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n; i++)
		if (operations[i] < 0 || operations[i] > LAST)
			return CUDA_ERROR_INVALID_VALUE;
	memset(out, 0, n * sizeof(*out));
	return CUDA_SUCCESS;
}

static CUresult host_atomics(struct sim_call *c, unsigned *out, const int *operations, unsigned n,
			     CUdevice d)
{
	(void)c;
	return sim_is_device(d) ? atomics(out, operations, n) : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult peer_atomics(struct sim_call *c, unsigned *out, const int *operations, unsigned n,
			     CUdevice a, CUdevice b)
{
	(void)c;
	return sim_is_device(a) && sim_is_device(b) && a != b ? atomics(out, operations, n)
							      : CUDA_ERROR_INVALID_DEVICE;
}

/* The largest width in elements of a texture over plain memory, for 2^28 texels of 4 bytes. */
static CUresult linear_texture(struct sim_call *c, size_t *out, int format, unsigned channels,
			       CUdevice d)
{
	(void)c;
	unsigned bytes = sim_format_bytes(format) * channels;
	if (!out || !bytes || (channels != 1 && channels != 2 && channels != 4))
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = ((size_t)4 << 28) / (bytes > 4 ? bytes : 4);
	return CUDA_SUCCESS;
}

static CUresult flush_writes(struct sim_call *c, int target, int scope)
{
	enum { CURRENT_DEVICE = 0, TO_OWNER = 100, TO_ALL = 200 };
	(void)c;
	return target == CURRENT_DEVICE && (scope == TO_OWNER || scope == TO_ALL)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

static CUresult properties(struct sim_call *c, CUdevprop *p, CUdevice d)
{
	(void)c;
	if (!sim_is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*p = (CUdevprop){1024,
			 {1024, 1024, 64},
			 {2147483647, 65535, 65535},
			 49152,
			 65536,
			 32,
			 2147483647,
			 65536,
			 1410000,
			 512};
	return CUDA_SUCCESS;
}

/* Values of CUdevice_attribute; missing ones are 0. Limits of compute capability 8.0. */
static const struct {
	int attribute, value;
} attributes[] = {
	{1, 1024}, /* threads per block */
	{2, 1024}, /* block x, y, z */
	{3, 1024},
	{4, 64},
	{5, 2147483647}, /* grid x, y, z */
	{6, 65535},
	{7, 65535},
	{8, 49152},	  /* shared memory per block */
	{9, 65536},	  /* constant memory */
	{10, 32},	  /* warp */
	{11, 2147483647}, /* pitch */
	{12, 65536},	  /* registers per block */
	{13, 1410000},	  /* clock, kHz */
	{14, 512},	  /* texture alignment */
	{15, 1},	  /* copies overlap */
	{16, SIM_MULTIPROCESSORS},
	{19, 1}, /* maps host memory */
	{21, 131072},
	{22, 131072},
	{23, 65536},
	{24, 16384},
	{25, 16384},
	{26, 16384},
	{31, 1},	/* concurrent kernels */
	{36, 1215000},	/* memory clock, kHz */
	{37, 5120},	/* memory bus, bits */
	{38, 41943040}, /* L2 */
	{39, 2048},	/* threads per multiprocessor */
	{40, 2},	/* copy engines, one per direction */
	{41, 1},	/* unified addressing */
	{78, 1},	/* stream priorities */
	{79, 1},
	{80, 1},      /* L1 caching */
	{81, 167936}, /* shared memory per multiprocessor */
	{82, 65536},  /* registers per multiprocessor */
	{83, 1},      /* managed memory */
	{87, 32},     /* single to double speed */
	{89, 1},      /* concurrent managed access */
	{91, 1},      /* host pointer usable for registered memory */
	{95, 1},      /* cooperative launch */
	{97, 166912}, /* opt-in shared memory per block */
	{106, 32},    /* blocks per multiprocessor */
	{99, 1},      /* pageable memory can be registered */
	{102, 1},     /* virtual memory */
	{103, 1},     /* POSIX handles of it */
	{111, 1024},  /* reserved shared memory per block */
	{115, 1},     /* memory pools */
	{119, 1},     /* POSIX handles of pools */
	{122, 1},
	{123, 1}, /* waiting on values */
	{125, 1}, /* IPC events */
	{141, 1},
	{145, 1}, /* virtual memory of the host */
};

static CUresult attribute(struct sim_call *c, int *v, int what, CUdevice d)
{
	(void)c;
	if (!v || what < 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*v = 0;
	if (what == 33)
		*v = d + 1; /* PCI bus */
	else if (what == 75)
		*v = sim_cfg.cc_major;
	else if (what == 76)
		*v = sim_cfg.cc_minor;
	else if (what == 127)
		*v = sim_cfg.cc_major >= 9; /* tensor maps */
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].attribute == what)
			*v = attributes[i].value;
	return CUDA_SUCCESS;
}

static CUresult luid(struct sim_call *c, char *l, unsigned *mask, CUdevice d)
{
	(void)c;
	(void)l;
	(void)mask;
	(void)d;
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult affinity(struct sim_call *c, int *v, int type, CUdevice d)
{
	(void)c;
	enum { SM_COUNT = 0 };
	if (!v)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_is_device(d))
		return CUDA_ERROR_INVALID_DEVICE;
	*v = type == SM_COUNT;
	return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetCount, SIM_NEED_INIT, count, (int *n), (n))
SIM_API(cuDeviceGet, SIM_NEED_INIT, get, (CUdevice * d, int i), (d, i))
SIM_API(cuDeviceGetName, SIM_NEED_INIT, name, (char *s, int n, CUdevice d), (s, n, d))
SIM_API(cuDeviceTotalMem_v2, SIM_NEED_INIT, total, (size_t * n, CUdevice d), (n, d))
SIM_API(cuDeviceComputeCapability, SIM_NEED_INIT, capability, (int *major, int *minor, CUdevice d),
	(major, minor, d))
SIM_API(cuDeviceGetUuid, SIM_NEED_INIT, uuid, (CUuuid * u, CUdevice d), (u, d))
SIM_API(cuDeviceGetUuid_v2, SIM_NEED_INIT, uuid, (CUuuid * u, CUdevice d), (u, d))
SIM_API(cuDeviceGetLuid, SIM_NEED_INIT, luid, (char *l, unsigned *mask, CUdevice d), (l, mask, d))
SIM_API(cuDeviceGetPCIBusId, SIM_NEED_INIT, pci_id, (char *s, int n, CUdevice d), (s, n, d))
SIM_API(cuDeviceGetByPCIBusId, SIM_NEED_INIT, by_pci_id, (CUdevice * d, const char *s), (d, s))
SIM_API(cuDeviceCanAccessPeer, SIM_NEED_INIT, can_peer, (int *v, CUdevice a, CUdevice b), (v, a, b))
SIM_API(cuDeviceGetP2PAttribute, SIM_NEED_INIT, peer_attribute,
	(int *v, int what, CUdevice a, CUdevice b), (v, what, a, b))
SIM_API(cuDeviceGetProperties, SIM_NEED_INIT, properties, (CUdevprop * p, CUdevice d), (p, d))
SIM_API(cuDeviceGetAttribute, SIM_NEED_INIT, attribute, (int *v, int what, CUdevice d),
	(v, what, d))
SIM_API(cuDeviceGetExecAffinitySupport, SIM_NEED_INIT, affinity, (int *v, int type, CUdevice d),
	(v, type, d))
SIM_API(cuDeviceGetHostAtomicCapabilities, SIM_NEED_INIT, host_atomics,
	(unsigned *out, const int *operations, unsigned n, CUdevice d), (out, operations, n, d))
SIM_API(cuDeviceGetP2PAtomicCapabilities, SIM_NEED_INIT, peer_atomics,
	(unsigned *out, const int *operations, unsigned n, CUdevice a, CUdevice b),
	(out, operations, n, a, b))
SIM_API(cuDeviceGetTexture1DLinearMaxWidth, SIM_NEED_INIT, linear_texture,
	(size_t * out, int format, unsigned channels, CUdevice d), (out, format, channels, d))
SIM_API(cuFlushGPUDirectRDMAWrites, SIM_NEED_CTX, flush_writes, (int target, int scope),
	(target, scope))
