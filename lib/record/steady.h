/*
 * A stretch of our own code on a thread of the job that has to come to its end: a handler of the
 * job's that leaves it by siglongjmp, or a cancellation, would leave a recording that never begins,
 * a lock that stays taken, a ring that is nobody's. They wait, and calls that handlers make are
 * then recorded as any others.
 */
#ifndef TFH_RECORD_STEADY_H
#define TFH_RECORD_STEADY_H

#include <signal.h>
#include <stdbool.h>

struct tfh_steady {
	sigset_t old;
	bool blocked;
	int cancel; /* state to go back to */
};

/* For some 10 us, up to 10 ms where memory is short: all signals of the calling thread wait, but
 * those that its own code raises (a sandbox answers system calls with SIGSYS). */
void tfh_steady_begin(struct tfh_steady *s);
/* For longer from here on (files are opened, maybe on a file system that hangs): signals without a
 * handler come through, which end or stop the process as they would without us. */
void tfh_steady_long(const struct tfh_steady *s);
void tfh_steady_end(const struct tfh_steady *s);

#endif
