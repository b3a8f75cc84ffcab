/* Random moments to look at a thread, as those of a Poisson process: no rhythm of the job's can hide from them. */
#ifndef TFH_LOOK_MOMENTS_H
#define TFH_LOOK_MOMENTS_H

#include <stdint.h>

/* The next number of a sequence (xorshift); *state must not be 0, and is not afterwards. */
uint64_t tfh_draw(uint64_t *state);
/* Time to the next look, ns: exponentially distributed around mean_ns, at most eight times that. */
uint64_t tfh_draw_wait(uint64_t *state, uint64_t mean_ns);

#endif
