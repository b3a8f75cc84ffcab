/* Files of output that appear under their name when they are whole. */
#ifndef TFH_CLI_PART_FILE_H
#define TFH_CLI_PART_FILE_H

#include <stdio.h>

/* Writes to a stream; 0 or -errno. */
typedef int (*tfh_write_fn)(void *arg, FILE *out);
/* Whether PATH may be written: 0: it may be replaced; -ENOENT: there is nothing; else why not. */
typedef int (*tfh_may_replace)(const char *path);

/* Writes a file beside PATH, and renames it when it is whole; nothing is left of it otherwise. 0 or -errno: what writing or
 * `write` failed with, or what `may` says of PATH by then. */
int tfh_part_file(const char *path, tfh_may_replace may, tfh_write_fn write, void *arg);
/* The same to an open stream, which is closed: what writing failed with, also where `write` does not say. */
int tfh_part_write(int fd, tfh_write_fn write, void *arg);

#endif
