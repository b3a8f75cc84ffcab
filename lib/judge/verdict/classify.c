/*
 * From charged time to the closed vocabulary of classes, per step and for the run. The first rule
 * that applies decides: unclassified; compute with a share of at least 85 %, or half if no class
 * blocks 15 %; the class whose parts together block most, if they block at least 5 %; balanced.
 * Last, where device times allow a replay of the steps, a class whose removal gains nothing is
 * replaced by one whose removal does.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/copy_causes.h"
#include "judge/verdict/verdict.h"

/* Whether a window counts for the run: if some windows have device times, only those do. */
static bool judged(const struct tfh_accounts *accounts, size_t i)
{
	return tfh_window_counts(accounts, i) &&
	       (tfh_tier(accounts) == 'C' || accounts->step.v[i].tier != 'C');
}

struct totals {
	double part[TFH_PART_COUNT], total, of_class[TFH_CLASS_COUNT];
	double own[TFH_PART_COUNT], own_total; /* without CPU contention */
	size_t windows, steps, windows_of[TFH_CLASS_COUNT];
};

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

static void add_step(const struct tfh_accounts *accounts, struct totals *t, size_t i)
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

static void sum_up(const struct tfh_accounts *accounts, struct totals *t)
{
	memset(t, 0, sizeof(*t));
	TFH_EACH (i, accounts->step.n)
		if (judged(accounts, i))
			add_step(accounts, t, i);
}

/* The small and the larger copies of a cause, and the number of small copies of any cause. */
struct copies {
	uint64_t small;
	int64_t small_ns, large_ns;
};

/* Counted by calls. */
static struct copies called_copies(const struct tfh_accounts *accounts, enum tfh_cause cause)
{
	struct copies c = {0};

	for (size_t i = 0; i < accounts->copy.n; i++) {
		const struct tfh_copy_use *u = &accounts->copy.v[i];
		bool mine = tfh_copy_cause(u->dir, u->pageable) == cause;
		c.small += u->small;
		c.small_ns += mine ? u->small_ns : 0;
		c.large_ns += mine ? u->ns - u->small_ns : 0;
	}
	return c;
}

/* Counted by device ops: one call may submit a batch of copies (cuMemcpyBatchAsync) or a graph. */
static struct copies done_copies(const struct tfh_accounts *accounts, enum tfh_cause cause)
{
	struct copies c = {0};

	for (unsigned dir = 0; accounts->device && dir < TFH_ACCOUNT_DIRS; dir++)
		for (int pageable = 0; pageable < 2; pageable++) {
			bool mine = tfh_copy_cause(dir, pageable) == cause;
			int64_t large = accounts->device->copied[dir][pageable].large_ns;
			c.small += accounts->device->copied[dir][pageable].small;
			c.small_ns += mine ? accounts->device->copied[dir][pageable].ns - large : 0;
			c.large_ns += mine ? large : 0;
		}
	return c;
}

/* The cause is many small copies, whatever their direction, if there are very many of them and
 * those of the cause that blocks most cost more than its larger ones. */
static enum tfh_cause transfer_cause(const struct tfh_accounts *accounts, enum tfh_cause cause)
{
	struct copies called = called_copies(accounts, cause), done = done_copies(accounts, cause);
	uint64_t small = called.small > done.small ? called.small : done.small;
	int64_t ns = called.small_ns > done.small_ns ? called.small_ns : done.small_ns;
	int64_t large = called.large_ns > done.large_ns ? called.large_ns : done.large_ns;
	bool many =
		accounts->train_steps && small >= TFH_VERDICT_SMALL_COPIES * accounts->train_steps;

	return TFH_DETECT_SMALL_COPIES && many && ns > large &&
			       (double)ns > TFH_VERDICT_SMALL_SHARE * (double)accounts->train_ns
		       ? TFH_CAUSE_TRANSFER_SMALL_COPIES
		       : cause;
}

/* together: the class of the steps on average, which may differ from that of most steps. */
static void set_also(struct tfh_verdict *v, const struct totals *t, enum tfh_class together)
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
				      const struct tfh_verdict *v, const struct totals *t,
				      const struct tfh_steps *steps)
{
	bool most = v->cls >= 0 && t->of_class[v->cls] >= TFH_VERDICT_MOST_SHARE * t->total;
	/* A cause of every tenth step is certain once it has been seen often enough. */
	bool often = v->cls >= 0 && t->windows_of[v->cls] >= TFH_VERDICT_STEADY_STEPS;

	if (t->part[TFH_PART_UNATTRIBUTED] > TFH_BLOCKING_SHARE * t->total ||
	    t->windows < TFH_VERDICT_FEWEST_WINDOWS || (!most && !often))
		return TFH_CONFIDENCE_LOW;
	/* In a profiler's trace, what merely repeats may be a layer unless a range marks steps. */
	if (!most || steps->count < TFH_VERDICT_STEADY_STEPS ||
	    (accounts->facts->feed->imported && accounts->loops->clock == TFH_STEP_CLOCK_PERIOD))
		return TFH_CONFIDENCE_MEDIUM;
	return (double)accounts->direct_ns >= TFH_VERDICT_DIRECT_SHARE * (double)accounts->train_ns
		       ? TFH_CONFIDENCE_HIGH
		       : TFH_CONFIDENCE_MEDIUM;
}

/* Turns window entries into one entry per step: the steps of one executed call share its time
 * equally. Where every window is one step, the result owns the list, which may be long. */
static int expand(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	uint64_t n = 0;

	TFH_EACH (i, accounts->loops->window.n)
		n += accounts->loops->window.v[i].steps;
	if (n == accounts->step.n && accounts->step.n == accounts->loops->window.n && n) {
		r->step = accounts->step.v;
		r->step_cause = accounts->step_cause;
		r->n_step = n;
		return 0;
	}
	r->step = tfh_big_array(n, sizeof(*r->step));
	if (!r->step)
		return -ENOMEM;
	r->step_cause = accounts->step_cause ? tfh_big_array(n, sizeof(*r->step_cause)) : NULL;
	if (accounts->step_cause && !r->step_cause)
		return -ENOMEM;
	TFH_EACH (i, accounts->step.n) {
		uint32_t k = accounts->loops->window.v[i].steps;
		for (uint32_t j = 0; j < k; j++) {
			for (int c = 0; c < TFH_CAUSE_COUNT && r->step_cause; c++)
				r->step_cause[r->n_step][c] = accounts->step_cause[i][c] / (float)k;
			struct tfh_step *s = &r->step[r->n_step];
			*s = accounts->step.v[i];
			s->index = r->n_step++;
			s->dur_s /= k;
			s->start_s += s->dur_s * j;
			int64_t host = (s->host_t1 - s->host_t0) / k;
			s->host_t0 += host * j;
			s->host_t1 = s->host_t0 + host;
			for (int p = 0; p < TFH_PART_COUNT; p++)
				s->breakdown[p] /= (float)k;
		}
	}
	return 0;
}

/* The parts of single steps are floats, whose sum may slightly exceed the whole. */
static double share_of(double part, double total)
{
	return total > 0 ? fmin(part / total, 1) : NAN;
}

static int count_classes(struct tfh_result *r, double total)
{
	double *dur = tfh_big_array(r->n_step, sizeof(*dur));

	if (!dur)
		return -ENOMEM;
	for (int c = 0; c < TFH_CLASS_COUNT; c++) {
		struct tfh_class_count *k = &r->steps.classes[c];
		double sum = 0;
		size_t n = 0;
		TFH_EACH (i, r->n_step) {
			const struct tfh_step *s = &r->step[i];
			if (s->segment != TFH_SEGMENT_TRAIN || s->cls != c)
				continue;
			dur[n++] = s->dur_s;
			sum += s->dur_s;
			for (int p = 0; p < TFH_PART_COUNT; p++)
				k->breakdown[p] += s->breakdown[p];
		}
		for (int p = 0; p < TFH_PART_COUNT; p++)
			k->breakdown[p] = share_of(k->breakdown[p], sum);
		k->count = (uint32_t)n;
		k->time_share = share_of(sum, total);
		k->median_s = tfh_quantile(dur, n, 0.5);
		k->p95_s = tfh_quantile(dur, n, 0.95);
	}
	tfh_big_free(dur);
	return 0;
}

static int count_steps(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	double *dur = tfh_big_array(r->n_step, sizeof(*dur)), total = 0;
	size_t n = 0;

	if (!dur)
		return -ENOMEM;
	TFH_EACH (i, r->n_step) {
		const struct tfh_step *s = &r->step[i];
		r->steps.warmup += s->segment == TFH_SEGMENT_WARMUP;
		if (s->segment != TFH_SEGMENT_TRAIN)
			continue;
		r->steps.unclassified += s->cls == TFH_CLASS_UNCLASSIFIED;
		dur[n++] = s->dur_s;
		total += s->dur_s;
	}
	r->steps.count = n;
	TFH_EACH (i, r->n_step)
		r->steps.total += r->step[i].segment != TFH_SEGMENT_EVAL;
	r->steps.total_s = total;
	r->steps.median_s = tfh_quantile(dur, n, 0.5);
	r->steps.p95_s = tfh_quantile(dur, n, 0.95);
	r->steps.clock = accounts->loops->clock;
	r->steps.clock_name = accounts->loops->clock_name;
	r->steps.per_execution = accounts->loops->per_execution;
	tfh_big_free(dur);
	return count_classes(r, total);
}

static void fill_breakdown(struct tfh_result *r, const struct totals *t)
{
	double steps = (double)t->steps;

	for (int p = 0; p < TFH_PART_COUNT; p++) {
		r->breakdown[p].s_per_step = steps > 0 ? t->part[p] / steps : NAN;
		r->breakdown[p].share = share_of(t->part[p], t->total);
	}
}

/*
 * The class of all steps together: that of their sum, or that of most steps if it differs and only
 * a few steps make the difference. Where nearly all of the sum is computing, no class blocks enough
 * to be named, even if most steps are just below the bound. A class that blocks enough is named
 * even if its steps vary too much for a reliable mean; confidence() then says `low`.
 */
static enum tfh_class class_of_all(const struct totals *t)
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

enum tfh_cause tfh_plain_computing(const struct tfh_facts *facts)
{
	return facts->cpu_only ? TFH_CAUSE_COMPUTE_CPU : TFH_CAUSE_COMPUTE_DENSE;
}

static enum tfh_cause cause_of(const struct tfh_accounts *accounts, enum tfh_class cls)
{
	int64_t own[TFH_CAUSE_COUNT];

	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		own[c] = accounts->cause_ns[c] - (int64_t)accounts->slowed_ns[c];
	own[TFH_CAUSE_HOST_CONTENTION] = 0; /* prefer_contention() */
	enum tfh_cause cause = tfh_largest_cause(own, cls);

	if (cls == TFH_CLASS_TRANSFER_BOUND)
		return transfer_cause(accounts, cause);
	if (cls != TFH_CLASS_COMPUTE_BOUND)
		return cause;
	if ((double)accounts->cause_ns[TFH_CAUSE_COMPUTE_CONTENTION] >=
	    (1 - TFH_ACCOUNT_COMPUTE_SHARE) * (double)accounts->train_ns)
		return TFH_CAUSE_COMPUTE_CONTENTION;
	if (tfh_tier(accounts) != 'C')
		return tfh_compute_cause(accounts->device);
	return tfh_plain_computing(accounts->facts);
}

/* Moves steps from one class to another if that one blocks enough of their time. */
static int turn_steps(struct tfh_result *r, enum tfh_class from, enum tfh_class to,
		      enum tfh_cause cause)
{
	TFH_EACH (i, r->n_step) {
		struct tfh_step *s = &r->step[i];
		double blocked = 0;
		for (int p = 0; p < TFH_PART_COUNT; p++)
			blocked += tfh_part_class(p) == to ? s->breakdown[p] : 0;
		if (s->cls != (int)from || blocked < TFH_BLOCKING_SHARE * s->dur_s)
			continue;
		s->cls = (int8_t)to;
		s->cause = (int8_t)cause;
	}
	memset(r->steps.classes, 0, sizeof(r->steps.classes));
	return count_classes(r, r->steps.total_s);
}

/* Blocking time by class, without the delay of a thread that had no processor after a wait. */
static void blocking_of(const struct tfh_accounts *accounts, const struct totals *t,
			double by_class[TFH_CLASS_COUNT])
{
	tfh_blocking_of(t->part, by_class);
	if (accounts->train_ns)
		by_class[TFH_CLASS_HOST_BOUND] -=
			(double)accounts->cause_ns[TFH_CAUSE_HOST_CONTENTION] /
			(double)accounts->train_ns * t->total;
}

/* Makes CPU contention the cause if it takes more time than what limits the steps otherwise. Time
 * that contention adds to other costs would disappear with it, and counts only as contention. */
static int prefer_contention(const struct tfh_accounts *accounts, struct tfh_result *r,
			     const struct totals *t)
{
	struct tfh_verdict *v = &r->steady;
	double by_class[TFH_CLASS_COUNT], waited = t->total - t->own_total;
	enum tfh_class from = v->cls;

	if (t->steps) {
		r->found.contended.share = share_of(waited, t->total);
		r->found.contended.s_per_step = waited / (double)t->steps;
	}
	blocking_of(accounts, t, by_class);
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
	v->share = share_of(waited, t->total);
	v->confidence = TFH_CONFIDENCE_MEDIUM;
	v->n_also = 0;
	if (from != TFH_CLASS_HOST_BOUND && tfh_class_blocks(from))
		v->also[v->n_also++] = from;
	return turn_steps(r, from, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_CONTENTION);
}

/* Share of the steps' time for which other processes had the device. */
static double gpu_contention(const struct tfh_accounts *accounts)
{
	return share_of((double)accounts->cause_ns[TFH_CAUSE_COMPUTE_CONTENTION],
			(double)accounts->train_ns);
}

/* Makes other processes on the device the cause if they take more of a step than the rest. */
static int prefer_gpu_contention(const struct tfh_accounts *accounts, struct tfh_result *r,
				 const struct totals *t)
{
	struct tfh_verdict *v = &r->steady;
	enum tfh_class from = v->cls;
	double by_class[TFH_CLASS_COUNT], share = gpu_contention(accounts);

	blocking_of(accounts, t, by_class);
	if (!tfh_class_blocks(from) || !(share >= TFH_BLOCKING_SHARE) ||
	    share * t->total <= by_class[from])
		return 0;
	v->cls = TFH_CLASS_COMPUTE_BOUND;
	v->cause = TFH_CAUSE_COMPUTE_CONTENTION;
	v->n_also = 0;
	v->also[v->n_also++] = from;
	return turn_steps(r, from, v->cls, v->cause);
}

/* Launches one at a time, as every framework makes them, hold up each step a little. */
static bool is_usual_launching(enum tfh_cause cause, double share)
{
	return TFH_DETECT_USUAL_LAUNCHING && cause == TFH_CAUSE_HOST_LAUNCH &&
	       share < TFH_VERDICT_LAUNCHING_SHARE;
}

/* Whether a class that blocks little time has no single cause large enough to keep the steps from
 * being compute-bound, so that no single fix gains that time. */
static bool is_spread(const struct tfh_accounts *accounts, enum tfh_cause cause, double share)
{
	double most = (1 - TFH_ACCOUNT_COMPUTE_SHARE) * (double)accounts->train_ns;

	return TFH_DETECT_SPREAD && share < TFH_VERDICT_FEW_STEPS_SHARE &&
	       (double)accounts->cause_ns[cause] < most;
}

/*
 * Replaces a host-bound verdict whose cause no samples support by computing, if the device or the
 * processors compute for most of the time: as far as anyone can tell, the rest of the host's time
 * is what any library needs around its calls. The same applies if the host's time is short and has
 * several causes, or is that of usual launches.
 */
static int prefer_computing(const struct tfh_accounts *accounts, struct tfh_result *r,
			    const struct totals *t)
{
	struct tfh_verdict *v = &r->steady;
	double by_class[TFH_CLASS_COUNT];
	enum tfh_class from = v->cls;

	blocking_of(accounts, t, by_class);
	if (!TFH_DETECT_BORNE_OUT || from != TFH_CLASS_HOST_BOUND)
		return 0;
	enum tfh_borne_out borne_out = tfh_borne_out(accounts, v->cause);
	if (borne_out == TFH_BORNE_OUT_HARDLY && v->confidence == TFH_CONFIDENCE_HIGH)
		v->confidence = TFH_CONFIDENCE_MEDIUM;
	bool computes = by_class[TFH_CLASS_COMPUTE_BOUND] > t->total / 2;
	if (!computes && borne_out == TFH_BORNE_OUT_NOT)
		v->confidence = TFH_CONFIDENCE_LOW;
	double blocked = share_of(by_class[from], t->total);
	if (!computes ||
	    (borne_out != TFH_BORNE_OUT_NOT && borne_out != TFH_BORNE_OUT_AS_OPS &&
	     !is_usual_launching(v->cause, blocked) && !is_spread(accounts, v->cause, blocked)))
		return 0;
	v->cls = TFH_CLASS_COMPUTE_BOUND;
	v->cause = cause_of(accounts, v->cls);
	v->share = share_of(by_class[v->cls], t->total);
	if (v->confidence == TFH_CONFIDENCE_HIGH)
		v->confidence = TFH_CONFIDENCE_MEDIUM;
	v->n_also = 0;
	v->also[v->n_also++] = from;
	return turn_steps(r, from, v->cls, v->cause);
}

static int give_verdict(const struct tfh_accounts *accounts, struct tfh_result *r,
			const struct totals *t)
{
	struct tfh_verdict *v = &r->steady;
	double by_class[TFH_CLASS_COUNT];

	v->tier = tfh_tier(accounts);
	blocking_of(accounts, t, by_class);
	v->cls = class_of_all(t);
	enum tfh_class together = tfh_class_of(t->own, t->own_total);
	v->cause = cause_of(accounts, v->cls);
	/* The share that the verdict refers to: that of compute where nothing blocks. */
	enum tfh_class shown = v->cls == TFH_CLASS_BALANCED ? TFH_CLASS_COMPUTE_BOUND : v->cls;
	v->share = share_of(by_class[shown], t->total);
	set_also(v, t, together);
	v->confidence = confidence(accounts, v, t, &r->steps);
	/* Waiting for processors may make up half or more of the blocking time. */
	double waited = t->total - t->own_total;
	if (tfh_class_blocks(v->cls))
		waited = fmax(waited, tfh_steps_wait(accounts) * t->total);
	if (v->confidence == TFH_CONFIDENCE_HIGH && by_class[shown] > 0 &&
	    TFH_VERDICT_PROCESSOR_WAIT_PART * waited >= by_class[shown])
		v->confidence = TFH_CONFIDENCE_MEDIUM;
	if (v->confidence == TFH_CONFIDENCE_HIGH && tfh_is_supposed(accounts, v->cause))
		v->confidence = TFH_CONFIDENCE_MEDIUM;
	if (tfh_class_blocks(v->cls) &&
	    by_class[v->cls] <= TFH_VERDICT_ERRORS * standard_error(accounts, v->cls))
		v->confidence = TFH_CONFIDENCE_LOW;
	int rc = prefer_computing(accounts, r, t);
	if (!rc)
		rc = prefer_contention(accounts, r, t);
	if (!rc)
		rc = prefer_gpu_contention(accounts, r, t);
	if (v->cause == TFH_CAUSE_COMPUTE_CONTENTION) {
		v->share = gpu_contention(accounts);
		if (v->confidence == TFH_CONFIDENCE_HIGH)
			v->confidence = TFH_CONFIDENCE_MEDIUM;
	}
	return rc;
}

int tfh_classify(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	struct totals t;
	int rc;

	rc = expand(accounts, r);
	if (!rc)
		rc = count_steps(accounts, r);
	if (rc)
		return rc;
	sum_up(accounts, &t);
	fill_breakdown(r, &t);
	return give_verdict(accounts, r, &t);
}

/* What the what-ifs of a class gain, each by itself: *some: one certainly; *none: none of them. */
static void gains(const struct tfh_result *r, enum tfh_class cls, double step, bool *some,
		  bool *none)
{
	bool any = false;

	*some = false;
	*none = true;
	for (uint32_t i = 0; i < r->n_whatif; i++) {
		const struct tfh_whatif *w = &r->whatif[i];
		enum tfh_part part = tfh_remove_part(w->remove);
		if (part >= TFH_PART_COUNT || tfh_part_class(part) != cls)
			continue;
		any = true;
		*some |= w->high_s <= (1 - TFH_BLOCKING_SHARE) * step;
		*none &= w->low_s >= (1 - TFH_BLOCKING_SHARE) * step;
	}
	*none &= any;
}

int tfh_prefer_gain(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	struct tfh_verdict *v = &r->steady;
	double part[TFH_PART_COUNT], by_class[TFH_CLASS_COUNT], step = 0;
	enum tfh_class from = v->cls, to = TFH_CLASS_NONE;
	bool some, none;

	for (int p = 0; p < TFH_PART_COUNT; p++)
		step += part[p] = r->breakdown[p].s_per_step;
	if (!TFH_DETECT_PREFER_GAIN || v->tier != 'A' || !tfh_class_blocks(from))
		return 0;
	gains(r, from, step, &some, &none);
	if (!none)
		return 0;
	tfh_blocking_of(part, by_class);
	for (int c = 0; c < TFH_CLASS_COUNT; c++) {
		gains(r, c, step, &some, &none);
		if (some && tfh_class_blocks(c) && by_class[c] >= TFH_BLOCKING_SHARE * step &&
		    by_class[c] * TFH_VERDICT_ALSO_PART >= by_class[from] &&
		    (to == TFH_CLASS_NONE || by_class[c] > by_class[to]))
			to = c;
	}
	if (to == TFH_CLASS_NONE)
		return 0;
	v->cls = to;
	v->cause = cause_of(accounts, to);
	v->share = share_of(by_class[to], step);
	if (v->confidence == TFH_CONFIDENCE_HIGH)
		v->confidence = TFH_CONFIDENCE_MEDIUM;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < v->n_also; i++)
		if (v->also[i] != to)
			v->also[kept++] = v->also[i];
	v->n_also = kept;
	if (kept < TFH_ALSO)
		v->also[v->n_also++] = from;
	return turn_steps(r, from, to, v->cause);
}
