/* Where the run's time went, as a tree of loops. */
#ifndef TFH_REPORT_RUN_TREE_H
#define TFH_REPORT_RUN_TREE_H

#include "base/json.h"
#include "judge/result.h"

/* The field "tree": the run, with its parts as "parts" in each object. */
void tfh_json_tree(struct tfh_json *j, const struct tfh_result *r);

#endif
