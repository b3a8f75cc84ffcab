/*
 * Follows the recording of one process while it runs: the records of its last seconds, from its
 * segment files and its journal, each read once. It neither stops the process nor writes to its
 * files.
 */
#ifndef TFH_TOP_FOLLOW_H
#define TFH_TOP_FOLLOW_H

#include "base/arena.h"
#include "format/journal_view.h"
#include "format/tft_read.h"

#define TFH_FOLLOW_RECORDS (1u << 18) /* most records kept, per process: 16 MiB */
#define TFH_FOLLOW_CALLS 64u	      /* calls in flight, per process */

struct tfh_follow;

/* A call in flight: the outermost one of a thread. */
struct tfh_follow_call {
	uint32_t tid;
	const char *fn; /* owned by the follower */
	double since_s;
	char name[64]; /* of the thread */
};

/* The state of a process, as of the last tfh_follow_poll() or tfh_follow_read(). */
struct tfh_follow_state {
	const char *host; /* owned by the follower */
	uint32_t pid;
	int32_t rank;	/* -1: unknown */
	bool alive;	/* the process records, on this machine */
	uint64_t steps; /* batches or marks so far; 0: it counts none */
	uint64_t dropped;
	double paused_s;   /* time since recording paused for a full disk; 0: it has not */
	double recorder_s; /* processor time of the recorder's thread */
	double age_s;	   /* since it began to record */
	struct tfh_follow_call call[TFH_FOLLOW_CALLS];
	uint32_t n_call;
};

/* Follows the process whose segments are DIR/PREFIX.n.tft; `newest` is the number of the newest
 * one. `journal`: path of its journal, NULL: there is none on this machine. 0 or -errno. */
int tfh_follow_new(const char *dir, const char *prefix, uint32_t newest, const char *journal,
		   struct tfh_follow **out);
void tfh_follow_free(struct tfh_follow *f);

const char *tfh_follow_prefix(const struct tfh_follow *f);
/* Seconds from the newest entry in its files to the moment when the files were found; 0 with a
 * journal. */
double tfh_follow_silent(const struct tfh_follow *f);
/* Reads the journal's counters and calls in flight, not its records. */
void tfh_follow_poll(struct tfh_follow *f, struct tfh_follow_state *s);
/* Reads new records and drops those older than that many seconds. 0 or -ENOMEM. What cannot be read
 * is left out. */
int tfh_follow_read(struct tfh_follow *f, double seconds);
/* Writes the records as a segment to a file in memory, with the names and allocations that they
 * refer to. Returns its descriptor, which the caller closes; -ENODATA: there are none yet; or
 * another -errno. */
int tfh_follow_write(struct tfh_follow *f);

#endif
