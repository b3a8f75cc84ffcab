/* Python's strings. */
#ifndef TFH_SAMPLING_PY_TEXT_H
#define TFH_SAMPLING_PY_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "sampling/offsets.h"

/* The characters of a str, in readable memory. */
struct tfh_py_text {
	const uint8_t *data;
	uint64_t hash;	 /* of the contents */
	uint32_t length; /* characters */
	uint8_t width;	 /* bytes per character */
};

/* What a str's header shows: the length in bytes of the contents after it, and its own size in
 * *header. Returns false if it is not a str that can be read here (another kind of string, or more
 * than TFH_PY_TEXT_MOST bytes). */
#define TFH_PY_TEXT_MOST 16384u
bool tfh_py_text_extent(const struct tfh_py_layout *at, const uint8_t *object, uint32_t *header,
			uint32_t *bytes);

/* Reads a str of which `size` bytes are available in memory that does not change meanwhile. A copy
 * of another thread's or process's memory may differ from the header that was read before. Returns
 * false if it is not such a str, or is longer. */
bool tfh_py_text(const struct tfh_py_layout *at, const uint8_t *object, uint32_t size,
		 struct tfh_py_text *out);

/* Converts to UTF-8, cut at a character boundary if it does not fit. Surrogates, which a file name
 * may contain, are converted back to bytes as by CPython's "surrogateescape". Returns the number of
 * bytes written, without a NUL. */
uint32_t tfh_py_utf8(const struct tfh_py_text *text, char *out, uint32_t size);

#endif
