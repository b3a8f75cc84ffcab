/*
 * Protects a section of our own code on a thread of the job that must complete. A signal handler
 * that leaves it by siglongjmp, or a cancellation, would leave a recording that never starts, a
 * lock that stays held, or a ring without an owner. So signals and cancellation are deferred, and
 * calls that handlers make are then recorded as usual.
 */
#ifndef TFH_RECORD_PROCESS_STEADY_H
#define TFH_RECORD_PROCESS_STEADY_H

#include <signal.h>
#include <stdbool.h>

struct tfh_steady {
	sigset_t old;
	bool blocked;
	int cancel; /* state to restore */
};

/* For about 10 us, or up to 10 ms if memory is short: blocks all signals of the calling thread,
 * except those that its own code raises (a sandbox answers system calls with SIGSYS). */
void tfh_steady_begin(struct tfh_steady *s);
/* For a longer section (opening files, perhaps on a file system that hangs): unblocks signals
 * without a handler, which end or stop the process as usual. */
void tfh_steady_long(const struct tfh_steady *s);
void tfh_steady_end(const struct tfh_steady *s);

#endif
