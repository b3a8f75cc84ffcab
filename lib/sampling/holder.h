/*
 * Who holds the mutex that a thread of this process waits for, and where the program asked for it.
 * glibc's mutexes have the number of their owner. The stack of a thread that sleeps in a system
 * call stays as it is, so the call of pthread_mutex_lock() can be found on it. Nothing is stopped,
 * and memory is only copied by the kernel, since all of this may change meanwhile.
 */
#ifndef TFH_SAMPLING_HOLDER_H
#define TFH_SAMPLING_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampling/futex.h"

/* Called by a thread that pthread_create() began with this function. */
void tfh_holder_begin(uint64_t function);
/* What is known of the wait with this call, of a thread that waits for a mutex, as a text
 * (FORMAT.md, 2.1, STATE). Leaves it as it is if the owner is not known. */
void tfh_holder_of(const uint64_t call[TFH_CALL_WORDS], uint32_t tid, char *text, size_t size);

#endif
