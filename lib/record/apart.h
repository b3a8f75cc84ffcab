/*
 * Descriptors of our own, which the job never sees. The flusher leaves the table of descriptors
 * that the job's threads share and opens its files in an empty one of its own: no number of the
 * job's is taken, none of ours is inherited, closed or used by it, and a program that closes or
 * counts all it has finds what it had. The lock of the journal lies there, too: it goes with the
 * flusher, which ends with the process or at an exec.
 *
 * What has to happen among the job's descriptors a helper thread does, which keeps them. It is
 * there from the beginning: where a job's last thread ends, exit handlers of the job's run on the
 * last thread of ours, and need them.
 *
 * Kernels before 5.14 cannot (close_range with CLOSE_RANGE_UNSHARE is of 5.9; the room for rings is
 * made through the mapping, MADV_POPULATE_WRITE), and a sandbox may refuse it: then files are open
 * in the job's table, at numbers that programs come to last.
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
	uint32_t turn;	  /* atomic, futex: the helper's or the flusher's; enum in apart.c */
	void (*call)(void *);
	void *arg;
};

/* On the flusher, before it opens anything: leaves the job's table. The journal's descriptor comes
 * along. NULL: there is no helper, and the table is the job's. */
struct tfh_helper *tfh_apart_begin(void);
/* The recording is over: nobody is to look for the flusher's table any more, which goes with it. */
void tfh_apart_over(void);
/* On the flusher, which ends right after: so does its helper. `last`: they are the process' last
 * threads, and the one that ends last takes the job's signals again. */
void tfh_apart_end(struct tfh_helper *helper, bool last);
/* Starter: once the flusher has it, the journal's descriptor goes from the job's table. Waits for
 * that 100 ms at most. */
void tfh_apart_hand_over(void);
/* Does the flusher have a table of its own? Any thread. */
bool tfh_is_apart(void);

/*
 * Makes a call that may use the job's descriptors: the driver's, CUPTI's, standard error. Where the
 * flusher has none of them, a helper thread makes it and the flusher waits for its end. On any
 * other thread it is made at once.
 */
void tfh_among_job(void (*call)(void *), void *arg);
/* Is this thread the helper? */
bool tfh_on_helper(void);

#endif
