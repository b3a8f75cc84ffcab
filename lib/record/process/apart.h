/*
 * Descriptors that the job never sees. The flusher leaves the descriptor table that the job's
 * threads share and opens its files in an empty table of its own. So it takes none of the job's
 * descriptor numbers, the job cannot inherit, close or use its files, and a program that closes or
 * counts all its descriptors finds only its own. The journal's lock is there, too: it is released
 * when the flusher ends, with the process or at an exec.
 *
 * A helper thread stays in the job's table and does the work that must happen there. It exists from
 * the beginning, because when the job's last thread ends, the job's exit handlers run on our last
 * thread and need those descriptors.
 *
 * Kernels before 5.14 cannot do this (CLOSE_RANGE_UNSHARE came with 5.9, MADV_POPULATE_WRITE, which
 * allocates space for rings through the mapping, with 5.14), and a sandbox may refuse it. Files are
 * then open in the job's table, at numbers that programs rarely reach.
 */
#ifndef TFH_RECORD_PROCESS_APART_H
#define TFH_RECORD_PROCESS_APART_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct tfh_helper {
	pthread_t flusher;
	sigset_t signals;   /* of the job */
	void (*last)(void); /* if not NULL, the process ends with the helper, which calls this */
	/* Atomic, futex: whose turn it is, the helper's or the flusher's; enum in apart.c. */
	uint32_t turn;
	void (*call)(void *);
	void *arg;
};

/* Called by the starting thread. `job`: the signals that the job's last thread unblocks again. */
void tfh_apart_signals(const sigset_t *job);
/* `thread` is the flusher; 0: there is no longer one. */
void tfh_flusher_is(pthread_t thread);
/* Whether the calling thread writes the recording. Functions of the job must not be called on that
 * thread. */
bool tfh_on_flusher(void);
/* Called on the flusher before it opens anything. If `able`, leaves the job's table and takes
 * descriptor `keep` along (-1: none). Returns NULL if there is no helper and the table is the
 * job's. */
struct tfh_helper *tfh_apart_begin(bool able, int keep);
/* Number of threads that the flusher and its helper use. */
unsigned tfh_apart_threads(void);
/* The recording is over. Nothing may use the flusher's table from now on; it disappears with the
 * flusher. */
void tfh_apart_over(void);
/* Called on the flusher, which ends right after, as does its helper. If `last` is not NULL, they
 * are the process's last threads; whichever ends last restores the job's signals and calls it. */
void tfh_apart_end(struct tfh_helper *helper, void (*last)(void));
/* Called by the starting thread: waits at most 100 ms for the flusher to begin. Returns true if it
 * has a table of its own; its files may then be closed in the job's. */
bool tfh_apart_decided(void);
/* In a forked child, or after a failed exec: a new flusher may begin. */
void tfh_apart_forget(void);
/* Whether the flusher has a table of its own. Thread-safe. */
bool tfh_is_apart(void);

/*
 * Makes a call that may use the job's descriptors: the driver's, CUPTI's, standard error. If the
 * flusher does not share the job's table, a helper thread makes the call and the flusher waits for
 * it. On any other thread the call is made at once.
 */
void tfh_among_job(void (*call)(void *), void *arg);

#endif
