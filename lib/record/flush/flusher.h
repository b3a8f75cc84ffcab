/*
 * The flusher thread. Everything here runs on that thread. Without a flusher, it runs on the thread
 * that starts the recording, and at an exit on the exiting thread.
 */
#ifndef TFH_RECORD_FLUSH_FLUSHER_H
#define TFH_RECORD_FLUSH_FLUSHER_H

#include "record/process/recorder.h"
#include "record/process/steady.h"

/* Starts the thread. `set_up` makes what is not there yet, at least the journal (NULL: all is
 * there); then `begin` opens it for records, and `open_directory` opens the run directory if that
 * is not done either (NULL: it is). If one of them returns false, the thread ends. Returns false on
 * failure, which is reported on stderr. */
bool tfh_flusher_start(const struct tfh_steady *steady, bool (*set_up)(void), void (*begin)(void),
		       bool (*open_directory)(void));
/* Called after tfh_flusher_start() with a `set_up`: waits at most `ns` until the flusher has begun
 * to set up. If it returns false, the flusher never will: it is left to the caller, who may then
 * start another flusher. */
bool tfh_flusher_sets_up(uint64_t ns);
/* Then waits about `ns` until it has, and returns true: `begin` is left to the caller, unless the
 * state says that setting up failed. Otherwise the flusher does it. */
bool tfh_flusher_has_set_up(uint64_t ns);
/* In a forked child, or after a failed exec: a new recording may start. */
void tfh_flusher_forget(void);
/* Checks for a rank that became known after the start. Called by the job's threads, which may read
 * the job's environment. */
void tfh_find_rank(void);
/* Closes the recording on the calling thread if there is no flusher. */
void tfh_finish_here(void);

/* ---- drain.c ---- */

/* Does one round of work. `force` moves every record, not only those in rings that are filling up.
 * Returns the number of records moved. */
uint32_t tfh_drain(bool force);
/* Whether a thread soon needs a larger ring, by what was drained since the last call. */
bool tfh_drain_grows(void);
void tfh_drain_forget(void);

/* ---- open_calls.c ---- */

/* Writes OPEN records of calls that have been running for 100 ms. */
void tfh_sample_open_calls(uint64_t now_ns);
void tfh_sample_open_calls_forget(void);

/* ---- control.c ---- */

void tfh_control_poll(uint64_t now_ns);
/* Whether recording ends after a number of steps, so that records must be examined as soon as they
 * arrive. */
bool tfh_counting_steps(void);
void tfh_control_forget(void);

#endif
