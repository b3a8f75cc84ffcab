/* The only way to print text to a terminal; scripts/check-output enforces it. JSON goes through
 * base/json.h.
 *
 * The format string is trusted. Each %s and %c may be untrusted and is printed through
 * base/clean.h, so that no name in a trace, no path and no option can control the terminal, start a
 * line or change the text's direction. */
#ifndef TFH_BASE_PRINT_H
#define TFH_BASE_PRINT_H

#include <stdarg.h>
#include <stdio.h>

/* Like fprintf (without %n, %m and wide characters), but %s is cleaned and padded by columns; a
 * precision counts bytes. Up to 4 KiB are written at once. */
void tfh_print(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void tfh_vprint(FILE *out, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));

/* Like fputs, for text from the source code. */
void tfh_put(const char *ours, FILE *out);

#endif
