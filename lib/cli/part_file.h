/* Output files that appear under their name only when complete. */
#ifndef TFH_CLI_PART_FILE_H
#define TFH_CLI_PART_FILE_H

#include <stdio.h>

/* Writes to a stream; 0 or -errno. */
typedef int (*tfh_write_fn)(void *arg, FILE *out);
/* Whether PATH may be written. 0: it may be replaced; -ENOENT: there is no file; else why not. */
typedef int (*tfh_may_replace)(const char *path);

/* Writes a file beside PATH, and renames it when it is complete; otherwise removes it. 0 or -errno:
 * the failure of writing, of `write`, or of `may` at the end. */
int tfh_part_file(const char *path, tfh_may_replace may, tfh_write_fn write, void *arg);
/* The same for an open descriptor, which is closed. Returns a failed write even if `write` does
 * not. */
int tfh_part_write(int fd, tfh_write_fn write, void *arg);

#endif
