/* Dropping the segments of a run directory of which the digest has all that reports need. */
#ifndef TFH_CLI_PRUNE_H
#define TFH_CLI_PRUNE_H

#include <stdint.h>

/* A run directory with segments. */
struct tfh_prunable {
	uint64_t bytes; /* of its segments */
	uint32_t files;
	int64_t newest_s; /* when its newest file changed, in seconds of CLOCK_REALTIME */
};

/* Opens a run directory of this user's; links are not followed. Returns its descriptor; -ENOMSG: it is none, or has
 * no segments; -EPERM: it is another user's; or -errno. */
int tfh_prune_open(int at, const char *name, struct tfh_prunable *out);

/* Why its segments must stay; NULL: they may go. */
const char *tfh_prune_refused(int dir, const struct tfh_prunable *run);

/* Removes its segments, except those that have changed since `run` was filled. Returns 0 or -errno. */
int tfh_prune_drop(int dir, const struct tfh_prunable *run);

#endif
