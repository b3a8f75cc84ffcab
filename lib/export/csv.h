/*
 * Comma-separated values (RFC 4180). Text that a spreadsheet would take for a formula gets an
 * apostrophe before it.
 */
#ifndef TFH_EXPORT_CSV_H
#define TFH_EXPORT_CSV_H

#include <stdint.h>
#include <stdio.h>

struct tfh_csv {
	FILE *out;
	unsigned fields; /* of this line */
};

/* NULL: an empty field. What is not UTF-8 becomes U+FFFD. */
void tfh_csv_text(struct tfh_csv *c, const char *text);
void tfh_csv_int(struct tfh_csv *c, int64_t value);
void tfh_csv_empty(struct tfh_csv *c);
/* 0, or -EIO where the stream failed. */
int tfh_csv_end(struct tfh_csv *c);

#endif
