/* run.json of a process that was not started by `tfhook run` (base/runjson.h). */
#ifndef TFH_RECORD_RUNJSON_WRITE_H
#define TFH_RECORD_RUNJSON_WRITE_H

#include <stddef.h>

/* Writes run.json in a directory, completely or not at all. 0, -EEXIST if there is one, or another
 * -errno. */
struct tfh_access;
int tfh_runjson_write(int dir, const char *launch, const struct tfh_access *access);

/* Command line of this process, arguments separated by spaces, without secrets. */
void tfh_command_line(char *text, size_t size);

#endif
