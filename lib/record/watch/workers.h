/*
 * Child processes that make batches: those of the driving threads, and theirs (a fork server's), that run the same
 * program as this one. They make no recorded call, so the flusher looks at them, one random one each time: what its main
 * thread waits for, and its line of Python. Nothing of a child is stopped or changed.
 */
#ifndef TFH_RECORD_WORKERS_H
#define TFH_RECORD_WORKERS_H

#include <stdint.h>

/* All on the flusher. */

/* Finds them; from time to time. `tid`: the threads whose children they are. */
void tfh_workers_choose(const uint32_t *tid, uint32_t n);
/* Looks at one, if there is any; ns: of a thread's time that a look stands for. */
void tfh_workers_look(uint64_t random, uint64_t ns);
/* Why they are not looked at, NULL: nothing keeps us from it. */
const char *tfh_workers_why(void);
/* Forked child, or a new recording of the same process. */
void tfh_workers_forget(void);

#endif
