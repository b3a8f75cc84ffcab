/* The trace files that operands stand for: for commands that look at files, not at runs. */
#ifndef TFH_CLI_FILES_H
#define TFH_CLI_FILES_H

#include <stdint.h>

#include "cli/cli.h"

struct tfh_files {
	char **path;
	size_t n;
	char dir[4096]; /* the first operand, or the directory that stands for none */
};

/* The .tft files of the operands' directories, files as they are; without operands the newest run
 * directory here. 0 or -errno, -ENODATA when there are none. Free in either case. */
int tfh_files_find(struct tfh_files *files, const struct tfh_command_line *args,
		   struct tfh_err *err);
void tfh_files_free(struct tfh_files *files);

/* How a file that its process did not end regularly goes on in the files beside it. */
enum tfh_rest {
	TFH_REST_NONE,	   /* not at all */
	TFH_REST_NEXT,	   /* a later file of the same process: this one was full */
	TFH_REST_SALVAGED, /* what its process still held when it died was salvaged, all of it */
	TFH_REST_TORN,	   /* the same, but some records could not be read */
};
enum tfh_rest tfh_files_rest(const struct tfh_files *files, const char *path);

/* Has no byte: its process was killed, or the disk full, before the first write to it. */
bool tfh_file_empty(const char *path);

struct tft_reader;
/* Whether the file was written by the salvage of a dead process; `torn` gets how many records could
 * not be read. */
bool tfh_is_salvaged(struct tft_reader *r, uint64_t *torn);

#endif
