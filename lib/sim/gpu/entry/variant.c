/* The standard driver; another object with strong definitions of the same symbols makes it a
 * variant. */
#include "sim/gpu/entry/variant.h"

__attribute__((weak)) int sim_variant_version = 13000;
__attribute__((weak)) const struct sim_proc sim_variant_procs[] = {{0}};
