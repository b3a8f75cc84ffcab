/* Python's strings. */
#ifndef TFH_LOOK_PY_TEXT_H
#define TFH_LOOK_PY_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "look/offsets.h"

/* The characters of a str, in memory that can be read. */
struct tfh_py_text {
	const uint8_t *data;
	uint64_t hash;	 /* of the contents */
	uint32_t length; /* characters */
	uint8_t width;	 /* bytes of each */
};

/* What a str's header tells: its length in bytes behind the header, whose size comes to *header. False: it is no str
 * that can be read here (strings of another make, or over TFH_PY_TEXT_MOST bytes). */
#define TFH_PY_TEXT_MOST 16384u
bool tfh_py_text_extent(const struct tfh_py_layout *at, const uint8_t *object, uint32_t *header,
			uint32_t *bytes);

/* A str of which `size` bytes are there, in a place that does not change meanwhile: a copy of another thread's or process's
 * memory may hold something else than its header told when it was read before. False: it is no such str, or is longer. */
bool tfh_py_text(const struct tfh_py_layout *at, const uint8_t *object, uint32_t size,
		 struct tfh_py_text *out);

/* As UTF-8, cut at a character where it does not fit; surrogates, which a file's name may have, as CPython's
 * "surrogateescape" had them. Returns the bytes written, no NUL. */
uint32_t tfh_py_utf8(const struct tfh_py_text *text, char *out, uint32_t size);

#endif
