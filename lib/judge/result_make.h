/* Creates a result. */
#ifndef TFH_JUDGE_RESULT_MAKE_H
#define TFH_JUDGE_RESULT_MAKE_H

#include "base/arena.h"
#include "judge/result.h"

/* An empty result of a process, and the arena for its strings; NULL: no memory. Freed by
 * tfh_result_free(). */
struct tfh_result *tfh_result_new(uint32_t process, struct tfh_arena **arena);

/* Zeroed memory that lives as long as the result; NULL: no memory. */
void *tfh_result_alloc(struct tfh_result *r, size_t n, size_t size);

#endif
