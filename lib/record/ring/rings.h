/* A thread's ring and what goes with it: the slow paths of record.h. For the rooms above; hooks use record.h. */
#ifndef TFH_RECORD_RINGS_H
#define TFH_RECORD_RINGS_H

#include "record/process/recorder.h"

/* ---- abandoned.c ---- */

/* Like tfh_self_settle(), as seen from stack address `at`. */
void tfh_settle_at(struct tfh_self *self, uint64_t at);

/* Is this a signal handler on a stack of its own? */
bool tfh_on_signal_stack(void);

/* Closes the open call that began at `begin`, whichever thread's ring it is on. */
void tfh_close_elsewhere(uint64_t begin);

/* ---- thread_ring.c ---- */

/* Gives the thread a ring where this process records now; false: there is none to be had. */
bool tfh_thread_ring(struct tfh_self *self);
/* In a forked child: what the surviving thread points at belongs to the parent. */
void tfh_self_forked(struct tfh_self *self);

/* ---- self.c ---- */

/* A thread that found no room asks again after some 5 ms (2^24 ticks of a 3 GHz counter). */
#define TFH_RETRY_TICKS (1u << 24)

/* A call of the ring's thread found no room for its record. */
void tfh_count_drop(struct tft_ring *ring);
/* Makes a new ring the thread's own. False: there is none to be had. */
bool tfh_ring_in_journal(struct tfh_self *self, bool large);
bool tfh_ring_in_memory(struct tfh_self *self);
/* The ring ends here; what it holds is drained by the flusher. */
void tfh_ring_retire(struct tft_ring *ring);
/* Around taking a ring from the journal. False: the recording ends, and none is to be taken; the end comes nevertheless. */
bool tfh_taking_begin(void);
void tfh_taking_end(void);
/* In mode DEAD: waits until no thread is taking a ring, nor will while the mode lasts, so that the
 * journal may be dropped. */
bool tfh_rings_quiet(void);
/* In a forked child: no thread is. */
void tfh_rings_forked(void);

/* ---- confined.c ---- */

/* Counts a call of a thread that may read no clock. */
void tfh_confined_call(struct tfh_self *self);
/* Whether the calling thread lost the clock unobserved, for example in its parent. */
bool tfh_counter_refused(void);

/* ---- intern.c ---- */

void tfh_intern_forget(void);
/* Id and hash of a text whose NAME the caller records; 0 if ids have run out. */
uint32_t tfh_text_number(enum tft_name kind, const char *text, size_t len, uint64_t *hash);
/* Uses of names that got no id. */
uint64_t tfh_names_left_out(void);
void tfh_self_names_free(struct tfh_self *self);

#endif
