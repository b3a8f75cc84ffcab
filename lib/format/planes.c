/* gcc vectorizes these loops only at -O3, which saves 8 ns per event. */
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

/* Whether all n bytes are equal, as in most planes of device columns. */
static bool even(const uint8_t *plane, uint32_t n)
{
	return n < 2 || !memcmp(plane, plane + 1, n - 1);
}

/* Joins all planes in one pass over `out`. */
static void join(uint64_t *restrict out, const uint8_t *const plane[8], const uint32_t shift[8],
		 uint32_t planes, uint64_t rest, uint32_t n)
{
	const uint8_t *restrict a = plane[0], *restrict b = plane[1], *restrict c = plane[2];
	const uint32_t s = shift[0], t = shift[1], u = shift[2];

	switch (planes) {
	case 0:
		for (uint32_t i = 0; i < n; i++)
			out[i] = rest;
		return;
	case 1:
		for (uint32_t i = 0; i < n; i++)
			out[i] = rest | (uint64_t)a[i] << s;
		return;
	case 2:
		for (uint32_t i = 0; i < n; i++)
			out[i] = rest | (uint64_t)a[i] << s | (uint64_t)b[i] << t;
		return;
	default:
		for (uint32_t i = 0; i < n; i++)
			out[i] = rest | (uint64_t)a[i] << s | (uint64_t)b[i] << t |
				 (uint64_t)c[i] << u;
	}
	for (uint32_t p = 3; p < planes; p++)
		for (uint32_t i = 0; i < n; i++)
			out[i] |= (uint64_t)plane[p][i] << shift[p];
}

/* The first value of a column of distances is a whole value; after it, the high planes are all
 * equal. */
bool tft_planes_join_u64(uint64_t *out, const uint8_t *in, uint32_t n, uint32_t planes,
			 uint64_t *same)
{
	const uint8_t *plane[8] = {in, in, in};
	uint32_t shift[8] = {0}, k = 0;
	uint64_t rest = 0, first = tft_plane_get(in, n, planes, 0);

	for (uint32_t p = 0; p < planes; p++) {
		const uint8_t *x = in + (size_t)p * n;
		if (even(x + 1, n - 1)) {
			rest |= (uint64_t)x[n - 1] << 8 * p;
		} else {
			plane[k] = x;
			shift[k++] = 8 * p;
		}
	}
	*same = rest;
	if (!k && first == rest)
		return false;
	join(out, plane, shift, k, rest, n);
	out[0] = first;
	return true;
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
