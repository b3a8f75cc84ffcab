/* The trace files that operands select, for commands that work on files, not on runs. */
#ifndef TFH_CLI_FILES_H
#define TFH_CLI_FILES_H

#include <stdint.h>

#include "cli/cli.h"

struct tfh_files {
	char **path;
	size_t n;
	char dir[4096]; /* the first operand, or the default directory */
};

/* The .tft files in the operands' directories, and operands that are files. Without operands, those
 * of the newest run directory in the working directory. 0 or -errno; -ENODATA: there are none. Free
 * the result in either case. */
int tfh_files_find(struct tfh_files *files, const struct tfh_command_line *args,
		   struct tfh_err *err);
void tfh_files_free(struct tfh_files *files);

/* How a file that its process did not finish continues in other files. */
enum tfh_rest {
	TFH_REST_NONE,	   /* it does not */
	TFH_REST_NEXT,	   /* in a later file of the same process: this one was full */
	TFH_REST_SALVAGED, /* in a salvaged file, completely */
	TFH_REST_TORN,	   /* in a salvaged file, but some records were unreadable */
};
enum tfh_rest tfh_files_rest(const struct tfh_files *files, const char *path);

/* Whether the file is empty: its process was killed, or the disk was full, before the first write.
 */
bool tfh_file_empty(const char *path);

struct tft_reader;
/* Whether the file was written by salvaging a dead process; `torn` receives the number of
 * unreadable records. */
bool tfh_is_salvaged(struct tft_reader *r, uint64_t *torn);

#endif
