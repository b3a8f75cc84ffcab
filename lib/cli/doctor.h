/* Shared by the checks of `tfhook doctor`. */
#ifndef TFH_CLI_DOCTOR_H
#define TFH_CLI_DOCTOR_H

#include <stdbool.h>

#include "cli/run.h"

enum tfh_outcome { TFH_GOOD, TFH_NOTE, TFH_BAD };

struct tfh_doctor {
	bool color;
	unsigned bad;
	struct tfh_library library;
};

/* Prints a line, and counts it if BAD. */
void tfh_finding(struct tfh_doctor *d, enum tfh_outcome o, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Checks the GPU driver, CUPTI and the permission to use it, ranges, and programs that need the
 * recorder without exported driver names. `python` is the interpreter whose packages are checked.
 */
void tfh_doctor_gpu(struct tfh_doctor *d, const char *python);

#endif
