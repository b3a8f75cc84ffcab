/*
 * Requests of the job's threads to the flusher. They never call it: they increment a request count,
 * wake it, and wait for the answer's count with a time limit. All fields are atomic.
 */
#ifndef TFH_RECORD_PROCESS_REQUESTS_H
#define TFH_RECORD_PROCESS_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

enum tfh_flusher_state { TFH_FLUSHER_NONE, TFH_FLUSHER_MADE = 2, TFH_FLUSHER_FAILED };

struct tfh_requests {
	uint32_t flusher;      /* enum tfh_flusher_state */
	uint32_t asleep;       /* futex */
	uint32_t flush_asked;  /* counts up */
	uint32_t flush_done;   /* futex; counts up to flush_asked */
	uint32_t finish_asked; /* 0, 1 unclean, 2 clean */
	uint32_t finish_done;  /* futex */
	uint32_t gave_up;      /* a wait for it timed out: nobody waits for it again */
	/* CLOCK_MONOTONIC when the flusher entered CUPTI; 0: it is not in CUPTI. */
	uint64_t foreign_ns;
	bool start_waited; /* a thread waited a whole second for the journal */
	/* The process is ending: a recording that is just starting must leave nothing. */
	bool start_unwanted;
};
extern struct tfh_requests tfh_requests;

/* Wakes the flusher. Makes a system call only if it sleeps. Thread-safe. */
void tfh_flusher_wake(void);
/* Called on the flusher: sleeps at most `ns`, or until a request. Returns true if the time passed
 * without a request. */
bool tfh_flusher_sleep(uint64_t ns);
/* Whether a thread waits for an answer. */
bool tfh_flusher_asked(void);
/* Whether everything was written and closed. */
bool tfh_flusher_closed(void);
/* Sleeps at most `ns` in the kernel while *word has this value. Returns true if that time is
 * over. */
bool tfh_futex_wait(uint32_t *word, uint32_t value, uint64_t ns);
void tfh_futex_wake(uint32_t *word);

#endif
