/*
 * Whether this thread is inside a certain call, decided by the call's stack address instead of a
 * counter. A call can end without returning (an exception, longjmp, cancellation), and a counter
 * would then stay raised for the rest of the thread's life; a later call at or above the recorded
 * address proves that the earlier one has ended. On another stack of the same thread (a coroutine,
 * a signal handler's) the answer can be wrong while the call lasts.
 */
#ifndef TFH_HOOK_WITHIN_H
#define TFH_HOOK_WITHIN_H

#include <stdbool.h>

/* Thread-local; NULL: inside none. */
typedef const char *tfh_within;

#define TFH_HERE ((tfh_within)__builtin_frame_address(0))

/* True within a call that put its TFH_HERE into `mark` and has not been left. */
static inline bool tfh_is_within(tfh_within mark, tfh_within here)
{
	return mark && here < mark;
}

#endif
