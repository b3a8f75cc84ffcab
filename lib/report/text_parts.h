/* Shared by the parts of the text report: a page and functions to write on it (page.c), and the
 * parts. */
#ifndef TFH_REPORT_TEXT_PARTS_H
#define TFH_REPORT_TEXT_PARTS_H

#include "report/format.h"
#include "report/report.h"

struct tfh_page {
	FILE *out;
	const struct tfh_wording *words;
	const struct tfh_result *r;
	struct tfh_style style;
};

#define TFH_PAGE_COLUMNS 80

enum tfh_tint { TFH_PLAIN, TFH_BOLD, TFH_RED, TFH_YELLOW, TFH_GREEN, TFH_DIM };

/* Starts a tint on a page with colour; TFH_PLAIN ends any. */
void tfh_tint(const struct tfh_page *page, enum tfh_tint tint);

/* Like tfh_print, in a tint. A heading is bold, on a line of its own after an empty one. */
void tfh_tinted(const struct tfh_page *page, enum tfh_tint tint, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void tfh_heading(const struct tfh_page *page, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Wraps text at 80 columns, with `first` before the first line and `rest` before the others.
 * tfh_wrap_from() continues a line of which `column` columns are already written. */
void tfh_wrap(const struct tfh_page *page, const char *first, const char *rest, const char *text);
void tfh_wrap_from(const struct tfh_page *page, size_t column, const char *rest, const char *text);

/* text_steps.c: the lower bound of a step in seconds: all that a what-if removes is gone, nothing
 * else changes. */
double tfh_least_step(const struct tfh_result *r, const struct tfh_whatif *w);

/* text.c calls these in this order; each prints nothing if it has no data. */
void tfh_text_tree(const struct tfh_page *page);
void tfh_text_classes(const struct tfh_page *page);
void tfh_text_breakdown(const struct tfh_page *page);
void tfh_text_whatif(const struct tfh_page *page);
void tfh_text_ranks(const struct tfh_page *page);
void tfh_text_input(const struct tfh_page *page);
void tfh_text_kernels(const struct tfh_page *page);
void tfh_text_transfers(const struct tfh_page *page);
void tfh_text_advice(const struct tfh_page *page);
void tfh_text_data(const struct tfh_page *page);

#endif
