/* What the parts of the text report share: a page and how to write on it (page.c), and the parts. */
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

/* Begins a tint, on a page with colour; TFH_PLAIN ends any. */
void tfh_tint(const struct tfh_page *page, enum tfh_tint tint);

/* As tfh_print, in a tint; the heading of a part in bold, on a line of its own after an empty one.
 */
void tfh_tinted(const struct tfh_page *page, enum tfh_tint tint, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void tfh_heading(const struct tfh_page *page, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Breaks text into lines of at most 80 columns, `first` before the first and `rest` before the
 * others. wrap_from goes on where so many columns of the first line are written already. */
void tfh_wrap(const struct tfh_page *page, const char *first, const char *rest, const char *text);
void tfh_wrap_from(const struct tfh_page *page, size_t column, const char *rest, const char *text);

/* text_steps.c: seconds of a step with all that a what-if removes gone and nothing else changed:
 * the bound. */
double tfh_least_step(const struct tfh_result *r, const struct tfh_whatif *w);

/* text.c calls these in this order; each prints nothing when it has nothing to say. */
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
