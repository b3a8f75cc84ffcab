/* What the machine did beside the job (base/meters.def), by readings once a second. */
#ifndef TFH_REPORT_MACHINE_TABLE_H
#define TFH_REPORT_MACHINE_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "judge/result.h"

struct tfh_json;

/* A table of 80 columns: mean and greatest reading of each meter, and its line over time. What stayed 0 is left out. */
void tfh_report_machine_text(FILE *out, const struct tfh_result *r, bool utf8);

/* An array, empty where nothing was recorded. */
void tfh_report_machine_json(struct tfh_json *j, const struct tfh_result *r);

#endif
