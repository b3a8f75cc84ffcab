#include "format/sample_loops.h"

#include <string.h>

/* Bytes of three numbers. */
#define NUMBER 10u
#define LOOP (3 * NUMBER)
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
		uint32_t bytes = put(2ull * loop[i].depth + !loop[i].sure, one);

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

uint32_t tft_loops_unpack(const uint8_t *from, uint32_t bytes, struct tft_loop out[TFT_LOOPS])
{
	uint32_t n = 0, at = 0;
	uint64_t depth;

	for (; n < TFT_LOOPS && get(from, bytes, &at, 2 * DEPTH_MOST + 1, &depth) && depth > 1 &&
	       get(from, bytes, &at, COUNT_MOST, &out[n].done) &&
	       get(from, bytes, &at, COUNT_MOST, &out[n].left);
	     n++) {
		out[n].depth = (uint32_t)depth / 2;
		out[n].sure = depth % 2 == 0;
	}
	return n;
}
