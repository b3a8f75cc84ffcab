/* The verdict about the steady steps: their class, its cause, and how certain both are. */
#include <math.h>
#include <string.h>

#include "judge/verdict/classify.h"

/* Whether a window counts for the run: if some windows have device times, only those do. */
static bool judged(const struct tfh_accounts *accounts, size_t i)
{
	return tfh_window_counts(accounts, i) &&
	       (tfh_tier(accounts) == 'C' || accounts->step.v[i].tier != 'C');
}

/*
 * Standard error of the sum of one class' blocking time over the windows that count. It comes from
 * the median absolute deviation (x 1.4826 for a normal distribution): otherwise one interrupted
 * step among twenty would hide any class.
 */
static double standard_error(const struct tfh_accounts *accounts, enum tfh_class cls)
{
	double *v = tfh_big_array(accounts->step.n, sizeof(*v));
	size_t n = 0;

	TFH_EACH (i, v ? accounts->step.n : 0) {
		if (!judged(accounts, i))
			continue;
		v[n] = 0;
		for (int p = 0; p < TFH_PART_COUNT; p++)
			if (tfh_part_class(p) == cls)
				v[n] += (double)accounts->step.v[i].breakdown[p];
		n++;
	}
	double error = 0;
	if (n >= TFH_VERDICT_SPREAD_STEPS) {
		double median = tfh_quantile(v, n, 0.5);
		TFH_EACH (i, n)
			v[i] = fabs(v[i] - median);
		error = TFH_MAD_SIGMA * tfh_quantile(v, n, 0.5) * sqrt((double)n);
	}
	tfh_big_free(v);
	return error;
}

static void add_step(const struct tfh_accounts *accounts, struct tfh_class_totals *t, size_t i)
{
	const struct tfh_step *s = &accounts->step.v[i];
	double own[TFH_PART_COUNT];

	t->own_total += tfh_own_parts(accounts, i, own);
	for (int p = 0; p < TFH_PART_COUNT; p++) {
		t->part[p] += s->breakdown[p];
		t->own[p] += own[p];
	}
	t->total += s->dur_s;
	if (s->cls >= 0) {
		t->of_class[s->cls] += s->dur_s;
		t->windows_of[s->cls]++;
	}
	t->windows++;
	t->steps += accounts->loops->window.v[i].steps;
}

static void sum_up(const struct tfh_accounts *accounts, struct tfh_class_totals *t)
{
	memset(t, 0, sizeof(*t));
	TFH_EACH (i, accounts->step.n)
		if (judged(accounts, i))
			add_step(accounts, t, i);
}

/* together: the class of the steps on average, which may differ from that of most steps. */
static void set_also(struct tfh_verdict *v, const struct tfh_class_totals *t,
		     enum tfh_class together)
{
	double by_class[TFH_CLASS_COUNT];

	if (together != v->cls && tfh_class_blocks(together) && v->cls != TFH_CLASS_BALANCED)
		v->also[v->n_also++] = together;
	if (!tfh_class_blocks(v->cls))
		return;
	tfh_blocking_of(t->own, by_class);
	for (int c = 0; c < TFH_CLASS_COUNT && v->n_also < TFH_ALSO; c++)
		if (c != (int)v->cls && c != (int)together && tfh_class_blocks(c) &&
		    by_class[c] * TFH_VERDICT_ALSO_PART >= by_class[v->cls] &&
		    by_class[c] >= TFH_BLOCKING_SHARE * t->total)
			v->also[v->n_also++] = c;
}

/*
 * High confidence needs 20 steady steps and direct evidence. At tier C, direct evidence means that
 * the charged calls are the cost itself (get-next with an idle device, blocking copies, executed
 * graphs) and that nothing is concluded from waits.
 */
static enum tfh_confidence confidence(const struct tfh_accounts *accounts,
				      const struct tfh_verdict *v, const struct tfh_class_totals *t,
				      const struct tfh_steps *steps)
{
	bool most = v->cls >= 0 && t->of_class[v->cls] >= TFH_VERDICT_MOST_SHARE * t->total;
	/* A cause of every tenth step is certain once it has been seen often enough. */
	bool often = v->cls >= 0 && t->windows_of[v->cls] >= TFH_VERDICT_STEADY_STEPS;
	/* So is one of a step in each round. */
	uint64_t rounds = accounts->loops->rounds;
	bool each = rounds >= TFH_VERDICT_FEWEST_WINDOWS && v->cls >= 0 &&
		    (double)t->windows_of[v->cls] >= TFH_REGULAR_SHARE * (double)rounds;

	if (t->part[TFH_PART_UNATTRIBUTED] > TFH_BLOCKING_SHARE * t->total ||
	    t->windows < TFH_VERDICT_FEWEST_WINDOWS || (!most && !often && !each))
		return TFH_CONFIDENCE_LOW;
	/* In a profiler's trace, what merely repeats may be a layer unless a range marks steps. */
	if (!most || steps->count < TFH_VERDICT_STEADY_STEPS ||
	    (accounts->facts->feed->imported && accounts->loops->clock == TFH_STEP_CLOCK_PERIOD))
		return TFH_CONFIDENCE_MEDIUM;
	return (double)accounts->direct_ns >= TFH_VERDICT_DIRECT_SHARE * (double)accounts->train_ns
		       ? TFH_CONFIDENCE_HIGH
		       : TFH_CONFIDENCE_MEDIUM;
}

static void fill_breakdown(struct tfh_result *r, const struct tfh_class_totals *t)
{
	double steps = (double)t->steps;

	for (int p = 0; p < TFH_PART_COUNT; p++) {
		r->breakdown[p].s_per_step = steps > 0 ? t->part[p] / steps : NAN;
		r->breakdown[p].share = tfh_share_of(t->part[p], t->total);
	}
}

/*
 * The class of all steps together: that of their sum, or that of most steps if it differs and only
 * a few steps make the difference. Where nearly all of the sum is computing, no class blocks enough
 * to be named, even if most steps are just below the bound. A class that blocks enough is named
 * even if its steps vary too much for a reliable mean; confidence() then says `low`.
 */
static enum tfh_class class_of_all(const struct tfh_class_totals *t)
{
	double by_class[TFH_CLASS_COUNT];
	enum tfh_class cls = tfh_class_of(t->own, t->own_total);

	tfh_blocking_of(t->own, by_class);
	if (cls == TFH_CLASS_COMPUTE_BOUND ||
	    (tfh_class_blocks(cls) && by_class[cls] >= TFH_VERDICT_FEW_STEPS_SHARE * t->own_total))
		return cls;
	for (int c = 0; c < TFH_CLASS_COUNT && cls != TFH_CLASS_UNCLASSIFIED; c++)
		if (TFH_DETECT_MOST_STEPS && c != TFH_CLASS_UNCLASSIFIED &&
		    t->of_class[c] > TFH_VERDICT_MOST_SHARE * t->total)
			return c;
	return cls;
}

/* What lowers the confidence further; blocked: the time that the verdict refers to. */
static void limit_confidence(const struct tfh_accounts *accounts, struct tfh_verdict *v,
			     const struct tfh_class_totals *t, double blocked)
{
	double waited = t->total - t->own_total;

	if (tfh_class_blocks(v->cls))
		waited = fmax(waited, tfh_steps_wait(accounts) * t->total);
	/* Waiting for processors may make up half or more of the blocking time. */
	if (blocked > 0 && TFH_VERDICT_PROCESSOR_WAIT_PART * waited >= blocked)
		tfh_not_high(v);
	if (v->confidence == TFH_CONFIDENCE_HIGH && tfh_is_supposed(accounts, v->cause))
		v->confidence = TFH_CONFIDENCE_MEDIUM;
	if (tfh_class_blocks(v->cls) &&
	    blocked <= TFH_VERDICT_ERRORS * standard_error(accounts, v->cls))
		v->confidence = TFH_CONFIDENCE_LOW;
}

static int give_verdict(const struct tfh_accounts *accounts, struct tfh_result *r,
			const struct tfh_class_totals *t)
{
	struct tfh_verdict *v = &r->steady;
	double by_class[TFH_CLASS_COUNT];

	v->tier = tfh_tier(accounts);
	tfh_blocking_by_class(accounts, t, by_class);
	v->cls = class_of_all(t);
	enum tfh_class together = tfh_class_of(t->own, t->own_total);
	v->cause = tfh_cause_of(accounts, v->cls);
	/* The share that the verdict refers to: that of compute where nothing blocks. */
	enum tfh_class shown = v->cls == TFH_CLASS_BALANCED ? TFH_CLASS_COMPUTE_BOUND : v->cls;
	v->share = tfh_share_of(by_class[shown], t->total);
	set_also(v, t, together);
	v->confidence = confidence(accounts, v, t, &r->steps);
	limit_confidence(accounts, v, t, by_class[shown]);
	int rc = tfh_prefer_computing(accounts, r, t);
	if (!rc)
		rc = tfh_prefer_contention(accounts, r, t);
	if (!rc)
		rc = tfh_prefer_gpu_contention(accounts, r, t);
	if (v->cause == TFH_CAUSE_COMPUTE_CONTENTION) {
		v->share = tfh_gpu_contention(accounts);
		tfh_not_high(v);
	}
	return rc;
}

int tfh_classify(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	struct tfh_class_totals t;
	int rc;

	rc = tfh_expand_steps(accounts, r);
	if (!rc)
		rc = tfh_step_counts(accounts, r);
	if (rc)
		return rc;
	sum_up(accounts, &t);
	fill_breakdown(r, &t);
	return give_verdict(accounts, r, &t);
}
