/* Differences of library variants (an older or a future driver); see variants/. */
#ifndef TFH_SIM_GPU_ENTRY_VARIANT_H
#define TFH_SIM_GPU_ENTRY_VARIANT_H

#include "sim/gpu/sim.h"
#include "sim/gpu/entry/stubs.h"

/* Result of cuDriverGetVersion if no setting gives one. */
extern int sim_variant_version;
/* Names beyond exports.def; ends with an entry without a base name. */
extern const struct sim_proc sim_variant_procs[];

/* Looks up the driver's own names at start (self_lookup.c). */
void sim_self_lookup(void);

#endif
