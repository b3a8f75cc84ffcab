/*
 * "This thread is within such a call": told by the call's place on the stack, not by a counter. A
 * call can be left without a return (an exception, longjmp, cancellation), and a counter would stay
 * raised for the rest of the thread's life; a later call at or above the place shows that it was
 * left. Another stack of the same thread (a coroutine, a signal's) may make the answer wrong for as
 * long as the call lasts.
 */
#ifndef TFH_HOOK_WITHIN_H
#define TFH_HOOK_WITHIN_H

#include <stdbool.h>

/* Thread-local; NULL: within none. */
typedef const char *tfh_within;

#define TFH_HERE ((tfh_within)__builtin_frame_address(0))

/* True within a call that put its TFH_HERE into `mark` and has not been left. */
static inline bool tfh_is_within(tfh_within mark, tfh_within here)
{
	return mark && here < mark;
}

#endif
