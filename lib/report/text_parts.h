/* What the parts of the text report share: a page and how to write on it. */
#ifndef TFH_REPORT_TEXT_PARTS_H
#define TFH_REPORT_TEXT_PARTS_H

#include "report/format.h"
#include "report/report.h"

struct tfh_page {
	FILE *out;
	const struct tfh_result *r;
	struct tfh_style style;
};

enum tfh_tint { TFH_PLAIN, TFH_BOLD, TFH_RED, TFH_YELLOW, TFH_GREEN, TFH_DIM };

/* Escape sequence that begins a tint, or "" without colour; TFH_PLAIN ends any. */
const char *tfh_tint(const struct tfh_page *page, enum tfh_tint tint);

/* Breaks text into lines of at most 80 columns, `first` before the first and `rest` before the
 * others. */
void tfh_wrap(const struct tfh_page *page, const char *first, const char *rest, const char *text);

/* The words of a person for a part of a step's time. */
const char *tfh_part_words(enum tfh_part part);

/* Seconds of a step with all that a what-if removes gone and nothing else changed: the bound. */
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
