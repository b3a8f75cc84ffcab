/* Random sampling times, as of a Poisson process: no period of the job can hide from them. */
#ifndef TFH_SAMPLING_MOMENTS_H
#define TFH_SAMPLING_MOMENTS_H

#include <stdint.h>

/* The next number of a sequence (xorshift). *state must not be 0, and never becomes 0. */
uint64_t tfh_draw(uint64_t *state);
/* Time to the next sample in ns: exponentially distributed with mean mean_ns, at most eight times
 * that. */
uint64_t tfh_draw_wait(uint64_t *state, uint64_t mean_ns);

#endif
