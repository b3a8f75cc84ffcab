/*
 * The fourth phase: what would be gained by removing a class of blocking time. Samples of windows
 * are taken while they are in memory for their accounts, and timed anew without it.
 */
#ifndef TFH_JUDGE_PREDICT_H
#define TFH_JUDGE_PREDICT_H

#include "judge/account/device.h"

/* One window timed anew, per step. */
struct tfh_replayed {
	double s, was; /* seconds now, and as recorded */
	uint32_t steps;
};
struct tfh_replays {
	TFH_VEC(struct tfh_replayed) of; /* in order of time */
	double mean, error, was;	 /* once all are there: per step; standard error */
	double raw;			 /* mean without the cutting of outliers */
	uint64_t steps;
	uint64_t woken, windows; /* waits that sleep only now; in so many windows */
};

struct tfh_samples {
	/* Last but one: nothing removed; last: input, on a crowded machine. */
	struct tfh_replays replay[TFH_REMOVE_COUNT + 2];
	double xprof[TFH_XPROF_COUNT]; /* ns */
};

/* replay.c: times the windows in memory anew, once per entry of the closed list; a tfh_sample_fn.
 */
int tfh_sample(void *samples, const struct tfh_device *d);
void tfh_samples_free(struct tfh_samples *all);

/* xprof.c: shares of the step by XProf's rules */
void tfh_xprof_add(struct tfh_samples *all, const struct tfh_device *d);
void tfh_xprof_fill(const struct tfh_samples *all, double share[TFH_XPROF_COUNT]);

/* gain.c: what the samples say */
void tfh_device_whatif(const struct tfh_device *d, struct tfh_samples *all, struct tfh_result *r);
void tfh_device_stages(const struct tfh_device *d, struct tfh_result *r);
int tfh_device_tables(const struct tfh_device *d, struct tfh_result *r);

/* supply.c: how fast batches could come */
void tfh_find_supply(const struct tfh_accounts *accounts, struct tfh_result *r);

/* whatif.c: ceilings from the accounts alone */
void tfh_whatif(const struct tfh_accounts *accounts, struct tfh_result *r);

#endif
