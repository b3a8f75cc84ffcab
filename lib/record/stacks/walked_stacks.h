/*
 * Backtraces that the main thread has taken before. Walking 25 frames takes libunwind several us
 * after a wait, when its tables have left the processor's caches, and needs about ten system calls
 * to be safe. A known stack is recognised in 0.1 us: same address of the frame, same Python frames,
 * and every return address still where it was.
 *
 * Only the main thread's stack stays mapped for as long as the process lives, so only its addresses
 * may be read again without a system call. In theory a stack can be mistaken for a known one: if,
 * in each frame in which the two differ, the word that held the old return address was not
 * overwritten.
 */
#ifndef TFH_RECORD_STACKS_WALKED_STACKS_H
#define TFH_RECORD_STACKS_WALKED_STACKS_H

#include <stdint.h>

#include "record/stacks/stacks.h"

#define TFH_WALKED_STACKS 256u

struct tfh_walked_stack {
	uintptr_t here;	 /* address of the frame that asked */
	uint32_t place;	 /* of its Python frames */
	uint32_t number; /* 0: free */
	uint32_t n;
	uint32_t offset[TFH_STACK_FRAMES]; /* of each return address from `here`, in words */
	uintptr_t address[TFH_STACK_FRAMES];
};

/* Number of the known stack that the caller's frame is in; 0: none. `here` is an address in the
 * main thread's stack. */
uint32_t tfh_walked_stack(const struct tfh_walked_stack *known, uintptr_t here, uint32_t place);

/* Stores a stack under its number. `frame`: the n return addresses that lie above `here`, the
 * innermost first. Does nothing if one of them is not found. The caller blocks signals. */
void tfh_keep_walk(struct tfh_walked_stack *known, uintptr_t here, uint32_t place,
		   void *const *frame, uint32_t n, uint32_t number);

#endif
