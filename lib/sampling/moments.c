#include "sampling/moments.h"

uint64_t tfh_draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/*
 * -ln(u) for u in (0, 1), at most 8, in 2^-32 fixed point. ln(u) = ln(2) * log2(u), and log2 of a
 * mantissa 1 + m is m + 0.3436 m (1 - m) to within 0.9 %. A job's library has no libm.
 */
static uint64_t exponential(uint64_t *state)
{
	uint64_t u = tfh_draw(state) | 1;
	int zeros = __builtin_clzll(u);
	double m = (double)(u << zeros) / 9223372036854775808.0 - 1;
	double e = 0.6931472 * (zeros + 1 - (m + 0.3436 * m * (1 - m)));

	return (uint64_t)((e < 8 ? e : 8) * 4294967296.0);
}

uint64_t tfh_draw_wait(uint64_t *state, uint64_t mean_ns)
{
	return (uint64_t)((unsigned __int128)mean_ns * exponential(state) >> 32);
}
