/* Python's event loops: a thread that waits in one waits for a timer or for descriptors, and its
 * stack does not show which coroutine is waiting. The stack of its next call does, since that
 * coroutine makes the call. */
#ifndef TFH_JUDGE_FACTS_EVENT_LOOP_H
#define TFH_JUDGE_FACTS_EVENT_LOOP_H

#include "judge/facts/sample_groups.h"

/* Index of the loop's innermost frame in a stack, innermost first,
 * of a loop that runs no coroutine. n: it is none. */
uint32_t tfh_event_loop_of(const struct tfh_model_line *frame, uint32_t n);
/* Index of the coroutine's frame in a stack: the outermost of the program that the loop called. n:
 * there is none. */
uint32_t tfh_coroutine_of(const struct tfh_model_line *frame, uint32_t n);
/* A sampled poll's time-out in ns, from the first word of its record; 0: none. */
int64_t tfh_poll_timeout(uint64_t word);
/* Sets what a sample that waits in such a loop waits for, and what goes on then. */
void tfh_place_in_loop(struct tfh_stack_sample *k, const struct tfh_model_line *frame, uint32_t n,
		       const struct tfh_pause_end *to);

#endif
