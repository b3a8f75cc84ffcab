/* What the checks of `tfhook doctor` share. */
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

/* Prints a line; BAD ones are counted. */
void tfh_finding(struct tfh_doctor *d, enum tfh_outcome o, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The GPU driver, CUPTI and the permission to use it, ranges, and programs that need a recorder
 * without driver names. `python` is asked for its packages. */
void tfh_doctor_gpu(struct tfh_doctor *d, const char *python);

#endif
