/*
 * A pull scanner of JSON: the caller goes through objects and arrays and takes or skips values as
 * they come; nothing is kept. As forgiving as the programs that write traces are careless: NaN and
 * Infinity are numbers, a comma too many is passed over, an unknown escape stands for itself.
 */
#ifndef TFH_IMPORT_SCAN_H
#define TFH_IMPORT_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "import/bytes.h"

#define TFH_SCAN_DEPTH 64	  /* deeper nesting is refused */
#define TFH_SCAN_TEXT (16u << 10) /* longer strings are cut */

struct tfh_scan {
	struct tfh_bytes *bytes;
	const uint8_t *p, *end;
	uint64_t before; /* bytes of the blocks before this one */
	const uint8_t *block;
	uint32_t depth;
	const char *error; /* the first; everything then ends at once */
	size_t length;	   /* of text */
	char text[TFH_SCAN_TEXT + 1];
};

void tfh_scan_init(struct tfh_scan *s, struct tfh_bytes *bytes);
/* First byte of the next value, 0 at the end of the file or after an error. Nothing is taken. */
int tfh_scan_peek(struct tfh_scan *s);
/* Enters the object or array that comes next; false: something else does. */
bool tfh_scan_enter(struct tfh_scan *s, char open);
/* In an object: the next key, its value comes next. NULL: the object is over (or broken). The key
 * is in s->text. */
const char *tfh_scan_key(struct tfh_scan *s);
/* In an array: whether one more value comes; false: the array is over (or broken). */
bool tfh_scan_item(struct tfh_scan *s);
void tfh_scan_skip(struct tfh_scan *s);
/* The text of a string, a number or a word (true, null) in s->text. Objects and arrays are skipped
 * and give "". */
const char *tfh_scan_text(struct tfh_scan *s);
/* A number, also one that is written as a string; 0 for anything else. Beyond the range: its end.
 */
int64_t tfh_scan_int(struct tfh_scan *s);
/* A decimal number times 1000, rounded: microseconds to nanoseconds without the 53 bits of a
 * double. */
int64_t tfh_scan_thousandths(struct tfh_scan *s);
/* Whether the file was read to its end without an error: else fills err, -EBADMSG. */
int tfh_scan_finish(struct tfh_scan *s, const char *path, struct tfh_err *err);

#endif
