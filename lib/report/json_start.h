/* The field "start": what the main thread did before the first step. */
#ifndef TFH_REPORT_JSON_START_H
#define TFH_REPORT_JSON_START_H

#include "base/json.h"
#include "judge/result.h"

void tfh_json_start(struct tfh_json *j, const struct tfh_result *r);
/* The member `sampled`: of a run in which no call was recorded, else null. */
void tfh_json_sampled(struct tfh_json *j, const struct tfh_result *r);

#endif
