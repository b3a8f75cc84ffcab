/* Foreign text, which is text that tfhook did not write itself (names in traces, file names,
 * arguments, variables), made fit for a terminal: one line, in which nothing drives the terminal,
 * nothing is invisible and nothing turns the direction of what follows.
 *
 * A control character, a character that shows nothing (zero width, bidi, tags, fillers) and a byte
 * that is not UTF-8 are written as what they are: "\n", "\x1b", "\u202e", "\xff". No function here
 * allocates or locks.
 */
#ifndef TFH_BASE_CLEAN_H
#define TFH_BASE_CLEAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at text, of which `left` bytes are there; 0 when it is not UTF-8 (Unicode
 * 15, table 3-7: no overlong form, no surrogate, nothing above U+10FFFF). `c`, if not NULL, gets
 * the character. */
size_t tfh_utf8(const char *text, size_t left, uint32_t *c);

/* Whether a character may be shown as it is. */
bool tfh_shown(uint32_t c);

/* One character as it is shown. */
struct tfh_glyph {
	char text[12];
	uint8_t len, columns;
};

/* Takes the first character (or bad byte) of text, `left` > 0; returns how many bytes it took. */
size_t tfh_glyph(const char *text, size_t left, struct tfh_glyph *g);

/* Columns that text takes when it is shown. */
size_t tfh_columns(const char *text, size_t len);

/* Text as it is shown into `out` of `size` > 0 bytes, cut at a character's end; returns its length.
 * Cleaning twice changes nothing more. */
size_t tfh_clean(char *out, size_t size, const char *text, size_t len);

#endif
