#include "format/sample_loops.h"

#include <string.h>

/* Bytes of five numbers. */
#define NUMBER 10u
#define LOOP (5 * NUMBER)
#define COUNTS_MOST 9u
/* More iterations than a loop can have had. */
#define COUNT_MOST (1ull << 48)
#define DEPTH_MOST 65536u

static uint32_t put(uint64_t v, uint8_t *out)
{
	uint32_t n = 0;

	for (; v >= 128; v >>= 7)
		out[n++] = (uint8_t)(v | 128);
	out[n++] = (uint8_t)v;
	return n;
}

uint32_t tft_loops_pack(const struct tft_loop *loop, uint32_t n, uint8_t out[TFT_EXT_BYTES])
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint8_t one[LOOP];
		uint32_t bytes = 0;

		if (loop[i].count) {
			bytes = put(0, one);
			bytes += put(loop[i].count, one + bytes);
		}
		bytes += put(2ull * loop[i].depth + !loop[i].sure, one + bytes);
		bytes += put(loop[i].done, one + bytes);
		bytes += put(loop[i].left, one + bytes);
		if (used + bytes > TFT_EXT_BYTES)
			break;
		memcpy(out + used, one, bytes);
		used += bytes;
	}
	return used;
}

/* Moves *at past a number. Returns false if it is cut off or too large. */
static bool get(const uint8_t *from, uint32_t bytes, uint32_t *at, uint64_t most, uint64_t *out)
{
	*out = 0;
	for (uint32_t i = 0; i < NUMBER - 1 && *at < bytes; i++) {
		uint8_t b = from[(*at)++];

		*out |= (uint64_t)(b & 127) << 7 * i;
		if (b < 128)
			return *out <= most;
	}
	return false;
}

static bool get_loop(const uint8_t *from, uint32_t bytes, uint32_t *at, struct tft_loop *out)
{
	uint64_t depth, count = 0;

	if (!get(from, bytes, at, 2 * DEPTH_MOST + 1, &depth))
		return false;
	if (!depth && (!get(from, bytes, at, COUNTS_MOST, &count) || !count ||
		       !get(from, bytes, at, 2 * DEPTH_MOST + 1, &depth)))
		return false;
	out->depth = (uint32_t)depth / 2;
	out->sure = depth % 2 == 0;
	out->count = (uint8_t)count;
	return out->depth && get(from, bytes, at, COUNT_MOST, &out->done) &&
	       get(from, bytes, at, COUNT_MOST, &out->left);
}

uint32_t tft_loops_unpack(const uint8_t *from, uint32_t bytes, struct tft_loop out[TFT_LOOPS])
{
	uint32_t n = 0, at = 0;

	while (n < TFT_LOOPS && get_loop(from, bytes, &at, &out[n]))
		n++;
	return n;
}
