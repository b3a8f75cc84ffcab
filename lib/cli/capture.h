/* Runs a small program and reads its output. */
#ifndef TFH_CLI_CAPTURE_H
#define TFH_CLI_CAPTURE_H

#include <stddef.h>

/* Runs argv (found along PATH) with stdin from /dev/null; standard output and standard error go to
 * `out` (NUL-terminated, truncated to `size`). `preload` becomes LD_PRELOAD unless NULL. Killed
 * after `seconds`. Returns the exit code, 128 + signal, or -errno if it could not be started. */
int tfh_capture(char *const *argv, const char *preload, unsigned seconds, char *out, size_t size);

#endif
