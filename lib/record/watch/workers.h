/*
 * Child processes that make batches: children of the driving threads, and children of those (of a
 * fork server), that run the same program as this one. They make no recorded call, so the flusher
 * samples them, each time a random one: what its main thread waits for, and its line of Python.
 * Nothing in a child is stopped or changed.
 */
#ifndef TFH_RECORD_WATCH_WORKERS_H
#define TFH_RECORD_WATCH_WORKERS_H

#include <stdbool.h>
#include <stdint.h>

/* All functions are called on the flusher. */

/* Finds the workers; called from time to time. `tid`: the threads whose children they are. */
void tfh_workers_choose(const uint32_t *tid, uint32_t n);
/* Samples one worker, if there is any. `ns`: the time of a thread that a sample represents. */
void tfh_workers_sample(uint64_t random, uint64_t ns);
/* Whether one has ended since they were chosen: others may have taken its place. */
bool tfh_workers_ended(void);
/* Why workers are not sampled; NULL: nothing prevents it. */
const char *tfh_workers_why(void);
/* In a forked child, or for a new recording of the same process. */
void tfh_workers_forget(void);

#endif
