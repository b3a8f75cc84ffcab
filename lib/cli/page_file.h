/* `tfhook report --html FILE`: the page in a file of its own. */
#ifndef TFH_CLI_PAGE_FILE_H
#define TFH_CLI_PAGE_FILE_H

#include "cli/cli.h"
#include "judge/result.h"
#include "report/page/courses.h"
#include "report/page/sheet.h"

/* Whether --html goes with the other flags and FILE can be made; false with a message on stderr. */
bool tfh_page_allowed(const struct tfh_command_line *args, int *status);

/* What the page shows beside the result: single steps, and each of several ranks along the run. */
struct tfh_page_parts {
	struct tfh_shown shown;
	struct tfh_courses courses;
};
/* tfh_analyze(), which fills the parts. */
int tfh_page_analyze(struct tfh_run *run, struct tfh_page_parts *parts, struct tfh_result **out,
		     struct tfh_err *err);
/* Writes the page of what was judged to FILE, which appears when it is whole; of a digest the courses are made. Returns the exit
 * status. */
struct tfh_judged;
int tfh_page_write(const char *path, const struct tfh_judged *j, struct tfh_page_parts *parts);
void tfh_page_free(struct tfh_page_parts *parts);

#endif
