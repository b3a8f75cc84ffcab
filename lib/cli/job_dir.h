/* The run directory of a running job. */
#ifndef TFH_CLI_JOB_DIR_H
#define TFH_CLI_JOB_DIR_H

#include <limits.h>

/* Finds it from what a user names: a directory; a process that records, or that started such
 * processes, as `tfhook run` and launchers do; or NULL: this user's newest one below ".". Returns 0
 * or an exit code, with a message. */
int tfh_job_dir(const char *target, char dir[PATH_MAX]);

#endif
