/* What the files share that find the class and the cause of the run's steps. */
#ifndef TFH_JUDGE_VERDICT_CLASSIFY_H
#define TFH_JUDGE_VERDICT_CLASSIFY_H

#include "judge/verdict/verdict.h"

/* Sums over the windows that count. */
struct tfh_class_totals {
	double part[TFH_PART_COUNT], total, of_class[TFH_CLASS_COUNT];
	double own[TFH_PART_COUNT], own_total; /* without CPU contention */
	size_t windows, steps, windows_of[TFH_CLASS_COUNT];
};

/* Lowers a high confidence to medium. */
static inline void tfh_not_high(struct tfh_verdict *v)
{
	if (v->confidence == TFH_CONFIDENCE_HIGH)
		v->confidence = TFH_CONFIDENCE_MEDIUM;
}

/* ---- step_counts.c ---- */
/* Turns window entries into one entry per step: the steps of one executed call share its time
 * equally. Where every window is one step, the result owns the list, which may be long. 0 or
 * -ENOMEM. */
int tfh_expand_steps(const struct tfh_accounts *accounts, struct tfh_result *r);
/* Counts the steps, together and by class. 0 or -ENOMEM. */
int tfh_step_counts(const struct tfh_accounts *accounts, struct tfh_result *r);
/* Moves steps from one class to another if that one blocks enough of their time. 0 or -ENOMEM. */
int tfh_turn_steps(struct tfh_result *r, enum tfh_class from, enum tfh_class to,
		   enum tfh_cause cause);
/* NAN if the total is 0. */
double tfh_share_of(double part, double total);

/* ---- class_cause.c ---- */
/* The cause of a class: that of its causes which takes most time. */
enum tfh_cause tfh_cause_of(const struct tfh_accounts *accounts, enum tfh_class cls);

/* ---- reclassify.c: verdicts that replace the first one; 0 or -ENOMEM ---- */
/* Blocking time by class, without the delay of a thread that had no processor after a wait. */
void tfh_blocking_by_class(const struct tfh_accounts *accounts, const struct tfh_class_totals *t,
			   double by_class[TFH_CLASS_COUNT]);
/* Share of the steps' time for which other processes had the device. */
double tfh_gpu_contention(const struct tfh_accounts *accounts);
/* Replaces a host-bound verdict whose cause no samples support by computing, if the device or the
 * processors compute for most of the time: as far as anyone can tell, the rest of the host's time
 * is what any library needs around its calls. The same applies if the host's time is short and has
 * several causes, or is that of usual launches. */
int tfh_prefer_computing(const struct tfh_accounts *accounts, struct tfh_result *r,
			 const struct tfh_class_totals *t);
/* Whether a class that blocks this share of the time has no single cause large enough to keep steps
 * from being compute-bound, so that no single fix gains that time. `cause`: time of the largest one
 * in `total`. */
bool tfh_is_spread(double cause, double total, double share);
/* Makes CPU contention the cause if it takes more time than what limits the steps otherwise. Time
 * that contention adds to other costs would disappear with it, and counts only as contention. */
int tfh_prefer_contention(const struct tfh_accounts *accounts, struct tfh_result *r,
			  const struct tfh_class_totals *t);
/* Makes other processes on the device the cause if they take more of a step than the rest. */
int tfh_prefer_gpu_contention(const struct tfh_accounts *accounts, struct tfh_result *r,
			      const struct tfh_class_totals *t);

#endif
