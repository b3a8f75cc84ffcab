/* `tfhook report --html FILE`: writes the page to a file. */
#ifndef TFH_CLI_PAGE_FILE_H
#define TFH_CLI_PAGE_FILE_H

#include "cli/cli.h"
#include "judge/judge.h"
#include "ranks/ranks.h"
#include "report/page/curves.h"
#include "report/page/html_page.h"

/* Whether --html can be combined with the other flags and FILE can be created; false, with a
 * message on stderr. */
bool tfh_page_allowed(const struct tfh_command_line *args, int *status);

/* What the page shows besides the result: single steps, and the course of each rank if there are
 * several. */
struct tfh_page_parts {
	struct tfh_shown shown;
	struct tfh_curves curves;
};
/* Runs tfh_analyze() and fills the parts. */
int tfh_page_analyze(struct tfh_run *run, struct tfh_page_parts *parts, struct tfh_result **out,
		     struct tfh_err *err);
/* Writes the page to FILE, which appears only when complete. For a result from a digest, the curves
 * are computed here. Returns the exit status. */
struct tfh_judged;
int tfh_page_write(const char *path, const struct tfh_judged *j, struct tfh_page_parts *parts);
/* The same for a job of many ranks. 0 or -errno, which it has reported. */
int tfh_page_write_many(const char *path, struct tfh_ranks *job);
void tfh_page_free(struct tfh_page_parts *parts);

#endif
