/* The trace files that operands stand for: for commands that look at files, not at runs. */
#ifndef TFH_CLI_FILES_H
#define TFH_CLI_FILES_H

#include "cli/cli.h"

struct tfh_files {
	char **path;
	size_t n;
	char dir[4096]; /* the first operand, or the directory that stands for none */
};

/* The .tft files of the operands' directories, files as they are; without operands the newest run
 * directory here. 0 or -errno, -ENODATA when there are none. Free in either case. */
int tfh_files_find(struct tfh_files *files, const struct tfh_line *args, struct tfh_err *err);
void tfh_files_free(struct tfh_files *files);

#endif
