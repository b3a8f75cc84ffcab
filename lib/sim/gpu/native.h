/*
 * Kernels whose work is done by a function of another library, and which wait for those of other
 * ranks (engine/rendezvous.c). The simulated NCCL gets this table from cuGetExportTable.
 */
#ifndef TFH_SIM_GPU_NATIVE_H
#define TFH_SIM_GPU_NATIVE_H

#include "sim/gpu/sim.h"

enum { SIM_NATIVE_VERSION = 1 };
/* The bytes of the name under which cuGetExportTable has the table. */
#define SIM_NATIVE_UUID "simgpu-native-01"

struct sim_native_table {
	size_t size;
	int version;
	const struct sim_nccl_config *config;
	/* A group is zeroed memory of this size, shared by all ranks. */
	size_t group_bytes;
	/*
	 * f, whose first parameters are (u64 group's address, u32 rank, u32 ranks, u64 ns), becomes
	 * a kernel of the group. body gets its packed parameters twice: with over false when the
	 * kernel starts, and with over true when all ranks' kernels have started, which is not
	 * before their bodies have returned from the first call. It may not call the driver.
	 */
	void (*set_body)(CUfunction f, sim_body_fn body);
	/* Kernels of the group end at once, now and later, without the second call. */
	void (*abort)(void *group);
	CUresult (*injected)(const char *name);
};
extern const struct sim_native_table sim_native_table;

#endif
