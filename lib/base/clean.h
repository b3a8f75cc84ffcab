/* Makes untrusted text safe for a terminal. Untrusted is any text that tfhook did not write itself:
 * names in traces, file names, arguments, variables. The result is one line without control
 * sequences, invisible characters or changes of direction.
 *
 * Control characters, invisible characters (zero width, bidi, tags, fillers) and bytes that are not
 * UTF-8 are written as escapes: "\n", "\x1b", "\u202e", "\xff". No function here allocates or
 * locks. */
#ifndef TFH_BASE_CLEAN_H
#define TFH_BASE_CLEAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length in bytes of the character at text, of which `left` bytes are readable; 0 if it is not
 * UTF-8 (Unicode 15, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF). `c`, if
 * not NULL, receives the character. */
size_t tfh_utf8(const char *text, size_t left, uint32_t *c);

/* Whether a character may be printed unescaped. */
bool tfh_shown(uint32_t c);

/* One character as printed, escaped if necessary. */
struct tfh_glyph {
	char text[12];
	uint8_t len, columns;
};

/* Converts the first character (or invalid byte) of text; `left` > 0. Returns the number of bytes
 * consumed. */
size_t tfh_glyph(const char *text, size_t left, struct tfh_glyph *g);

/* Columns that text takes when printed. */
size_t tfh_columns(const char *text, size_t len);

/* Writes cleaned text to `out` of `size` > 0 bytes, cut at a character boundary; returns its
 * length. Idempotent. */
size_t tfh_clean(char *out, size_t size, const char *text, size_t len);

#endif
