/*
 * Looks: at random moments (10 ms apart on average) the flusher samples what the driving threads do
 * outside of recorded calls, without stopping them, and while one of them waits, what another thread
 * of Python does. A look costs 50 to 200 us of a thread that was asleep; the mean grows so that all of
 * them together stay under half a percent of a processor, but for the first 30 ms: a short run needs
 * some, too, and its steps most of these.
 *
 * The distances are those of a Poisson process, so that looks see the states of a thread in
 * proportion to their time, whatever rhythm the job has.
 */
#ifndef TFH_RECORD_LOOKS_H
#define TFH_RECORD_LOOKS_H

#include <stdint.h>

/* All on the flusher. */

/* Once, before the first round. */
void tfh_looks_begin(void);
/* How long until the next look, ns; UINT64_MAX: there are none. */
uint64_t tfh_looks_wait(uint64_t now_ns);
/* Looks, if it is time. */
void tfh_looks_take(uint64_t now_ns);
/* Why there are none, NULL: there are. */
const char *tfh_looks_why(void);
/* Why they have no lines of Python, NULL: nothing keeps them from it. */
const char *tfh_looks_why_no_lines(void);
/* Forked child, or a new recording of the same process. */
void tfh_looks_forget(void);

#endif
