/* Running a small program and reading what it says. */
#ifndef TFH_CLI_CAPTURE_H
#define TFH_CLI_CAPTURE_H

#include <stddef.h>

/* Runs argv (found along PATH) with stdin from /dev/null, standard output and standard error into
 * `out` (NUL-ended, cut at `size`), `preload` as LD_PRELOAD unless NULL. Ended after `seconds`.
 * Returns its exit code, 128 + signal, or -errno when it could not be started. */
int tfh_capture(char *const *argv, const char *preload, unsigned seconds, char *out, size_t size);

#endif
