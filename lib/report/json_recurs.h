/* What recurs in a run, and what bounds its steps, in JSON. */
#ifndef TFH_REPORT_JSON_RECURS_H
#define TFH_REPORT_JSON_RECURS_H

#include "base/json.h"
#include "judge/result.h"

/* The fields "steady", "changes" and "recurs". */
void tfh_json_recurs(struct tfh_json *j, const struct tfh_result *r);

#endif
