/* Growing arrays. */
#ifndef TFH_MODEL_VEC_H
#define TFH_MODEL_VEC_H

#include <errno.h>

#include "model/big.h"

#define TFH_VEC(type)                                                                              \
	struct {                                                                                   \
		type *v;                                                                           \
		size_t n, cap;                                                                     \
	}
/* Room for one more than n; 0 or -ENOMEM. */
int tfh_vec_grow(void **v, size_t *cap, size_t n, size_t size);
/* Makes room for `want` > n elements at once if many are expected. Unused room takes no memory, and
 * used room is in large pages if the system has them. 0 or -ENOMEM. */
int tfh_vec_reserve(void **v, size_t *cap, size_t want, size_t size);
/* The same, but does nothing if there is enough room. */
#define TFH_RESERVE(vec, want)                                                                     \
	((want) <= (vec).cap                                                                       \
		 ? 0                                                                               \
		 : tfh_vec_reserve((void **)&(vec).v, &(vec).cap, (want), sizeof(*(vec).v)))
/* Appends one element; 0 or -ENOMEM. */
#define TFH_PUSH(vec, ...)                                                                         \
	((vec).n < (vec).cap ||                                                                    \
			 !tfh_vec_grow((void **)&(vec).v, &(vec).cap, (vec).n, sizeof(*(vec).v))   \
		 ? ((vec).v[(vec).n++] = __VA_ARGS__, 0)                                           \
		 : -ENOMEM)
/* Exchanges two arrays of one type. */
#define TFH_SWAP(a, b)                                                                             \
	do {                                                                                       \
		void *swap_v = (a).v;                                                              \
		size_t swap_n = (a).n, swap_cap = (a).cap;                                         \
		(a).v = (b).v, (a).n = (b).n, (a).cap = (b).cap;                                   \
		(b).v = swap_v, (b).n = swap_n, (b).cap = swap_cap;                                \
	} while (0)
/* TFH_PUSH for arrays that grow with the run (model/big.h); freed by tfh_big_free(). */
#define TFH_PUSH_BIG(vec, ...)                                                                     \
	((vec).n < (vec).cap ||                                                                    \
			 !tfh_big_grow((void **)&(vec).v, &(vec).cap, (vec).n, sizeof(*(vec).v))   \
		 ? ((vec).v[(vec).n++] = __VA_ARGS__, 0)                                           \
		 : -ENOMEM)

#endif
