/* The only way of text to a terminal (scripts/check-output sees to it; JSON has base/json.h).
 *
 * A format is ours and is printed as it is; each %s and %c in it may be anybody's and is printed as
 * base/clean.h shows it, so that no name in a trace, no path and no option's value can drive the
 * terminal, begin a line or turn its direction.
 */
#ifndef TFH_BASE_PRINT_H
#define TFH_BASE_PRINT_H

#include <stdarg.h>
#include <stdio.h>

/* As fprintf (without %n, %m and wide characters), but %s is cleaned and padded by columns; a
 * precision counts bytes. Up to 4 KiB reach the stream as one piece. */
void tfh_print(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void tfh_vprint(FILE *out, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));

/* As fputs: for what stands in the source. */
void tfh_put(const char *ours, FILE *out);

#endif
