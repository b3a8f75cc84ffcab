/* How the judge makes a result. */
#ifndef TFH_JUDGE_RESULT_MAKE_H
#define TFH_JUDGE_RESULT_MAKE_H

#include "base/arena.h"
#include "judge/result.h"

/* An empty result of a process, and where its strings go; NULL: no memory. tfh_result_free(). */
struct tfh_result *tfh_result_new(uint32_t process, struct tfh_arena **arena);

/* Zeroed memory that lives as long as the result; NULL: there is none. */
void *tfh_result_alloc(struct tfh_result *r, size_t n, size_t size);

#endif
