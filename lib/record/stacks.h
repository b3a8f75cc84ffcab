/*
 * Call sites: backtraces of the calls that hurt, taken by the calling thread after the real call
 * has returned. Each distinct one is kept once and has a number, which its records cite; the
 * flusher writes them (BTRC) with the modules that their addresses lie in (MODS).
 */
#ifndef TFH_RECORD_STACKS_H
#define TFH_RECORD_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "record/record.h"

/* Return addresses kept of one backtrace, the innermost. */
#define TFH_STACK_FRAMES 48

/* What walks a stack: hook/unwind.c. */
struct tfh_stack_source {
	/* On the flusher, once: finds what it needs, its name to *by. 0 or -errno. */
	int (*open)(const char **by);
	/* Return addresses of the calling thread, the innermost first; how many. No lock of the
	 * job's, no malloc. */
	int (*walk)(void **frame, int most);
};

/* Once, at load. */
void tfh_stacks_attach(const struct tfh_stack_source *source);

#pragma GCC visibility push(hidden)
/* Calls that took fewer ticks have no backtrace; UINT64_MAX: none has. */
extern uint64_t tfh_stack_ticks;
#pragma GCC visibility pop

/* Number of the calling thread's backtrace, 0: none is wanted of this call, or none can be had.
 * Keeps errno. */
uint32_t tfh_stack_of(struct tfh_self *self, uint16_t fn, uint64_t ticks);

/* The same at the end of a pause outside of hooked calls: Python's frames alone, which cost a microsecond or two. */
uint32_t tfh_stack_of_pause(struct tfh_self *self);

/* ---- for flush.c and its neighbours, on the flusher ---- */

void tfh_stacks_open(void);
/* Writes what is new. 0 or -errno. */
int tfh_stacks_put(void);
/* The same at any time: looks whether writing has paused, and says so when it fails. */
void tfh_stacks_write(void);
/* Backtraces that found the table full. */
uint32_t tfh_stacks_unplaced(void);
/* A new segment: it gets all that there is. */
void tfh_stacks_new_segment(void);
/* Forked child, or a new recording of the same process. */
void tfh_stacks_forget(void);

#endif
