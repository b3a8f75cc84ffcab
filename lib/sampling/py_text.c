#include "sampling/py_text.h"

#include <string.h>

#include "base/hash.h"

#define NOT_HASHED UINT64_MAX

/* The state's bits: two for interning, three for the width, one each for "compact" (the characters
 * follow the header) and ASCII. */
static unsigned width_of(uint32_t state)
{
	return state >> 2 & 7;
}

static uint32_t header_of(const struct tfh_py_layout *at, uint32_t state)
{
	return state >> 6 & 1 ? at->text_ascii : at->text_wide;
}

bool tfh_py_text_extent(const struct tfh_py_layout *at, const uint8_t *object, uint32_t *header,
			uint32_t *bytes)
{
	uint64_t length;
	uint32_t state;
	unsigned width;

	memcpy(&state, object + TFH_PY_TEXT_STATE, sizeof(state));
	memcpy(&length, object + TFH_PY_TEXT_LENGTH, sizeof(length));
	width = width_of(state);
	if (!(state >> 5 & 1) || (width != 1 && width != 2 && width != 4) ||
	    length > TFH_PY_TEXT_MOST / width)
		return false;
	*header = header_of(at, state);
	*bytes = (uint32_t)length * width;
	return true;
}

bool tfh_py_text(const struct tfh_py_layout *at, const uint8_t *object, uint32_t size,
		 struct tfh_py_text *out)
{
	uint32_t state, header, bytes;

	if (!tfh_py_text_extent(at, object, &header, &bytes) || header + bytes > size)
		return false;
	memcpy(&state, object + TFH_PY_TEXT_STATE, sizeof(state));
	memcpy(&out->hash, object + TFH_PY_TEXT_HASH, sizeof(out->hash));
	out->width = (uint8_t)width_of(state);
	out->length = bytes / out->width;
	out->data = object + header;
	if (out->hash == NOT_HASHED)
		out->hash = tfh_hash_bytes(out->data, bytes);
	return true;
}

static uint32_t character(const struct tfh_py_text *text, uint32_t i)
{
	uint16_t two;
	uint32_t four;

	if (text->width == 1)
		return text->data[i];
	if (text->width == 2) {
		memcpy(&two, text->data + 2ul * i, sizeof(two));
		return two;
	}
	memcpy(&four, text->data + 4ul * i, sizeof(four));
	return four;
}

/* Writes the bytes of a character to `out`. U+DC80 to U+DCFF stand for bytes that were not
 * UTF-8. */
static uint32_t encode(uint32_t c, uint8_t out[4])
{
	if (c < 0x80 || (c >= 0xdc80 && c <= 0xdcff)) {
		out[0] = (uint8_t)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (uint8_t)(0xc0 | c >> 6);
		out[1] = (uint8_t)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (uint8_t)(0xe0 | c >> 12);
		out[1] = (uint8_t)(0x80 | (c >> 6 & 63));
		out[2] = (uint8_t)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (uint8_t)(0xf0 | (c >> 18 & 7));
	out[1] = (uint8_t)(0x80 | (c >> 12 & 63));
	out[2] = (uint8_t)(0x80 | (c >> 6 & 63));
	out[3] = (uint8_t)(0x80 | (c & 63));
	return 4;
}

uint32_t tfh_py_utf8(const struct tfh_py_text *text, char *out, uint32_t size)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < text->length; i++) {
		uint8_t one[4];
		uint32_t n = encode(character(text, i), one);

		if (used + n > size)
			break;
		memcpy(out + used, one, n);
		used += n;
	}
	return used;
}
