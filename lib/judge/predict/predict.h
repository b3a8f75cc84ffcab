/*
 * The fourth phase: what removing a class of blocking time would gain. Sampled windows are replayed
 * without it while they are in memory for their accounts.
 */
#ifndef TFH_JUDGE_PREDICT_PREDICT_H
#define TFH_JUDGE_PREDICT_PREDICT_H

#include "judge/account/device.h"

/* One replayed window, per step. */
struct tfh_replayed {
	double s, was; /* predicted and recorded seconds */
	uint32_t steps;
};
struct tfh_replays {
	TFH_VEC(struct tfh_replayed) of; /* in order of time */
	/* results per step, s: mean, its standard error, and the recorded time */
	double mean, error, was;
	double raw; /* mean before outliers are clipped */
	uint64_t steps;
	/* waits that sleep only in the replay, and the windows that have such waits */
	uint64_t woken, windows;
};

/* A place of the program that is removed by itself. */
struct tfh_code_place {
	struct tfh_model_line line; /* the line with the most samples */
	uint32_t first, last;	    /* the stretch of lines around it */
	bool whole; /* the function, or only these lines, each with everything it calls */
	struct tfh_sample_part *part;
};

/* Replays besides one for each enum tfh_remove: */
enum tfh_replay {
	TFH_REPLAY_SAME = TFH_REMOVE_COUNT, /* nothing removed */
	TFH_REPLAY_CROWDED,		    /* input removed, on a busy machine */
	TFH_REPLAY_UNCROWDED,		    /* nothing removed, on a machine that is not crowded */
	TFH_REPLAY_FETCHING, /* waits removed, but not those that fetch a result from the device */
	TFH_REPLAY_COUNT,
};

struct tfh_samples {
	struct tfh_code_place place[TFH_PREDICT_PLACES]; /* the largest first */
	struct tfh_replays without[TFH_PREDICT_PLACES];
	uint32_t n_place;
	struct tfh_replays replay[TFH_REPLAY_COUNT];
	double xprof[TFH_XPROF_COUNT]; /* ns, by XProf's kinds */
};

/* replay.c: replays a slice once for each entry of the list of removals, and once without each
 * place. 0 or -ENOMEM. */
int tfh_replay(struct tfh_samples *all, const struct tfh_slice *sl);
/* replayed_slices.c: replays slices, and joins what they gave. *all must live as long as the
 * sampler. */
struct tfh_sampler tfh_sampler_of(struct tfh_samples *all);
void tfh_samples_free(struct tfh_samples *all);

/* xprof.c: shares of the step by XProf's rules */
void tfh_xprof_add(struct tfh_samples *all, const struct tfh_slice *sl);
void tfh_xprof_fill(const struct tfh_samples *all, double share[TFH_XPROF_COUNT]);

/* gain.c: predictions from the samples */
void tfh_device_whatif(const struct tfh_device *d, struct tfh_samples *all, struct tfh_result *r);
/* replay_means.c: fills in the results of `of`, whose longer steps it clips if they are rare. */
void tfh_settle_replays(struct tfh_replays *s);
/* The mean over all steps of the run, which take `step` on average. The sample may hold more or
 * fewer long steps than there are in the run; corrected by the regression estimator of sampling
 * theory, with the recorded time as the known variate. */
double tfh_for_all_steps(const struct tfh_replays *s, double step);
/* floors.c: time per step of the busiest engine, without the removed ones. `hard`: if kernels that
 * may run at once do. */
double tfh_resource_floor(const struct tfh_device *d, enum tfh_remove what, bool hard);
/* Threads that launch on the critical device, each in streams of its own,
 * although no two kernels ran at once; otherwise 0. */
uint32_t tfh_threads_in_turn(const struct tfh_device *d);

/* code_place.c: finds the places, before anything is replayed; then what each gains. 0 or
 * -ENOMEM. */
int tfh_find_places(const struct tfh_accounts *accounts, struct tfh_samples *all);
void tfh_place_gains(const struct tfh_accounts *accounts, struct tfh_samples *all,
		     struct tfh_result *r);
bool tfh_is_at_place(const struct tfh_place_gain *g, const struct tfh_model_line *line);
/* both_ends.c: of the verdict's place, where another process does the same work by turns. */
void tfh_both_ends(const struct tfh_accounts *accounts, struct tfh_result *r, double step);
/* fix.c: once the verdict's line is known, what its fix also removes, and what it leaves */
void tfh_fix_gains(const struct tfh_accounts *accounts, struct tfh_result *r);
/* gain.c: replaces a place's bound by the replay's step. */
void tfh_place_point(const struct tfh_device *d, struct tfh_samples *all, uint32_t place,
		     const struct tfh_result *r, struct tfh_place_gain *g);

/* supply.c: how fast batches could be delivered */
void tfh_find_supply(const struct tfh_accounts *accounts, struct tfh_result *r);
/* Whether every batch is made by the call that requests it. Unknown, hence false, if no stage was
 * recorded. */
bool tfh_on_request(const struct tfh_accounts *accounts);

/* whatif.c: upper bounds of gains, from the accounts alone */
void tfh_whatif(const struct tfh_accounts *accounts, struct tfh_result *r);
/* Why the step without a cost is no bound: its removal also changes the rest of the step. NULL: the
 * step is a bound. */
const char *tfh_no_bound(const struct tfh_accounts *accounts, enum tfh_remove what);
/* If there is no bound because the job's threads compete for CPUs, the step is at most this long:
 * the rest of it can only get faster. */
void tfh_at_most(struct tfh_whatif *w, double step);
/* By how much the code after a pause of that duration may have been slower because of it, in
 * seconds. */
double tfh_cooled_s(const struct tfh_accounts *accounts, double removed_s, double left_s);
/* Sets the step on a machine with a CPU for every thread: `left` give or take `off`, minus about
 * `cut`, the time in which its work was interrupted. The result is not below the fastest steps,
 * some of which were hardly disturbed, unless `left` is. */
void tfh_set_uncrowded(const struct tfh_accounts *accounts, double step, double left, double cut,
		       double off, struct tfh_whatif *w);
/* Removes all gains of a run with too few steps. */
void tfh_forget_gains(const struct tfh_accounts *accounts, struct tfh_result *r);
/* If one thread does a whole step, and the rest of it needs `left` seconds: sets the step after the
 * removal, its interval and, if that is narrow, a point. `off_s`: the uncertainty of the removed
 * time. Otherwise sets nothing. */
void tfh_serial_gain(const struct tfh_accounts *accounts, enum tfh_remove what, double step,
		     double left, double off_s, struct tfh_whatif *w);
/* Extends an interval without a point by what a fix may leave: up to TFH_BLOCKING_SHARE of a step,
 * below which nothing is a verdict. */
void tfh_may_leave(struct tfh_whatif *w, double step);
/* By how much the rest of a step is shorter in the run's fastest block than on average, seconds. */
double tfh_faster_s(const struct tfh_accounts *accounts, enum tfh_remove what);

#endif
