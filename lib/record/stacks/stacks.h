/*
 * Call sites: backtraces of expensive calls, taken by the calling thread after the real call has
 * returned. Each distinct backtrace is stored once under a number that records refer to. The
 * flusher writes them (BTRC) with the modules of their addresses (MODS).
 */
#ifndef TFH_RECORD_STACKS_H
#define TFH_RECORD_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "record/record.h"

/* Stored return addresses of one backtrace, the innermost. */
#define TFH_STACK_FRAMES 48

/* Walks stacks: hook/unwind.c. */
struct tfh_stack_source {
	/* Called once, on the flusher: finds the unwinder, with its name in *by. 0 or -errno. */
	int (*open)(const char **by);
	/* Return addresses of the calling thread, innermost first; returns their number. Without
	 * locks of the job or malloc. */
	int (*walk)(void **frame, int most);
};

/* Called once, at load. */
void tfh_stacks_attach(const struct tfh_stack_source *source);

#pragma GCC visibility push(hidden)
/* Calls shorter than this get no backtrace; UINT64_MAX: none does. */
extern uint64_t tfh_stack_ticks;
#pragma GCC visibility pop

/* Number of the calling thread's backtrace, 0: not wanted for this call, or not available.
 * Preserves errno. */
uint32_t tfh_stack_of(struct tfh_self *self, uint16_t fn, uint64_t ticks);

/* The same at the end of a pause outside hooked calls: only Python frames, which take a microsecond
 * or two. */
uint32_t tfh_stack_of_pause(struct tfh_self *self);

/* ---- called on the flusher; `segment`: its number, since a new one gets all existing backtraces ---- */

struct tft_writer;
void tfh_stacks_open(void);
/* Whether there are some that the segment lacks. */
bool tfh_stacks_waiting(uint32_t segment);
/* Writes them. 0 or -errno. */
int tfh_stacks_put(struct tft_writer *w, uint32_t segment);
/* Backtraces that did not fit. */
uint32_t tfh_stacks_unplaced(void);
/* In a forked child, or for a new recording of the same process. */
void tfh_stacks_forget(void);

#endif
