/* Internals of the join of ops with their calls: issue.c reads calls and matches by CUPTI's driver
 * records, issue_rank.c by the order of calls. */
#ifndef TFH_MODEL_OPS_ISSUE_H
#define TFH_MODEL_OPS_ISSUE_H

#include "model/ops/device_ops.h"

/* A wait's record usually follows the end of the op it waited for within this time, ns. */
#define TFH_JOIN_WAIT_NS 100000000
#define TFH_JOIN_WAITS 1024u

struct lane;
struct slot;
struct tfh_join {
	struct tfh_run *run;
	uint32_t process;
	struct tfh_rows *drvr;
	/* reader of host records; NULL: there are none, or the caller supplies them */
	struct tfh_interleave *interleave;
	struct tfh_block *block;
	int64_t now; /* every call that ended earlier is in a queue; INT64_MAX at the end */
	bool last_block;
	/* fed: records come by tfh_join_feed; waits: more must be supplied before the next
	 * answer */
	bool fed, waits;
	bool passed;	     /* the losses before the next op have been handled */
	bool late;	     /* CUPTI reported a call before its thread had a name */
	struct slot *slot;   /* by correlation id modulo ISSUES */
	struct lane *lane;   /* open-addressed by id */
	uint32_t *thread_id; /* by index of the thread in the process: low half of pthread_self() */
	struct lane **lane_by_thread; /* likewise; NULL: to be looked up */
	/* Lane of the previous driver record, whose tid is record_tid. */
	struct lane *record_lane;
	uint32_t record_tid;
	struct {
		uint32_t tid, id;
	} * alias;		   /* by tid, modulo LANES */
	struct tfh_by_order *rank; /* used where CUPTI recorded no calls */
	int64_t last;		   /* latest end of the ops taken so far */
	/* End of a loss; matching starts again after it. INT64_MIN: none pending. */
	int64_t resync;
	uint32_t span; /* index of the next span */
	bool early;    /* calls were made before there were device times */
	int64_t *wait; /* ring with the ends of the last TFH_JOIN_WAITS waits for the device */
	uint32_t n_wait;
	struct tfh_names names;
	struct tfh_arena arena;
	struct tfh_name_part *part;
	uint32_t hole; /* index of the next hole */
	int err;
};

/* Reads host records to the end of the block; false if none are left, or none are available yet. */
bool tfh_join_read_on(struct tfh_join *j);
/* Hash of what an op and its call have in common. */
uint32_t tfh_join_key(uint8_t family, const char *name, uint64_t bytes);
/* Begin of the first span with device times. */
int64_t tfh_join_begin(const struct tfh_join *j);

#endif
