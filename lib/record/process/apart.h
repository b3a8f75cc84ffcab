/*
 * Descriptors that the job never sees. The flusher leaves the descriptor table that the job's
 * threads share and opens its files in an empty table of its own. So it takes none of the job's
 * numbers, the job inherits, closes or uses none of its files, and a program that closes or counts
 * all its descriptors finds what it had. The journal's lock is there, too: it goes with the
 * flusher, which ends with the process or at an exec.
 *
 * A helper thread keeps the job's table and does what must happen there. It exists from the
 * beginning: when a job's last thread ends, the job's exit handlers run on our last thread and need
 * those descriptors.
 *
 * Kernels before 5.14 cannot do this (CLOSE_RANGE_UNSHARE is of 5.9; space for rings is allocated
 * through the mapping with MADV_POPULATE_WRITE), and a sandbox may refuse it. Files are then open
 * in the job's table, at numbers that programs rarely reach.
 */
#ifndef TFH_RECORD_APART_H
#define TFH_RECORD_APART_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct tfh_helper {
	pthread_t flusher;
	sigset_t signals; /* of the job */
	bool last;	  /* the process ends with it */
	uint32_t turn;	  /* atomic, futex: whose turn it is, the helper's or the flusher's; enum
			   * in apart.c */
	void (*call)(void *);
	void *arg;
};

/* Called on the flusher before it opens anything: leaves the job's table and takes the journal's
 * descriptor along. NULL if there is no helper and the table is the job's. */
struct tfh_helper *tfh_apart_begin(void);
/* The recording is over: nothing may use the flusher's table any more, which disappears with it. */
void tfh_apart_over(void);
/* Called on the flusher, which ends right after, as does its helper. `last`: they are the process'
 * last threads, and whichever ends last restores the job's signals. */
void tfh_apart_end(struct tfh_helper *helper, bool last);
/* Called by the starting thread: once the flusher has the journal's descriptor, it is closed in the
 * job's table. Waits for that at most 100 ms. */
void tfh_apart_hand_over(void);
/* Whether the flusher has a table of its own. Thread-safe. */
bool tfh_is_apart(void);

/*
 * Makes a call that may use the job's descriptors: the driver's, CUPTI's, standard error. If the
 * flusher has none of them, a helper thread makes the call and the flusher waits for it. On any
 * other thread the call is made at once.
 */
void tfh_among_job(void (*call)(void *), void *arg);
/* Whether this thread is the helper. */
bool tfh_on_helper(void);

#endif
