/* Writes run.json for a process that was not started by `tfhook run` (base/runjson.h). */
#ifndef TFH_RECORD_RUNJSON_WRITE_H
#define TFH_RECORD_RUNJSON_WRITE_H

#include <stddef.h>

/* Writes run.json to a directory, completely or not at all. Returns 0, -EEXIST if there is one
 * already, or another -errno. */
struct tfh_access;
int tfh_runjson_write(int dir, const char *launch, const struct tfh_access *access);

/* Command line of this process without secrets, arguments separated by spaces. */
void tfh_command_line(char *text, size_t size);

#endif
