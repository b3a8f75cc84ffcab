/* Arithmetic of reductions: in order of ranks, so that every rank gets the same bits. Half floats
 * are summed as floats and rounded once. */
#include "sim/nccl/sim_nccl.h"

#include <string.h>

const size_t sim_type_size[T_COUNT] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

#define COMBINE(red, a, b)                                                                         \
	((red) == R_PROD  ? (a) * (b)                                                              \
	 : (red) == R_MAX ? ((b) > (a) ? (b) : (a))                                                \
	 : (red) == R_MIN ? ((b) < (a) ? (b) : (a))                                                \
			  : (a) + (b))

/* W: unsigned of the same width for integers, so that overflow wraps. */
#define REDUCER(name, T, W)                                                                        \
	static void name(T *out, const T *const *in, int ranks, size_t n, enum sim_red red)        \
	{                                                                                          \
		memmove(out, in[0], n * sizeof(T));                                                \
		for (int r = 1; r < ranks; r++) {                                                  \
			const T *b = in[r];                                                        \
			if (red == R_SUM || red == R_AVG)                                          \
				for (size_t i = 0; i < n; i++)                                     \
					out[i] = (T)((W)out[i] + (W)b[i]);                         \
			else if (red == R_PROD)                                                    \
				for (size_t i = 0; i < n; i++)                                     \
					out[i] = (T)((W)out[i] * (W)b[i]);                         \
			else                                                                       \
				for (size_t i = 0; i < n; i++)                                     \
					out[i] = COMBINE(red, out[i], b[i]);                       \
		}                                                                                  \
		for (size_t i = 0; red == R_AVG && i < n; i++)                                     \
			out[i] = (T)(out[i] / (T)ranks);                                           \
	}

REDUCER(reduce_i8, int8_t, unsigned)
REDUCER(reduce_u8, uint8_t, unsigned)
REDUCER(reduce_i32, int32_t, uint32_t)
REDUCER(reduce_u32, uint32_t, uint32_t)
REDUCER(reduce_i64, int64_t, uint64_t)
REDUCER(reduce_u64, uint64_t, uint64_t)
REDUCER(reduce_f32, float, float)
REDUCER(reduce_f64, double, double)

static float bits_to_float(uint32_t u)
{
	float f;
	memcpy(&f, &u, 4);
	return f;
}

static uint32_t float_to_bits(float f)
{
	uint32_t u;
	memcpy(&u, &f, 4);
	return u;
}

static float from_bf16(uint16_t h)
{
	return bits_to_float((uint32_t)h << 16);
}

static uint16_t to_bf16(float f)
{
	uint32_t u = float_to_bits(f);
	if (f != f)
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static float from_f16(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;
	if (e == 31)
		return bits_to_float(sign | 0x7f800000 | m << 13);
	if (e)
		return bits_to_float(sign | (e + 112) << 23 | m << 13);
	float f = (float)m * 0x1p-24f;
	return sign ? -f : f;
}

static uint16_t to_f16(float f)
{
	uint32_t u = float_to_bits(f), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
	if (a > 0x7f800000)
		return (uint16_t)(sign | 0x7e00);
	if (a >= 0x477ff000) /* rounds to 65520 or more */
		return (uint16_t)(sign | 0x7c00);
	if (a < 0x38800000) { /* subnormal: adding 0.5 leaves the rounded multiple of 2^-24 */
		float t = bits_to_float(a) + 0.5f;
		return (uint16_t)(sign | (float_to_bits(t) - 0x3f000000));
	}
	a += 0xfff + (a >> 13 & 1);
	return (uint16_t)(sign | (a - 0x38000000) >> 13);
}

static void reduce_half(uint16_t *out, const uint16_t *const *in, int ranks, size_t n,
			enum sim_red red, float (*from)(uint16_t), uint16_t (*to)(float))
{
	for (size_t i = 0; i < n; i++) {
		float a = from(in[0][i]);
		for (int r = 1; r < ranks; r++) {
			float b = from(in[r][i]);
			a = COMBINE(red, a, b);
		}
		out[i] = to(red == R_AVG ? a / (float)ranks : a);
	}
}

void sim_reduce(void *out, const void *const *in, int ranks, size_t n, enum sim_type type,
		enum sim_red red)
{
#define CASE(t, T, f)                                                                              \
	case t:                                                                                    \
		f(out, (const T *const *)in, ranks, n, red);                                       \
		break;
	switch (type) {
		CASE(T_I8, int8_t, reduce_i8)
		CASE(T_U8, uint8_t, reduce_u8)
		CASE(T_I32, int32_t, reduce_i32)
		CASE(T_U32, uint32_t, reduce_u32)
		CASE(T_I64, int64_t, reduce_i64)
		CASE(T_U64, uint64_t, reduce_u64)
		CASE(T_F32, float, reduce_f32)
		CASE(T_F64, double, reduce_f64)
	case T_F16:
		reduce_half(out, (const uint16_t *const *)in, ranks, n, red, from_f16, to_f16);
		break;
	case T_BF16:
		reduce_half(out, (const uint16_t *const *)in, ranks, n, red, from_bf16, to_bf16);
		break;
	default:
		break;
	}
}
