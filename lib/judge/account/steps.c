/*
 * Corrections that need several steps: whether "executing" was computing at all, and the class of
 * single disturbed steps.
 */
#include <math.h>

#include "judge/account/account.h"

static double overlap(const struct tfh_window *w, int64_t t0, int64_t t1)
{
	int64_t a = w->t0 > t0 ? w->t0 : t0, b = w->t1 < t1 ? w->t1 : t1;

	return b > a ? (double)(b - a) / (double)(w->t1 - w->t0) : 0;
}

/* Executing time of all windows within [t0, t1), seconds. Windows before *from ended earlier. */
static double executed(const struct tfh_accounts *accounts, size_t *from, int64_t t0, int64_t t1)
{
	double s = 0;

	while (*from < accounts->step.n && accounts->loops->window.v[*from].t1 <= t0)
		++*from;
	for (size_t i = *from; i < accounts->step.n && accounts->loops->window.v[i].t0 < t1; i++)
		if (accounts->loops->window.v[i].t1 > t0)
			s += overlap(&accounts->loops->window.v[i], t0, t1) *
			     (double)accounts->step.v[i].breakdown[TFH_PART_COMPUTE];
	return s;
}

/* The share of the executing time during which the process ran on a CPU; NAN: not known. */
static double ran_of(const struct tfh_accounts *accounts)
{
	const struct tfh_sample *s = NULL;
	uint32_t n = tfh_machine_samples(accounts->facts, &s);
	double cpu = 0, exec = 0, delay = 0, all = 0;
	size_t from = 0;

	for (uint32_t i = 1; i < n && accounts->facts->cpu_only; i++) {
		double e = executed(accounts, &from, s[i - 1].t, s[i].t);
		if (!(i & 0xff))
			tfh_big_trim();
		if (e * 1e9 < TFH_ACCOUNT_EXECUTING_SHARE * (double)(s[i].t - s[i - 1].t))
			continue;
		exec += e;
		cpu += s[i].cpu_s;
		delay += s[i].run_delay_s;
		all += (double)(s[i].t - s[i - 1].t) / 1e9;
	}
	if (exec <= 0 || delay > TFH_CROWDED_SHARE * all)
		return NAN;
	return cpu / exec < 1 ? cpu / exec : 1;
}

/* Moves this share of a step's computing to the host. */
static void move_idle(struct tfh_step *step, float *cause, double idle)
{
	float moved = (float)idle * step->breakdown[TFH_PART_COMPUTE];
	double part[TFH_PART_COUNT];

	step->breakdown[TFH_PART_COMPUTE] -= moved;
	step->breakdown[TFH_PART_HOST] += moved;
	if (cause)
		cause[TFH_CAUSE_HOST_UNKNOWN] += moved;
	if (step->cls == TFH_CLASS_UNCLASSIFIED)
		return;
	for (int p = 0; p < TFH_PART_COUNT; p++)
		part[p] = (double)step->breakdown[p];
	enum tfh_class cls = tfh_class_of(part, step->dur_s);
	if (cls != (enum tfh_class)step->cls)
		step->cause = cls == TFH_CLASS_HOST_BOUND ? TFH_CAUSE_HOST_UNKNOWN : TFH_CAUSE_NONE;
	step->cls = (int8_t)cls;
}

/*
 * On a CPU, computing needs CPU time. If the process used hardly any while a graph "executed", the
 * graph waited, for a Python function in it or for files: that is host time. Samples come once a
 * second, so this is decided for the whole run.
 */
void tfh_idle_compute(struct tfh_accounts *accounts)
{
	accounts->compute_ran = ran_of(accounts);
	if (!(accounts->compute_ran < TFH_GRAPH_WAITS_SHARE))
		return;
	double idle = 1 - accounts->compute_ran;
	TFH_EACH (i, accounts->step.n)
		move_idle(&accounts->step.v[i],
			  accounts->step_cause ? accounts->step_cause[i] : NULL, idle);
	int64_t ns = (int64_t)(idle * (double)accounts->compute_ns);
	accounts->compute_ns -= ns;
	accounts->cause_ns[TFH_CAUSE_HOST_UNKNOWN] += ns;
}

static bool usable(const struct tfh_accounts *accounts, size_t i)
{
	return tfh_window_counts(accounts, i) && accounts->step.v[i].segment == TFH_SEGMENT_TRAIN;
}

static bool usual(const struct tfh_accounts *accounts, size_t i)
{
	return accounts->step.v[i].dur_s * 1e9 <= TFH_ACCOUNT_LONG_TIMES *
							  (double)accounts->loops->median *
							  accounts->loops->window.v[i].steps;
}

/* The most frequent cause of this class among the neighbours. */
static int8_t common_cause(const struct tfh_accounts *accounts, size_t from, size_t to,
			   enum tfh_class cls)
{
	uint32_t votes[TFH_CAUSE_COUNT] = {0};
	int8_t best = TFH_CAUSE_NONE;

	for (size_t i = from; i < to; i++) {
		int8_t c = accounts->step.v[i].cause;
		if (c < 0 || tfh_cause_class(c) != cls)
			continue;
		if (++votes[c] > (best < 0 ? 0 : votes[best]))
			best = c;
	}
	return best;
}

static bool has_causes(enum tfh_class cls)
{
	return cls == TFH_CLASS_INPUT_BOUND || cls == TFH_CLASS_TRANSFER_BOUND ||
	       cls == TFH_CLASS_HOST_BOUND || cls == TFH_CLASS_COMMUNICATION_BOUND;
}

static double compute_share(const struct tfh_accounts *accounts, size_t i)
{
	const struct tfh_step *s = &accounts->step.v[i];

	return s->dur_s > 0 ? (double)s->breakdown[TFH_PART_COMPUTE] / s->dur_s : 0;
}

/* Class of the usual steps in [from, to) together, without the one that computes most and the one
 * that computes least: a single disturbed step must not decide for its neighbours. */
static enum tfh_class class_together(const struct tfh_accounts *accounts, size_t from, size_t to)
{
	double part[TFH_PART_COUNT] = {0}, own[TFH_PART_COUNT], total = 0;
	size_t used = 0, most = from, least = from;

	for (size_t j = from; j < to; j++) {
		if (!usable(accounts, j) || !usual(accounts, j))
			continue;
		if (!used++)
			most = least = j;
		if (compute_share(accounts, j) > compute_share(accounts, most))
			most = j;
		if (compute_share(accounts, j) <= compute_share(accounts, least))
			least = j;
	}
	for (size_t j = from; j < to; j++) {
		if (!usable(accounts, j) || !usual(accounts, j) ||
		    (used > TFH_ACCOUNT_TRIM_STEPS && (j == most || j == least)))
			continue;
		total += tfh_own_parts(accounts, j, own);
		for (int p = 0; p < TFH_PART_COUNT; p++)
			part[p] += own[p];
	}
	return tfh_class_of(part, total);
}

/*
 * Judges a step of usual length together with its neighbours of usual length: a thread that was
 * descheduled for a moment, or a buffer that alternately empties and fills, does not make a step of
 * another class. A step more than twice as long as usual is judged by itself.
 */
void tfh_smooth_classes(struct tfh_accounts *accounts)
{
	size_t n = accounts->step.n;
	int8_t *cls = tfh_big_array(n, 1), *cause = tfh_big_array(n, 1);

	/* Uses the original classes of all neighbours, not those already changed. */
	TFH_EACH (i, cls && cause ? n : 0) {
		size_t from = i > TFH_ACCOUNT_NEIGHBOURS ? i - TFH_ACCOUNT_NEIGHBOURS : 0,
		       to = i + TFH_ACCOUNT_NEIGHBOURS + 1 < n ? i + TFH_ACCOUNT_NEIGHBOURS + 1 : n;
		cls[i] = accounts->step.v[i].cls;
		cause[i] = accounts->step.v[i].cause;
		if (usable(accounts, i) && usual(accounts, i))
			cls[i] = (int8_t)class_together(accounts, from, to);
		if (cls[i] == accounts->step.v[i].cls)
			continue;
		int8_t common = common_cause(accounts, from, to, cls[i]);
		/* Together they cannot have a class that none of them has alone. */
		if (common == TFH_CAUSE_NONE && has_causes(cls[i]))
			cls[i] = accounts->step.v[i].cls;
		else
			cause[i] = common;
	}
	TFH_EACH (i, cls && cause ? n : 0) {
		accounts->step.v[i].cls = cls[i];
		accounts->step.v[i].cause = cause[i];
	}
	tfh_big_free(cause);
	tfh_big_free(cls);
}

bool tfh_judged_at(const struct tfh_accounts *accounts, int64_t t, size_t *window)
{
	const struct tfh_step *s = accounts->step.v;
	double at = (double)t / 1e9;

	/* With device times a step lasts from completion to completion, and contains the host's
	 * pauses that delayed it. */
	while (*window < accounts->step.n && s[*window].start_s + s[*window].dur_s <= at)
		++*window;
	return *window < accounts->step.n && s[*window].start_s <= at &&
	       tfh_window_counts(accounts, *window);
}

bool tfh_next_judged_sample(const struct tfh_accounts *accounts, struct tfh_judged_samples *at,
			    struct tfh_seen_sample *k)
{
	const struct tfh_facts *facts = accounts->facts;

	while (at->next < tfh_stack_samples_count(facts->samples)) {
		*k = tfh_stack_samples_at(facts->samples, at->next++);
		if (facts->thread[k->thread].drives && tfh_judged_at(accounts, k->t, &at->window))
			return true;
	}
	return false;
}
