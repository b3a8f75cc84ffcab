/* The lane loops for any processor. */
#include "sim/gpu/ptx/ptx.h"

#ifndef __clang__
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif
#define LANES_TABLE ptx_lanes_base
#include "sim/gpu/ptx/lanes.h"
