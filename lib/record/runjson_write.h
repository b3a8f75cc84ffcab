/* run.json of a process that no `tfhook run` started (base/runjson.h). */
#ifndef TFH_RECORD_RUNJSON_WRITE_H
#define TFH_RECORD_RUNJSON_WRITE_H

#include <stddef.h>

/* Writes run.json below a directory, whole or not at all. 0, -EEXIST when there is one, or another
 * -errno. */
int tfh_runjson_write(int dir, const char *launch);

/* Command line of this process, arguments separated by blanks, secrets left out. */
void tfh_command_line(char *text, size_t size);

#endif
