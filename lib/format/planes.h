/* Byte planes: plane p of an array holds byte p (little endian) of every element. */
#ifndef TFH_FORMAT_PLANES_H
#define TFH_FORMAT_PLANES_H

#include <stdbool.h>
#include <stdint.h>

/* Writes the low `planes` bytes of n values, plane after plane; `out` has planes * n bytes. */
void tft_planes_u16(uint8_t *out, const uint16_t *v, uint32_t n, uint32_t planes);
void tft_planes_u32(uint8_t *out, const uint32_t *v, uint32_t n, uint32_t planes);
void tft_planes_u64(uint8_t *out, const uint64_t *v, uint32_t n, uint32_t planes);

/* Reads n values of 1 to 4 planes, starting at `in`; each plane holds `count` values. */
void tft_planes_some_u32(uint32_t *out, const uint8_t *in, uint32_t count, uint32_t planes,
			 uint32_t n);

/* One value of a section with `planes` planes of n elements. */
static inline uint64_t tft_plane_get(const uint8_t *data, uint32_t n, uint32_t planes, uint32_t i)
{
	uint64_t v = 0;

	for (uint32_t p = 0; p < planes; p++)
		v |= (uint64_t)data[(uint64_t)p * n + i] << 8 * p;
	return v;
}

/* Reads n > 0 values of at most 8 planes. False: all are `*same`, and nothing was written. */
bool tft_planes_join_u64(uint64_t *out, const uint8_t *in, uint32_t n, uint32_t planes,
			 uint64_t *same);

/*
 * Number of planes (1..max) that hold all but about one in 1,024 of the values. The rest become
 * escapes, written as the largest value of that width and listed separately.
 */
uint32_t tft_planes_width_u32(const uint32_t *v, uint32_t n, uint32_t max);
uint32_t tft_planes_width_u64(const uint64_t *v, uint32_t n);

/* The largest value that `planes` bytes hold, which is the escape. */
static inline uint64_t tft_plane_escape(uint32_t planes)
{
	return planes >= 8 ? UINT64_MAX : (1ull << 8 * planes) - 1;
}

/* Order-0 entropy in bits of n bytes: sum over values of -log2(share). */
double tft_planes_entropy(const uint8_t *bytes, uint32_t n);

#endif
