/*
 * When another class than the one that blocks most is the verdict: a lack of processors, other
 * processes on the device, computing, or a class whose removal gains more.
 */
#include "judge/verdict/classify.h"

void tfh_blocking_by_class(const struct tfh_accounts *accounts, const struct tfh_class_totals *t,
			   double by_class[TFH_CLASS_COUNT])
{
	tfh_blocking_of(t->part, by_class);
	if (accounts->train_ns)
		by_class[TFH_CLASS_HOST_BOUND] -=
			(double)accounts->cause_ns[TFH_CAUSE_HOST_CONTENTION] /
			(double)accounts->train_ns * t->total;
}

int tfh_prefer_contention(const struct tfh_accounts *accounts, struct tfh_result *r,
			  const struct tfh_class_totals *t)
{
	struct tfh_verdict *v = &r->steady;
	double by_class[TFH_CLASS_COUNT], waited = t->total - t->own_total;
	enum tfh_class from = v->cls;

	if (t->steps) {
		r->found.contended.share = tfh_share_of(waited, t->total);
		r->found.contended.s_per_step = waited / (double)t->steps;
	}
	tfh_blocking_by_class(accounts, t, by_class);
	double apart = waited;
	if (from == TFH_CLASS_HOST_BOUND)
		apart = t->own[TFH_PART_LAUNCH] + t->own[TFH_PART_HOST] + t->own[TFH_PART_SYNC] +
			waited - by_class[from];
	if (from == TFH_CLASS_NONE || from == TFH_CLASS_UNCLASSIFIED ||
	    waited < TFH_BLOCKING_SHARE * t->total ||
	    apart <= by_class[from == TFH_CLASS_BALANCED ? TFH_CLASS_COMPUTE_BOUND : from])
		return 0;
	v->cls = TFH_CLASS_HOST_BOUND;
	v->cause = TFH_CAUSE_HOST_CONTENTION;
	v->share = tfh_share_of(waited, t->total);
	v->confidence = TFH_CONFIDENCE_MEDIUM;
	v->n_also = 0;
	if (from != TFH_CLASS_HOST_BOUND && tfh_class_blocks(from))
		v->also[v->n_also++] = from;
	return tfh_turn_steps(r, from, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_CONTENTION);
}

double tfh_gpu_contention(const struct tfh_accounts *accounts)
{
	return tfh_share_of((double)accounts->cause_ns[TFH_CAUSE_COMPUTE_CONTENTION],
			    (double)accounts->train_ns);
}

int tfh_prefer_gpu_contention(const struct tfh_accounts *accounts, struct tfh_result *r,
			      const struct tfh_class_totals *t)
{
	struct tfh_verdict *v = &r->steady;
	enum tfh_class from = v->cls;
	double by_class[TFH_CLASS_COUNT], share = tfh_gpu_contention(accounts);

	tfh_blocking_by_class(accounts, t, by_class);
	if (!tfh_class_blocks(from) || !(share >= TFH_BLOCKING_SHARE) ||
	    share * t->total <= by_class[from])
		return 0;
	v->cls = TFH_CLASS_COMPUTE_BOUND;
	v->cause = TFH_CAUSE_COMPUTE_CONTENTION;
	v->n_also = 0;
	v->also[v->n_also++] = from;
	return tfh_turn_steps(r, from, v->cls, v->cause);
}

/* Launches one at a time, as every framework makes them, hold up each step a little. */
static bool is_usual_launching(enum tfh_cause cause, double share)
{
	return TFH_DETECT_USUAL_LAUNCHING && cause == TFH_CAUSE_HOST_LAUNCH &&
	       share < TFH_VERDICT_LAUNCHING_SHARE;
}

bool tfh_is_spread(double cause, double total, double share)
{
	return TFH_DETECT_SPREAD && share < TFH_VERDICT_FEW_STEPS_SHARE &&
	       cause < (1 - TFH_ACCOUNT_COMPUTE_SHARE) * total;
}

int tfh_prefer_computing(const struct tfh_accounts *accounts, struct tfh_result *r,
			 const struct tfh_class_totals *t)
{
	struct tfh_verdict *v = &r->steady;
	double by_class[TFH_CLASS_COUNT];
	enum tfh_class from = v->cls;

	tfh_blocking_by_class(accounts, t, by_class);
	if (!TFH_DETECT_BORNE_OUT || from != TFH_CLASS_HOST_BOUND)
		return 0;
	enum tfh_borne_out borne_out = tfh_borne_out(accounts, v->cause);
	if (borne_out == TFH_BORNE_OUT_HARDLY && v->confidence == TFH_CONFIDENCE_HIGH)
		v->confidence = TFH_CONFIDENCE_MEDIUM;
	bool computes = by_class[TFH_CLASS_COMPUTE_BOUND] > t->total / 2;
	if (!computes && borne_out == TFH_BORNE_OUT_NOT)
		v->confidence = TFH_CONFIDENCE_LOW;
	double blocked = tfh_share_of(by_class[from], t->total);
	if (!computes || (borne_out != TFH_BORNE_OUT_NOT && borne_out != TFH_BORNE_OUT_AS_OPS &&
			  !is_usual_launching(v->cause, blocked) &&
			  !tfh_is_spread((double)accounts->cause_ns[v->cause],
					 (double)accounts->train_ns, blocked)))
		return 0;
	r->found.host_guessed = borne_out == TFH_BORNE_OUT_NOT;
	v->cls = TFH_CLASS_COMPUTE_BOUND;
	v->cause = tfh_cause_of(accounts, v->cls);
	v->share = tfh_share_of(by_class[v->cls], t->total);
	tfh_not_high(v);
	v->n_also = 0;
	v->also[v->n_also++] = from;
	return tfh_turn_steps(r, from, v->cls, v->cause);
}

/* What the what-ifs of a class gain, each by itself: */
struct gains {
	bool some;  /* one certainly */
	bool none;  /* none of them, even at best */
	bool small; /* none likely as much as a step needs to be more than compute-bound */
};

static struct gains gains_of(const struct tfh_result *r, enum tfh_class cls, double step)
{
	struct gains g = {.none = true, .small = true};
	bool any = false;

	for (uint32_t i = 0; i < r->n_whatif; i++) {
		const struct tfh_whatif *w = &r->whatif[i];
		enum tfh_part part = tfh_remove_part(w->remove);
		if (part >= TFH_PART_COUNT || tfh_part_class(part) != cls)
			continue;
		any = true;
		g.some |= w->high_s <= (1 - TFH_BLOCKING_SHARE) * step;
		g.none &= w->low_s >= (1 - TFH_BLOCKING_SHARE) * step;
		g.small &= w->step_s > TFH_ACCOUNT_COMPUTE_SHARE * step;
	}
	g.none &= any;
	g.small &= any;
	return g;
}

static enum tfh_class with_gain(const struct tfh_result *r, const double by_class[TFH_CLASS_COUNT],
				double step)
{
	enum tfh_class to = TFH_CLASS_NONE;

	for (int c = 0; c < TFH_CLASS_COUNT; c++)
		if (tfh_class_blocks(c) && gains_of(r, c, step).some &&
		    by_class[c] >= TFH_BLOCKING_SHARE * step &&
		    by_class[c] * TFH_VERDICT_ALSO_PART >= by_class[r->steady.cls] &&
		    (to == TFH_CLASS_NONE || by_class[c] > by_class[to]))
			to = c;
	return to;
}

/* The class that the verdict gives way to; NONE: to none. */
static enum tfh_class better(const struct tfh_result *r, const double by_class[TFH_CLASS_COUNT],
			     double step)
{
	struct gains g = gains_of(r, r->steady.cls, step);
	enum tfh_class to =
		TFH_DETECT_PREFER_GAIN && g.none ? with_gain(r, by_class, step) : TFH_CLASS_NONE;

	if (TFH_DETECT_SMALL_GAIN && to == TFH_CLASS_NONE && g.small &&
	    2 * by_class[TFH_CLASS_COMPUTE_BOUND] > step &&
	    by_class[r->steady.cls] < TFH_VERDICT_FEW_STEPS_SHARE * step)
		to = TFH_CLASS_COMPUTE_BOUND;
	return to;
}

int tfh_prefer_gain(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	struct tfh_verdict *v = &r->steady;
	double part[TFH_PART_COUNT], by_class[TFH_CLASS_COUNT], step = 0;
	enum tfh_class from = v->cls;

	for (int p = 0; p < TFH_PART_COUNT; p++)
		step += part[p] = r->breakdown[p].s_per_step;
	if (v->tier != 'A' || !tfh_class_blocks(from))
		return 0;
	tfh_blocking_of(part, by_class);
	enum tfh_class to = better(r, by_class, step);
	if (to == TFH_CLASS_NONE)
		return 0;
	v->cls = to;
	v->cause = tfh_cause_of(accounts, to);
	v->share = tfh_share_of(by_class[to], step);
	tfh_not_high(v);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < v->n_also; i++)
		if (v->also[i] != to)
			v->also[kept++] = v->also[i];
	v->n_also = kept;
	if (kept < TFH_ALSO)
		v->also[v->n_also++] = from;
	return tfh_turn_steps(r, from, to, v->cause);
}
