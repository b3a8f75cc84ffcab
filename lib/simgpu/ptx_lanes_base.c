/* The lane loops for any processor. */
#include "simgpu/ptx.h"

#ifndef __clang__
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif
#define LANES_TABLE ptx_lanes_base
#include "simgpu/ptx_lanes.h"
