/* A driver of CUDA 11.8: one cuGetProcAddress, and no name that came later (the Makefile leaves
 * them out of the exported ones). */
#include "sim/gpu/entry/variant.h"

int sim_variant_version = 11080;
