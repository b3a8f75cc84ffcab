/* A driver of CUDA 11.8: one cuGetProcAddress, and no later names (the Makefile does not export
 * them). */
#include "sim/gpu/entry/variant.h"

int sim_variant_version = 11080;
