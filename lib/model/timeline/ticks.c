/* gcc vectorizes these loops only at -O3. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

#include "model/timeline/ticks.h"

/* ns per tick. With a slower clock, the nanoseconds of a block do not fit an int32_t. */
#define SLOW_RATE 16.0

static inline __attribute__((always_inline)) bool convert(const struct tfh_tick_line *l,
							  const uint64_t *restrict ticks,
							  uint32_t n, int64_t *restrict ns)
{
	uint64_t other = 0;

	for (uint32_t i = 0; i < n; i++)
		other |= ticks[i] >> TFH_LINE_BITS ^ l->block;
	if (other || !(l->rate < SLOW_RATE))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		int32_t in_block = (int32_t)(ticks[i] & ((1u << TFH_LINE_BITS) - 1));
		ns[i] = l->ns + (int32_t)((double)in_block * l->rate);
	}
	return true;
}

#ifdef __x86_64__
/* The same with wider instructions. The operations on doubles are the same, and so are the results. */
static __attribute__((target("avx2"))) bool convert_avx2(const struct tfh_tick_line *l,
							 const uint64_t *restrict ticks, uint32_t n,
							 int64_t *restrict ns)
{
	return convert(l, ticks, n, ns);
}
#endif

bool tfh_ticks_ns(const struct tfh_tick_line *l, const uint64_t *restrict ticks, uint32_t n,
		  int64_t *restrict ns)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		return convert_avx2(l, ticks, n, ns);
#endif
	return convert(l, ticks, n, ns);
}
