/*
 * Weak definitions of every driver function that no other file implements: they return "not
 * supported" and note it once in the truth log. cuGetProcAddress uses the same table, so it returns
 * exactly the exported address of a variant.
 */
#include "sim/gpu/entry/stubs.h"
#include "sim/gpu/sim.h"

static int unsupported(const char *name, bool *said)
{
	if (sim_state == SIM_EXITED)
		return CUDA_ERROR_DEINITIALIZED;
	if (sim_state == SIM_FORKED)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!__atomic_exchange_n(said, true, __ATOMIC_RELAXED))
		sim_truth_note("not supported: %s", name);
	return CUDA_ERROR_NOT_SUPPORTED;
}

#define SIM_ALIAS(symbol, base, version, pt)
#define SIM_EXPORT(symbol, base, version, pt)                                                      \
	__attribute__((weak, visibility("default"))) int symbol(void);                             \
	__attribute__((weak, visibility("default"))) int symbol(void)                              \
	{                                                                                          \
		static bool said;                                                                  \
		return unsupported(#symbol, &said);                                                \
	}
#include "sim/gpu/entry/exports.def"
#undef SIM_EXPORT
#undef SIM_ALIAS

#define SIM_EXPORT(symbol, base, version, pt) {#symbol, #base, version, pt, (void *)symbol},
#define SIM_ALIAS SIM_EXPORT
const struct sim_proc sim_procs[] = {
#include "sim/gpu/entry/exports.def"
};
const int sim_nprocs = sizeof(sim_procs) / sizeof(sim_procs[0]);
