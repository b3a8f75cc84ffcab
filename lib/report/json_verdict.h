/* The verdict in JSON: class, cause, confidence, the line to blame, and the worker processes that
 * make batches. */
#ifndef TFH_REPORT_JSON_VERDICT_H
#define TFH_REPORT_JSON_VERDICT_H

#include "base/json.h"
#include "report/words/words.h"

/* The fields "class", "cause", "also", "share" and "confidence" of a verdict. */
void tfh_json_class(struct tfh_json *j, const struct tfh_verdict *v);
/* The field "verdict". */
void tfh_json_verdict(struct tfh_json *j, const struct tfh_wording *w);

#endif
