/* Shared by the files of the page. */
#ifndef TFH_REPORT_PAGE_PAGE_PARTS_H
#define TFH_REPORT_PAGE_PAGE_PARTS_H

#include "report/page/html.h"
#include "report/page/along.h"
#include "report/page/curves.h"
#include "report/page/html_page.h"
#include "report/report.h"
#include "report/text_parts.h"

struct tfh_html_page {
	FILE *out;
	struct tfh_wording *words;
	const struct tfh_result *r;
	const struct tfh_shown *shown;
	const struct tfh_along *along;
	const struct tfh_curves *curves; /* NULL unless there are several ranks */
};

/* The files that the build puts into the command (scripts/gen-page), and the policy that allows
 * only them to act. */
extern const char tfh_page_style[], tfh_page_script[], tfh_page_policy[];

/* Title, how the job ended, verdict, what to do next, confidence. */
void tfh_page_head(const struct tfh_html_page *s);

/* The sections. Each writes what comes below its heading. */
void tfh_page_steps(const struct tfh_html_page *s);
void tfh_page_timeline(const struct tfh_html_page *s);
void tfh_page_gain(const struct tfh_html_page *s);
void tfh_page_run(const struct tfh_html_page *s);
void tfh_page_lines(const struct tfh_html_page *s);
void tfh_page_input(const struct tfh_html_page *s);
void tfh_page_kernels(const struct tfh_html_page *s);
void tfh_page_transfers(const struct tfh_html_page *s);
void tfh_page_memory(const struct tfh_html_page *s);
/* Below the heading of the ranks, above their tables. */
void tfh_page_curves(const struct tfh_html_page *s);
void tfh_page_ranks(const struct tfh_html_page *s);
void tfh_page_machine(const struct tfh_html_page *s);
void tfh_page_data(const struct tfh_html_page *s);
void tfh_page_json(const struct tfh_html_page *s);

/* Writes the data for the script. 0 or a negative errno. */
int tfh_page_drawing(const struct tfh_html_page *s);

/* The frames of a backtrace, collapsed at first; nothing if there are none. */
void tfh_page_frames(const struct tfh_html_page *s, uint32_t stack);

#endif
