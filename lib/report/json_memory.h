/* Device memory that the job requested from the driver, in JSON. */
#ifndef TFH_REPORT_JSON_MEMORY_H
#define TFH_REPORT_JSON_MEMORY_H

#include "base/json.h"
#include "judge/result.h"

/* The field "memory": peak, end, line over time, failures; null where nothing was allocated. */
void tfh_json_memory(struct tfh_json *j, const struct tfh_result *r);

#endif
