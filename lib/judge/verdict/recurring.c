/*
 * What a run does again and again outside its steady steps, which may be the smaller part:
 * evaluations, checkpoints, compilation for new shapes, and starts of epochs. The verdict covers
 * all of them: it is that of the steps unless another part holds the run up for longer.
 */
#include <math.h>
#include <stdlib.h>

#include "judge/verdict/verdict.h"

/* One kind; times in seconds of the run. */
struct recurring_sum {
	double cause[TFH_CAUSE_COUNT], compute, total;
	uint64_t count;
};

static double class_s(const struct recurring_sum *p, enum tfh_class cls)
{
	double s = 0;

	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		s += tfh_cause_class(c) == cls ? p->cause[c] : 0;
	return s;
}

static void scale(struct recurring_sum *p, double by)
{
	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		p->cause[c] *= by;
	p->compute *= by;
	p->total *= by;
}

static enum tfh_class class_of(const struct recurring_sum *p)
{
	double part[TFH_PART_COUNT] = {[TFH_PART_COMPUTE] = p->compute}, known = p->compute;

	for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
		part[tfh_cause_part(c)] += p->cause[c];
		known += p->cause[c];
	}
	part[TFH_PART_UNATTRIBUTED] = fmax(p->total - known, 0);
	return tfh_class_of(part, p->total);
}

static enum tfh_cause cause_of(const struct tfh_accounts *accounts, const struct recurring_sum *p,
			       enum tfh_class cls)
{
	int64_t ns[TFH_CAUSE_COUNT];

	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		ns[c] = (int64_t)(p->cause[c] * 1e9);
	enum tfh_cause cause = tfh_largest_cause(ns, cls);
	return cause == TFH_CAUSE_NONE && cls == TFH_CLASS_COMPUTE_BOUND
		       ? tfh_plain_computing(accounts->facts)
		       : cause;
}

/* Extrapolates from the judged steps to all training steps. */
static struct recurring_sum of_steps(const struct tfh_accounts *accounts)
{
	struct recurring_sum p = {.compute = (double)accounts->compute_ns / 1e9,
				  .total = (double)accounts->train_ns / 1e9,
				  .count = accounts->train_steps};

	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		p.cause[c] = (double)accounts->cause_ns[c] / 1e9;
	scale(&p, (double)accounts->train_steps / (double)accounts->judged_steps);
	return p;
}

static enum tfh_cause made_by(enum tfh_segment kind)
{
	return kind == TFH_SEGMENT_CHECKPOINT ? TFH_CAUSE_HOST_CHECKPOINT
	       : kind == TFH_SEGMENT_COMPILE  ? TFH_CAUSE_HOST_COMPILE
					      : TFH_CAUSE_NONE;
}

/* One more gap between loops follows the last step: as long as was seen, and of the same causes. */
static void add_last_gap(struct recurring_sum *p, double s)
{
	if (s > 0) {
		scale(p, 1 + s / p->total);
		p->count++;
	}
}

/* Windows of one kind; false: they do not recur, or all of them ended in the first half of the run.
 * One more, which is no window, follows the last step for last_s. A single window that takes longer
 * than all others together is left out. A step with a checkpoint counts only with the time beyond a
 * usual step. */
static bool of_others(const struct tfh_accounts *accounts, enum tfh_segment kind, double step_s,
		      double last_s, struct recurring_sum *p)
{
	const struct tfh_others *o = &accounts->other[kind];
	double all = (double)o->ns / 1e9, usual = step_s * (double)o->steps;
	enum tfh_cause cause = made_by(kind);
	int64_t rest = o->ns - o->longest;

	if (o->n + (last_s > 0) < TFH_VERDICT_RECURS || !(o->late || last_s > 0))
		return false;
	*p = (struct recurring_sum){
		.compute = (double)o->sum.compute / 1e9, .total = all, .count = o->n};
	for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
		int to = c != TFH_CAUSE_INPUT_UNKNOWN  ? c
			 : kind == TFH_SEGMENT_BETWEEN ? (int)accounts->between_cause
						       : (int)accounts->input_cause;
		p->cause[to] += (double)o->sum.cause[c] / 1e9;
	}
	if (cause != TFH_CAUSE_NONE) {
		*p = (struct recurring_sum){.total = fmax(all - usual, 0), .count = o->n};
		p->cause[cause] = p->total;
	}
	if (o->longest > TFH_VERDICT_ONCE_TIMES * rest)
		scale(p, (double)rest / (double)o->ns);
	if (p->total > 0)
		add_last_gap(p, last_s);
	return p->total > 0;
}

/* The time that a verdict of this class is about: what blocks or, if nothing does, the
 * computing. */
static double about_s(const struct recurring_sum *p, enum tfh_class cls)
{
	return tfh_class_blocks(cls) ? class_s(p, cls)
				     : p->compute + class_s(p, TFH_CLASS_COMPUTE_BOUND);
}

static int by_blocked(const void *a, const void *b)
{
	const struct tfh_recurring *x = a, *y = b;

	return x->blocked_s > y->blocked_s ? -1 : x->blocked_s < y->blocked_s;
}

/* Whether the verdict can be about it. Unknown activity between loops is not a cause, and the tree
 * already shows its time. If only computing takes long between loops, it is the work of steps that
 * only issue it; in evaluations it is no defect. */
static bool may_lead(const struct tfh_result *r, const struct tfh_recurring *x)
{
	if (x->cls == TFH_CLASS_COMPUTE_BOUND)
		return x->kind == TFH_SEGMENT_BETWEEN && x->cls != r->steady.cls;
	return tfh_class_blocks(x->cls) && x->cause != TFH_CAUSE_HOST_UNKNOWN;
}

/* Returns the time that the part's verdict is about; 0: it cannot be the run's. */
static double keep(const struct tfh_accounts *accounts, struct tfh_result *r, enum tfh_segment kind,
		   const struct recurring_sum *p)
{
	struct tfh_recurring *x = &r->recurring[r->n_recurring++];

	*x = (struct tfh_recurring){.kind = kind, .count = p->count, .total_s = p->total};
	x->cls = kind == TFH_SEGMENT_TRAIN ? r->steady.cls : class_of(p);
	x->cause = kind == TFH_SEGMENT_TRAIN ? r->steady.cause : cause_of(accounts, p, x->cls);
	x->blocked_s = tfh_class_blocks(x->cls) ? class_s(p, x->cls) : 0;
	r->recurs_s += p->total;
	return kind == TFH_SEGMENT_TRAIN || may_lead(r, x) ? about_s(p, x->cls) : 0;
}

/* Whether the steps' verdict is about time that a fix would save, as in a step (tfh_class_of()):
 * computing holds nothing up, so what blocks between loops is the verdict before it. Checkpoints
 * and compiling are work of the program's choice: they lead if they take longer than computing. */
static bool holds_up(enum tfh_cause cause)
{
	return !TFH_DETECT_NOT_HELD_UP || tfh_class_blocks(tfh_cause_class(cause)) ||
	       cause == TFH_CAUSE_COMPUTE_CONTENTION;
}

/* The part whose verdict is about the most time decides for the run. */
static void choose(struct tfh_result *r, enum tfh_segment kind, double about)
{
	if (kind == TFH_SEGMENT_TRAIN || about < TFH_VERDICT_FEW_STEPS_SHARE * r->recurs_s)
		return;
	r->lead = tfh_recurring_of(r, kind);
	const struct tfh_recurring *x = &r->recurring[r->lead - 1];
	r->verdict = (struct tfh_verdict){.cls = x->cls,
					  .cause = x->cause,
					  .share = about / r->recurs_s,
					  .tier = r->steady.tier,
					  .confidence = TFH_CONFIDENCE_HIGH};
	if (x->count < TFH_VERDICT_STEADY_STEPS)
		r->verdict.confidence = TFH_CONFIDENCE_MEDIUM;
	uint32_t train = tfh_recurring_of(r, TFH_SEGMENT_TRAIN);
	if (train && r->steady.cls != x->cls &&
	    r->recurring[train - 1].blocked_s * TFH_VERDICT_ALSO_PART >= about)
		r->verdict.also[r->verdict.n_also++] = r->steady.cls;
}

void tfh_find_recurring(const struct tfh_accounts *accounts, double last_gap_s,
			struct tfh_result *r)
{
	static const enum tfh_segment kinds[] = {TFH_SEGMENT_EVAL, TFH_SEGMENT_CHECKPOINT,
						 TFH_SEGMENT_COMPILE, TFH_SEGMENT_BETWEEN};
	enum tfh_segment most = TFH_SEGMENT_TRAIN;
	struct recurring_sum p;
	double step_s = accounts->judged_steps
				? (double)accounts->train_ns / 1e9 / (double)accounts->judged_steps
				: 0;

	r->verdict = r->steady;
	if (!accounts->judged_steps)
		return;
	p = of_steps(accounts);
	/* Sums of a damaged file's times may be negative. */
	double about = fmax(keep(accounts, r, TFH_SEGMENT_TRAIN, &p), 0);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		double last_s = kinds[i] == TFH_SEGMENT_BETWEEN ? last_gap_s : 0;
		bool recurs = of_others(accounts, kinds[i], step_s, last_s, &p);
		double s = recurs ? keep(accounts, r, kinds[i], &p) : 0;
		if (kinds[i] == TFH_SEGMENT_BETWEEN && most == TFH_SEGMENT_TRAIN &&
		    !holds_up(r->steady.cause))
			about = 0;
		most = s > about ? kinds[i] : most;
		about = fmax(about, s);
	}
	qsort(r->recurring, r->n_recurring, sizeof(*r->recurring), by_blocked);
	if (TFH_DETECT_RECURRING)
		choose(r, most, about);
}

void tfh_doubt_killed(struct tfh_result *r)
{
	double wall = r->n_tree ? r->tree[0].wall_s : 0;

	if (r->end != TFH_END_SIGNAL || !(r->recurs_s > 0) ||
	    r->recurs_s >= TFH_VERDICT_RUN_SHARE * wall)
		return;
	r->verdict.confidence = TFH_CONFIDENCE_LOW;
	r->steady.confidence = TFH_CONFIDENCE_LOW;
}
