/* What several phases add to a result. */
#ifndef TFH_JUDGE_REMARK_H
#define TFH_JUDGE_REMARK_H

#include "base/arena.h"
#include "judge/result.h"

/* An empty result of a process, and where its strings go; NULL: no memory. tfh_result_free(). */
struct tfh_result *tfh_result_new(uint32_t process, struct tfh_arena **arena);

/* A remark of the report, which keeps the pointer; without a place for it, it is left out. */
void tfh_remark(struct tfh_result *r, const char *text);
/* Zeroed memory that lives as long as the result; NULL: there is none. */
void *tfh_result_alloc(struct tfh_result *r, size_t n, size_t size);

#endif
