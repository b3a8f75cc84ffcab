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

static inline __attribute__((always_inline)) bool
sum_up(const int64_t *restrict t0, const int64_t *restrict t1, uint32_t n, struct tfh_row_sum *out)
{
	int64_t ns = t1[0] - t0[0], longest = ns, apart = 0, overlap = ns <= 0;

	for (uint32_t i = 1; i < n; i++) {
		int64_t took = t1[i] - t0[i], since = t1[i] - t1[i - 1];
		overlap |= (took <= 0) | (t0[i] < t1[i - 1]);
		ns += took;
		longest = took > longest ? took : longest;
		apart = since > apart ? since : apart;
	}
	if (overlap || t1[n - 1] - t0[0] >= 1000000000)
		return false;
	*out = (struct tfh_row_sum){.t0 = t0[0],
				    .t1 = t1[n - 1],
				    .first = t1[0],
				    .ns = (uint32_t)ns,
				    .apart = (uint32_t)apart,
				    .longest = (uint32_t)longest};
	return true;
}

#ifdef __x86_64__
/* The same with wider instructions. The operations on doubles are the same, and so are the
 * results. */
static __attribute__((target("avx2"))) bool convert_avx2(const struct tfh_tick_line *l,
							 const uint64_t *restrict ticks, uint32_t n,
							 int64_t *restrict ns)
{
	return convert(l, ticks, n, ns);
}

static __attribute__((target("avx2"))) bool sum_up_avx2(const int64_t *restrict t0,
							const int64_t *restrict t1, uint32_t n,
							struct tfh_row_sum *out)
{
	return sum_up(t0, t1, n, out);
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

bool tfh_row_sum(const int64_t *restrict t0, const int64_t *restrict t1, uint32_t n,
		 struct tfh_row_sum *out)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		return sum_up_avx2(t0, t1, n, out);
#endif
	return sum_up(t0, t1, n, out);
}
