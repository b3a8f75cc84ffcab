/*
 * Samples: at random moments, 10 ms apart on average, the flusher records what the driving threads
 * do outside of recorded calls, without stopping them. While one of them waits, it also samples
 * another thread that runs Python. A sample costs the flusher, which was asleep, 50 to 100 us of
 * CPU time. The mean interval grows so that all samples together stay below 0.2 percent of one CPU,
 * except for the first 20 ms: a short run needs samples, too, most of them in its steps.
 *
 * The intervals are those of a Poisson process, so the samples show a thread's states in proportion
 * to their time, whatever period the job has.
 */
#ifndef TFH_RECORD_WATCH_STACK_SAMPLES_H
#define TFH_RECORD_WATCH_STACK_SAMPLES_H

#include <stdint.h>

/* All functions are called on the flusher. */

/* Called once, before the first round. `function`: the start routine of the flusher's thread. */
void tfh_sampling_begin(uint64_t function);
/* Time until the next sample, in ns; UINT64_MAX: there are none. */
uint64_t tfh_sampling_wait(uint64_t now_ns);
/* The flusher goes to sleep: what it uses from now on counts as the next sample's cost. */
void tfh_sampling_rest(void);
/* Takes a sample if it is due. */
void tfh_sampling_take(uint64_t now_ns);
/* Why there are no samples; NULL: there are. */
const char *tfh_sampling_why(void);
/* Why samples have no Python lines; NULL: nothing prevents it. */
const char *tfh_sampling_why_no_lines(void);
/* In a forked child, or for a new recording of the same process. */
void tfh_sampling_forget(void);

#endif
