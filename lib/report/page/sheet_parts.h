/* Shared by the files of the page. */
#ifndef TFH_REPORT_SHEET_PARTS_H
#define TFH_REPORT_SHEET_PARTS_H

#include "report/page/html.h"
#include "report/page/along.h"
#include "report/page/courses.h"
#include "report/page/sheet.h"
#include "report/report.h"
#include "report/text_parts.h"

struct tfh_sheet {
	FILE *out;
	struct tfh_wording *words;
	const struct tfh_result *r;
	const struct tfh_shown *shown;
	const struct tfh_along *along;
	const struct tfh_courses *courses; /* NULL unless there are several ranks */
};

/* The files that the build puts into the command (scripts/gen-page), and the policy that allows only them to
 * act. */
extern const char tfh_sheet_style[], tfh_sheet_script[], tfh_sheet_policy[];

/* Title, how the job ended, verdict, what to do next, confidence. */
void tfh_sheet_head(const struct tfh_sheet *s);

/* The sections. Each writes what comes below its heading. */
void tfh_sheet_steps(const struct tfh_sheet *s);
void tfh_sheet_timeline(const struct tfh_sheet *s);
void tfh_sheet_gain(const struct tfh_sheet *s);
void tfh_sheet_run(const struct tfh_sheet *s);
void tfh_sheet_lines(const struct tfh_sheet *s);
void tfh_sheet_input(const struct tfh_sheet *s);
void tfh_sheet_kernels(const struct tfh_sheet *s);
void tfh_sheet_transfers(const struct tfh_sheet *s);
void tfh_sheet_memory(const struct tfh_sheet *s);
/* Below the heading of the ranks, above their tables. */
void tfh_sheet_courses(const struct tfh_sheet *s);
void tfh_sheet_ranks(const struct tfh_sheet *s);
void tfh_sheet_machine(const struct tfh_sheet *s);
void tfh_sheet_data(const struct tfh_sheet *s);
void tfh_sheet_json(const struct tfh_sheet *s);

/* Writes the data for the script. 0 or a negative errno. */
int tfh_sheet_drawing(const struct tfh_sheet *s);

/* The frames of a backtrace, collapsed at first; nothing if there are none. */
void tfh_sheet_frames(const struct tfh_sheet *s, uint32_t stack);

#endif
