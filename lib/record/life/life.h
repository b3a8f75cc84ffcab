/* Begin and end of a recording in a process. */
#ifndef TFH_RECORD_LIFE_LIFE_H
#define TFH_RECORD_LIFE_LIFE_H

#include "record/process/recorder.h"
#include "record/process/steady.h"

/* ---- init.c ---- */

/* Returns 0 if this process may record (a forked child now has its own state). -EAGAIN: no memory,
 * or too early. -ECHILD: a vfork child, which must not touch anything. */
int tfh_process_check(void);
/* Whether the process' system call filters let the recorder work (process/filters.h). If not,
 * nothing is recorded. */
bool tfh_may_begin(void);
/* When the first hooked call came; 0 in a child of a process that may not read the clock. */
struct tft_clock_triple tfh_first_clock(void);
/* Forgets one recording. Options, identity and the job's requests stay. */
void tfh_forget_recording(void);

/* ---- start.c ---- */

/* Changes COLD to ON, OFF or DEAD, usually within a second. The caller has called
 * tfh_steady_begin(). */
void tfh_start(const struct tfh_steady *steady);

/* ---- start_wait.c ---- */

#define TFH_START_MS 1000

/* At the end of the process: waits once, at most `ms`, for a recording that another thread is just
 * starting. Otherwise its journal would be left open. */
void tfh_start_wait(unsigned ms);
/* In a first copy or launch: waits at most `ms` for the journal. */
void tfh_wait_for_journal(unsigned ms);
/* Sets the state and wakes the waiting threads. */
void tfh_start_ended(uint32_t state);
/* Sets the process in which a thread of ours begins the recording; 0: it is done. */
void tfh_aside(uint32_t pid);
/* The process is about to end: no recording may start, and one that is just starting leaves no
 * journal. */
void tfh_start_never(void);

/* ---- finish.c: tfh_flush_now() and tfh_finish() with a deadline, in ns of CLOCK_MONOTONIC ---- */

int tfh_flush_by(uint64_t end);
/* `mode`: for later calls. */
void tfh_finish_by(bool clean, enum tfh_mode mode, uint64_t end);

/* ---- exit.c ---- */

/* In a forked child: a thread of the parent may have been about to register the exit handler. */
void tfh_exit_forked(void);

#endif
