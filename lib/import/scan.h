/*
 * A pull scanner for JSON: the caller walks objects and arrays and takes or skips values; nothing
 * is stored. It tolerates what trace writers get wrong: NaN and Infinity are numbers, a trailing
 * comma is ignored, what is no escape stands for itself.
 */
#ifndef TFH_IMPORT_SCAN_H
#define TFH_IMPORT_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "import/bytes.h"

#define TFH_SCAN_DEPTH 64	  /* deeper nesting is rejected */
#define TFH_SCAN_TEXT (16u << 10) /* longer strings are cut */

struct tfh_scan {
	struct tfh_bytes *bytes;
	const uint8_t *p, *end;
	uint64_t before; /* bytes in all earlier blocks */
	const uint8_t *block;
	uint32_t depth;
	const char *error; /* the first error, after which all functions return their end value */
	size_t length;	   /* of text */
	char text[TFH_SCAN_TEXT + 1];
};

void tfh_scan_init(struct tfh_scan *s, struct tfh_bytes *bytes);
/* First byte of the next value, 0 at the end of the file or after an error. Consumes nothing. */
int tfh_scan_peek(struct tfh_scan *s);
/* Enters the object or array that comes next; false if something else does. */
bool tfh_scan_enter(struct tfh_scan *s, char open);
/* In an object: the next key, in s->text, whose value comes next. NULL at the end of the object (or
 * on an error). */
const char *tfh_scan_key(struct tfh_scan *s);
/* In an array: whether another value follows; false at the end (or on an error). */
bool tfh_scan_item(struct tfh_scan *s);
/* Like tfh_scan_enter(), but skips what comes next if it is something else. */
bool tfh_scan_enter_or_skip(struct tfh_scan *s, char open);
/* In an array: enters the next object and skips what else comes before it; false at the end (or on
 * an error). */
bool tfh_scan_object(struct tfh_scan *s);
void tfh_scan_skip(struct tfh_scan *s);
/* Reads a string, number or word (true, null) into s->text. Skips objects and arrays and gives "".
 */
const char *tfh_scan_text(struct tfh_scan *s);
/* A number, also one written as a string; 0 for anything else. Clamped to the range. */
int64_t tfh_scan_int(struct tfh_scan *s);
/* A decimal number times 1000, rounded: microseconds to nanoseconds without the 53-bit limit of a
 * double. */
int64_t tfh_scan_thousandths(struct tfh_scan *s);
/* Returns 0 if the file was read to its end without an error; else -EBADMSG, and fills err. */
int tfh_scan_finish(struct tfh_scan *s, const char *path, struct tfh_err *err);

#endif
