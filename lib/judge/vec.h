/* Growing arrays. */
#ifndef TFH_JUDGE_VEC_H
#define TFH_JUDGE_VEC_H

#include <errno.h>

#include "model/big.h"

#define TFH_VEC(type)                                                                              \
	struct {                                                                                   \
		type *v;                                                                           \
		size_t n, cap;                                                                     \
	}
/* Room for one more than n; 0 or -ENOMEM. */
int tfh_vec_grow(void **v, size_t *cap, size_t n, size_t size);
/* Room for `want` > n elements at once, where many are expected: what is not used takes no memory,
 * and what is used comes in large pages if the system has them. 0 or -ENOMEM. */
int tfh_vec_reserve(void **v, size_t *cap, size_t want, size_t size);
/* Appends one element; 0 or -ENOMEM. */
#define TFH_PUSH(vec, ...)                                                                         \
	((vec).n < (vec).cap ||                                                                    \
			 !tfh_vec_grow((void **)&(vec).v, &(vec).cap, (vec).n, sizeof(*(vec).v))   \
		 ? ((vec).v[(vec).n++] = __VA_ARGS__, 0)                                           \
		 : -ENOMEM)
/* The same for arrays that grow with the run (model/big.h); freed by tfh_big_free(). */
#define TFH_PUSH_BIG(vec, ...)                                                                     \
	((vec).n < (vec).cap ||                                                                    \
			 !tfh_big_grow((void **)&(vec).v, &(vec).cap, (vec).n, sizeof(*(vec).v))   \
		 ? ((vec).v[(vec).n++] = __VA_ARGS__, 0)                                           \
		 : -ENOMEM)

#endif
