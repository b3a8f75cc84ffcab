/* Binary search. */
#ifndef TFH_BASE_BISECT_H
#define TFH_BASE_BISECT_H

#include <stddef.h>

/* The first index i in [from, to) for which the condition `before`, an expression of i, is false;
 * `to` if there is none. The condition must be true up to there. */
#define TFH_BISECT(i, from, to, before)                                                            \
	({                                                                                         \
		size_t bisect_lo = (from), bisect_hi = (to);                                       \
		while (bisect_lo < bisect_hi) {                                                    \
			size_t i = bisect_lo + (bisect_hi - bisect_lo) / 2;                        \
			if (before)                                                                \
				bisect_lo = i + 1;                                                 \
			else                                                                       \
				bisect_hi = i;                                                     \
		}                                                                                  \
		bisect_lo;                                                                         \
	})

#endif
