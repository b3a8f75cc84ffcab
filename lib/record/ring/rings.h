/* A thread's ring and its state: the slow paths of record.h. For the folders above this one; hooks
 * use record.h. */
#ifndef TFH_RECORD_RING_RINGS_H
#define TFH_RECORD_RING_RINGS_H

#include "record/process/recorder.h"

/* ---- abandoned.c ---- */

/* Like tfh_self_settle(), as seen from stack address `at`. */
void tfh_settle_at(struct tfh_self *self, uint64_t at);

/* Whether this is a signal handler on an alternate stack. */
bool tfh_on_signal_stack(void);

/* Closes the open call that began at `begin`, whichever thread's ring it is on. */
void tfh_close_elsewhere(uint64_t begin);

/* ---- thread_ring.c ---- */

/* Gives the thread a ring where this process records now. Returns false if none is available. */
bool tfh_thread_ring(struct tfh_self *self);
/* In a forked child: clears the surviving thread's pointers, which refer to the parent. */
void tfh_self_forked(struct tfh_self *self);

/* ---- self.c ---- */

/* A thread that got no ring tries again after about 5 ms (2^24 ticks of a 3 GHz counter). */
#define TFH_RETRY_TICKS (1u << 24)

/* Counts a call whose record found no room in the ring. Called by the ring's thread. */
void tfh_count_drop(struct tft_ring *ring);
/* Makes a new ring the thread's own. Returns false if none is available. */
bool tfh_ring_in_journal(struct tfh_self *self, bool large);
bool tfh_ring_in_memory(struct tfh_self *self);
/* Retires the ring. The flusher drains what it holds. */
void tfh_ring_retire(struct tft_ring *ring);
/* Enclose taking a ring from the journal. If the first returns false, the recording is ending and
 * no ring may be taken; the second must be called all the same. */
bool tfh_taking_begin(void);
void tfh_taking_end(void);
/* In mode DEAD: waits until no thread is taking a ring. None will while the mode lasts, so the
 * journal may be dropped. */
bool tfh_rings_quiet(void);
/* In a forked child: no thread is taking a ring. */
void tfh_rings_forked(void);

/* ---- confined.c ---- */

/* Counts a call of a thread that may read no clock. */
void tfh_confined_call(struct tfh_self *self);
/* Whether the calling thread lost access to the clock unobserved, for example in its parent. */
bool tfh_counter_refused(void);

/* ---- intern.c ---- */

void tfh_intern_forget(void);
/* Returns id and hash of a text whose NAME the caller records. The id is 0 if none is left. */
uint32_t tfh_text_number(enum tft_name kind, const char *text, size_t len, uint64_t *hash);
/* How many uses of names got no id. */
uint64_t tfh_names_left_out(void);
void tfh_self_names_free(struct tfh_self *self);

#endif
