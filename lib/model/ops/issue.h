/* The inside of the join of ops with their calls: issue.c reads calls and goes by CUPTI's numbers, issue_rank.c by the order of
 * calls. */
#ifndef TFH_MODEL_ISSUE_H
#define TFH_MODEL_ISSUE_H

#include "model/ops/device_ops.h"

/* A call is on record this much after the op it waited for, mostly. */
#define TFH_JOIN_WAIT_NS 100000000
#define TFH_JOIN_WAITS 1024u

struct lane;
struct slot;
struct tfh_join {
	struct tfh_run *run;
	uint32_t process;
	struct tfh_rows *drvr;
	struct tfh_interleave
		*interleave; /* NULL: there are no host records, or somebody else reads them */
	struct tfh_block *block;
	int64_t now; /* every call that ended before is in a queue; INT64_MAX at the end */
	bool last_block;
	bool fed, waits;   /* by tfh_join_feed; for more of it, before anything else can be told */
	bool passed;	   /* losses before the next op have been got over */
	bool late;	   /* CUPTI told of a call before its thread had a name */
	struct slot *slot; /* by correlation, modulo ISSUES */
	struct lane *lane; /* open-addressed by id */
	uint32_t *thread_id; /* by index of the thread in the process: low half of pthread_self() */
	struct lane **lane_by_thread; /* likewise; NULL: to be looked up */
	struct lane *record_lane;     /* of the driver record before, which was of record_tid */
	uint32_t record_tid;
	struct {
		uint32_t tid, id;
	} * alias;		   /* by tid, modulo LANES */
	struct tfh_by_order *rank; /* without records of calls */
	int64_t last;		   /* end of the ops taken so far */
	int64_t resync;		   /* a loss ends here; INT64_MIN: none has to be got over */
	uint32_t span;		   /* next one to come */
	bool early;		   /* calls were made before there were device times */
	int64_t *wait; /* ends of the last TFH_JOIN_WAITS waits for the device, a ring */
	uint32_t n_wait;
	struct tfh_names names;
	struct tfh_arena arena;
	struct tfh_name_part *part;
	uint32_t hole; /* next one to come */
	int err;
};

/* Reads host records on to the end of the block; false: there are none left, or none just now. */
bool tfh_join_read_on(struct tfh_join *j);
/* What an op and its call have in common. */
uint32_t tfh_join_key(uint8_t family, const char *name, uint64_t bytes);
/* When device times begin. */
int64_t tfh_join_begin(const struct tfh_join *j);

#endif
