/* The lane loops for x86 processors with AVX2 and FMA. */
#include "sim/gpu/ptx/ptx.h"

#ifdef __x86_64__
#include <math.h>
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#endif
#define LANES_TABLE ptx_lanes_avx2
#include "sim/gpu/ptx/lanes.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
