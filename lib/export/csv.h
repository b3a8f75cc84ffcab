/* Comma-separated values (RFC 4180). Text that a spreadsheet would read as a formula gets a leading
 * apostrophe. */
#ifndef TFH_EXPORT_CSV_H
#define TFH_EXPORT_CSV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct tfh_csv {
	FILE *out;
	bool plain;	 /* texts as they are: no spreadsheet will read them */
	unsigned fields; /* of this line */
};

/* NULL: an empty field. Bytes that are not UTF-8 become U+FFFD. */
void tfh_csv_text(struct tfh_csv *c, const char *text);
void tfh_csv_int(struct tfh_csv *c, int64_t value);
void tfh_csv_double(struct tfh_csv *c, double value); /* NAN: an empty field */
void tfh_csv_empty(struct tfh_csv *c);
/* 0, or -EIO if the stream failed. */
int tfh_csv_end(struct tfh_csv *c);

#endif
