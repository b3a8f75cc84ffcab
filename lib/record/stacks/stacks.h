/*
 * Call sites: backtraces of expensive calls, taken by the calling thread after the real call has
 * returned. Each distinct backtrace is stored once under a number that records refer to. The
 * flusher writes them (BTRC) with the modules of their addresses (MODS).
 */
#ifndef TFH_RECORD_STACKS_STACKS_H
#define TFH_RECORD_STACKS_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "record/record.h"

/* Return addresses stored per backtrace: the innermost ones. */
#define TFH_STACK_FRAMES 48

/* Walks stacks: hook/unwind.c. */
struct tfh_stack_source {
	/* Called once, on the flusher: finds the unwinder and puts its name into *by. Returns 0 or
	 * -errno. */
	int (*open)(const char **by);
	/* Puts the calling thread's return addresses into `frame`, innermost first, and returns
	 * their number. Uses no lock of the job and no malloc. */
	int (*walk)(void **frame, int most);
	/* Libraries were unloaded: what is known of their functions no longer holds. On the
	 * flusher. */
	void (*forget)(void);
};

/* Called once, at load. */
void tfh_stacks_attach(const struct tfh_stack_source *source);

#pragma GCC visibility push(hidden)
/* Calls shorter than this get no backtrace; UINT64_MAX: no call does. */
extern uint64_t tfh_stack_ticks;
#pragma GCC visibility pop

/* Number of the calling thread's backtrace; 0: not wanted for this call, or not available.
 * Preserves errno. */
uint32_t tfh_stack_of(struct tfh_self *self, uint16_t fn, uint64_t ticks);

/* Like tfh_stack_of(), at the end of a pause outside hooked calls or of a backward pass: Python
 * frames, which take a microsecond or two. In a process without Python it is a backtrace, as often
 * as that takes at most 0.5 % of the thread's time. */
uint32_t tfh_stack_of_pause(struct tfh_self *self);

/* ---- called on the flusher; `segment`: a new one gets all existing backtraces ---- */

struct tft_writer;
void tfh_stacks_open(void);
/* Sees whether libraries were unloaded. */
void tfh_stacks_look(void);
/* Whether there are backtraces that the segment lacks. */
bool tfh_stacks_waiting(uint32_t segment);
/* Writes those backtraces. Returns 0 or -errno. */
int tfh_stacks_put(struct tft_writer *w, uint32_t segment);
/* How many backtraces did not fit. */
uint32_t tfh_stacks_unplaced(void);
/* In a forked child, or for a new recording of the same process. */
void tfh_stacks_forget(void);

#endif
