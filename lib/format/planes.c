/* gcc vectorizes these loops only at -O3: 8 ns less per event. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

#include "format/planes.h"

#include <math.h>
#include <string.h>

void tft_planes_u16(uint8_t *restrict out, const uint16_t *restrict v, uint32_t n, uint32_t planes)
{
	for (uint32_t p = 0; p < planes; p++, out += n)
		for (uint32_t i = 0; i < n; i++)
			out[i] = (uint8_t)(v[i] >> 8 * p);
}

void tft_planes_u32(uint8_t *restrict out, const uint32_t *restrict v, uint32_t n, uint32_t planes)
{
	for (uint32_t p = 0; p < planes; p++, out += n)
		for (uint32_t i = 0; i < n; i++)
			out[i] = (uint8_t)(v[i] >> 8 * p);
}

void tft_planes_u64(uint8_t *restrict out, const uint64_t *restrict v, uint32_t n, uint32_t planes)
{
	for (uint32_t p = 0; p < planes; p++, out += n)
		for (uint32_t i = 0; i < n; i++)
			out[i] = (uint8_t)(v[i] >> 8 * p);
}

/* The same byte n times: most planes of a device's columns. */
static bool even(const uint8_t *plane, uint32_t n)
{
	return !memcmp(plane, plane + 1, n - 1);
}

bool tft_planes_join_u64(uint64_t *restrict out, const uint8_t *restrict in, uint32_t n,
			 uint32_t planes, uint64_t *same)
{
	bool begun = false;

	*same = 0;
	for (uint32_t p = 0; p < planes; p++)
		if (even(in + (size_t)p * n, n))
			*same |= (uint64_t)in[(size_t)p * n] << 8 * p;
	for (uint32_t p = 0; p < planes; p++, in += n) {
		if (even(in, n))
			continue;
		if (begun)
			for (uint32_t i = 0; i < n; i++)
				out[i] |= (uint64_t)in[i] << 8 * p;
		else
			for (uint32_t i = 0; i < n; i++)
				out[i] = *same | (uint64_t)in[i] << 8 * p;
		begun = true;
	}
	return begun;
}

void tft_planes_some_u32(uint32_t *restrict out, const uint8_t *restrict in, uint32_t count,
			 uint32_t planes, uint32_t n)
{
	const size_t k = count;

	switch (planes) {
	case 1:
		for (uint32_t i = 0; i < n; i++)
			out[i] = in[i];
		break;
	case 2:
		for (uint32_t i = 0; i < n; i++)
			out[i] = in[i] | (uint32_t)in[k + i] << 8;
		break;
	case 3:
		for (uint32_t i = 0; i < n; i++)
			out[i] = in[i] | (uint32_t)in[k + i] << 8 | (uint32_t)in[2 * k + i] << 16;
		break;
	default:
		for (uint32_t i = 0; i < n; i++)
			out[i] = in[i] | (uint32_t)in[k + i] << 8 | (uint32_t)in[2 * k + i] << 16 |
				 (uint32_t)in[3 * k + i] << 24;
		break;
	}
}

static uint32_t allowed(uint32_t n)
{
	return n / 1024;
}

uint32_t tft_planes_width_u32(const uint32_t *v, uint32_t n, uint32_t max)
{
	uint32_t over1 = 0, over2 = 0, over3 = 0;

	for (uint32_t i = 0; i < n; i++) {
		over1 += v[i] >= 0xffu;
		over2 += v[i] >= 0xffffu;
		over3 += v[i] >= 0xffffffu;
	}
	if (over1 <= allowed(n))
		return 1;
	if (over2 <= allowed(n) || max < 3)
		return 2;
	return over3 <= allowed(n) || max < 4 ? 3 : 4;
}

uint32_t tft_planes_width_u64(const uint64_t *v, uint32_t n)
{
	for (uint32_t planes = 1; planes < 8; planes++) {
		uint64_t limit = tft_plane_escape(planes);
		uint32_t over = 0;
		for (uint32_t i = 0; i < n; i++)
			over += v[i] >= limit;
		if (over <= allowed(n))
			return planes;
	}
	return 8;
}

double tft_planes_entropy(const uint8_t *bytes, uint32_t n)
{
	uint32_t count[256] = {0};
	double bits = 0;

	for (uint32_t i = 0; i < n; i++)
		count[bytes[i]]++;
	for (uint32_t i = 0; i < 256; i++)
		if (count[i])
			bits -= count[i] * log2((double)count[i] / n);
	return bits;
}
