/*
 * Writes HTML. Text from traces may contain anything: every %s is escaped for HTML, and control,
 * invisible and direction-changing characters are shown as escapes, as on a terminal
 * (base/clean.h). There is no way to write foreign text without that. The stream belongs to the
 * caller, who checks it for errors afterwards.
 */
#ifndef TFH_REPORT_PAGE_HTML_H
#define TFH_REPORT_PAGE_HTML_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Like fprintf, but only with %s, %u, %d, %llu, %c and %%. */
void tfh_html(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Text of several lines, with its line breaks kept. */
void tfh_html_lines(FILE *out, const char *text);
/* A line of JSON in a script element, escaped so that it cannot end the element. */
void tfh_html_json(FILE *out, const char *json);

/* Starts a table: its caption (NULL: none) and its column heads, separated by '|'. A head that
 * begins with '<' is for a column of text, the others are for numbers. */
void tfh_html_table(FILE *out, const char *caption, const char *heads);
void tfh_html_table_end(FILE *out);
/* Starts a row; its first cell, which names it; ends it. */
void tfh_html_row(FILE *out, const char *name);
void tfh_html_row_end(FILE *out);

/* A sentence below a table. */
void tfh_html_note(FILE *out, const char *text);

/* Cells. Cells of numbers also hold the exact value (data-v, as in the JSON); NAN is "n/a". */
void tfh_html_text(FILE *out, const char *text); /* NULL or "": a dash */
void tfh_html_time(FILE *out, double seconds);
void tfh_html_share(FILE *out, double share);
void tfh_html_bytes(FILE *out, double bytes);
void tfh_html_rate(FILE *out, double bytes_per_s);
void tfh_html_mean(FILE *out, double n);
void tfh_html_factor(FILE *out, double factor);
void tfh_html_count(FILE *out, uint64_t n);
void tfh_html_number(FILE *out, int64_t n); /* a name rather than a quantity: no separators */
void tfh_html_yes(FILE *out, bool yes);
/* A bar over that share of its cell, coloured as `kind`, one of our own names. */
void tfh_html_bar(FILE *out, double share, const char *kind);

#endif
