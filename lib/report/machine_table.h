/* Machine meters (base/meters.def) during the job, read once a second. */
#ifndef TFH_REPORT_MACHINE_TABLE_H
#define TFH_REPORT_MACHINE_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "judge/result.h"

struct tfh_json;

/* A table of 80 columns: mean and maximum of each meter, and its course over time. Meters that
 * stayed 0 are omitted. */
void tfh_report_machine_text(FILE *out, const struct tfh_result *r, bool utf8);

/* An array, empty if nothing was recorded. */
void tfh_report_machine_json(struct tfh_json *j, const struct tfh_result *r);
/* Two members: the software that the critical process had loaded, and those of its settings that
 * cost time. */
void tfh_report_software_json(struct tfh_json *j, const struct tfh_result *r);

#endif
