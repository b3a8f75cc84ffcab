/*
 * What a thread of this process waits for, read from /proc/self/task/TID/syscall without stopping
 * it (3 to 8 us). The kernel shows the system call that the thread is in, and its arguments.
 */
#ifndef TFH_SAMPLING_WAITING_H
#define TFH_SAMPLING_WAITING_H

#include <stddef.h>
#include <stdint.h>

#include "format/layout.h"
#include "sampling/futex.h"

#define TFH_WAITING_NAME 256

struct tfh_waiting {
	enum tft_state state;
	enum tft_wait wait; /* of a lock, in this process */
	uint16_t call;	    /* its number in base/system_calls.def; 0xffff: none of them */
	int32_t fd;	    /* descriptor that it reads, writes or polls; -1: none */
	/* Address of the lock, number of the thread whose end it waits for, or of the pipe or
	 * socket; of a poll, its time-out in ms plus 1. 0: none. */
	uint64_t what;
	/* name of the file or device, cut at its beginning, or who holds a mutex (holder.h); "":
	 * none. */
	char name[TFH_WAITING_NAME];
};

/* Sets where Python's global interpreter lock is. Called once, at load. */
void tfh_waiting_python(const void *runtime, size_t bytes);
/* Opens a descriptor for sampling a thread of a process (0: this one); the caller closes it.
 * -ESRCH: the thread no longer exists. -EACCES, -EPERM, -ENOENT: why the kernel does not show
 * it. */
int tfh_waiting_open(int32_t pid, uint32_t tid);
/* Returns 0, -ESRCH or one of the errors above. */
int tfh_waiting_sample(int fd, int32_t pid, uint32_t tid, struct tfh_waiting *out);

/* ---- for tests ---- */

/* Parses the text of /proc/self/task/TID/syscall; *arg: the numbers after that of the call. */
void tfh_waiting_parse(const char *text, struct tfh_waiting *out, uint64_t arg[TFH_CALL_WORDS]);
/* Interprets the target of a descriptor's link; `out->state` is the direction. */
void tfh_waiting_link(const char *link, struct tfh_waiting *out);

#endif
