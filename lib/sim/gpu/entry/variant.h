/* What a variant of the library (an older or a future driver) says differently; see variants/. */
#ifndef SIM_VARIANT_H
#define SIM_VARIANT_H

#include "sim/gpu/sim.h"
#include "sim/gpu/entry/stubs.h"

/* What cuDriverGetVersion says where no setting does. */
extern int sim_variant_version;
/* Names beyond exports.def; ends with an entry without a base. */
extern const struct sim_proc sim_variant_procs[];

/* Looks the own names up, at start (self_lookup.c). */
void sim_self_lookup(void);

#endif
