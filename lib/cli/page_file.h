/* `tfhook report --html FILE`: the page in a file of its own. */
#ifndef TFH_CLI_PAGE_FILE_H
#define TFH_CLI_PAGE_FILE_H

#include "cli/cli.h"
#include "judge/result.h"

/* Whether --html goes with the other flags and FILE can be made; false with a message on stderr. */
bool tfh_page_allowed(const struct tfh_command_line *args, int *status);
/* tfh_analyze(), with what the page tells of each of several ranks in *courses, to be freed in either case. */
struct tfh_courses;
int tfh_page_analyze(struct tfh_run *run, struct tfh_courses *courses, struct tfh_result **out,
		     struct tfh_err *err);
/* Writes the page of what was judged to FILE, which appears when it is whole; of a digest `courses` are made. Returns the exit status. */
struct tfh_judged;
int tfh_page_write(const char *path, const struct tfh_judged *j, struct tfh_courses *courses);

#endif
