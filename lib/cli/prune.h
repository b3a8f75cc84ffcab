/* Removes the segments of a run directory once its digest has everything that reports need. */
#ifndef TFH_CLI_PRUNE_H
#define TFH_CLI_PRUNE_H

#include <stdint.h>

/* A run directory with segments. */
struct tfh_prunable {
	uint64_t bytes; /* of its segments */
	uint32_t files;
	int64_t newest_s; /* when its newest file changed, in seconds of CLOCK_REALTIME */
};

/* Opens a run directory of this user. Links are not followed. Returns its descriptor, -ENOMSG if it
 * is not a run directory or has no segments, -EPERM if it is another user's, or another -errno. */
int tfh_prune_open(int at, const char *name, struct tfh_prunable *out);

/* Why its segments must stay; NULL: they may be removed. */
const char *tfh_prune_refused(int dir, const struct tfh_prunable *run);

/* Removes its segments, except those that have changed since `run` was filled. Returns 0 or
 * -errno. */
int tfh_prune_drop(int dir, const struct tfh_prunable *run);

#endif
