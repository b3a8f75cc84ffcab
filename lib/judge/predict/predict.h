/*
 * The fourth phase: what would be gained by removing a class of blocking time.
 */
#ifndef TFH_JUDGE_PREDICT_H
#define TFH_JUDGE_PREDICT_H

#include "judge/account/device.h"

/* replay.c: times the windows in memory anew, once per entry of the closed list; a tfh_sample_fn.
 */
int tfh_replay(struct tfh_device *d);

/* xprof.c: shares of the step by XProf's rules, of the windows that were timed anew */
void tfh_xprof_add(struct tfh_device *d);
void tfh_xprof_fill(const struct tfh_device *d, double share[TFH_XPROF_COUNT]);

/* gain.c: what the replays say */
void tfh_device_whatif(struct tfh_device *d, struct tfh_result *r);
enum tfh_cause tfh_compute_cause(const struct tfh_device *d);
void tfh_device_stages(const struct tfh_device *d, struct tfh_result *r);
int tfh_device_tables(struct tfh_device *d, struct tfh_result *r);

/* supply.c: how fast batches could come */
void tfh_find_supply(struct tfh_job *job, struct tfh_result *r);

/* whatif.c: ceilings from the accounts alone */
void tfh_whatif(struct tfh_job *job, struct tfh_result *r);

#endif
