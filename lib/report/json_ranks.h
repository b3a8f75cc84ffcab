/* Ranks in JSON. */
#ifndef TFH_REPORT_JSON_RANKS_H
#define TFH_REPORT_JSON_RANKS_H

#include "base/json.h"
#include "judge/result.h"

/* The fields "ranks", empty if there is only one, and "generations", empty if they were started
 * once. */
void tfh_json_ranks(struct tfh_json *j, const struct tfh_result *r);

#endif
