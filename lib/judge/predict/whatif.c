/*
 * What removing a class of blocking time would gain. Host times alone only support a bound: the
 * step without that time. How much of it can be gained depends on what runs at the same time, so no
 * point value is given (step_s stays NAN); the true value is between low_s and high_s. The bound
 * must hold, so the uncertainty of the mean is subtracted from the rest of the step.
 */
#include <math.h>
#include <stdlib.h>

#include "judge/predict/predict.h"

static double removed(const struct tfh_result *r, enum tfh_remove what)
{
	enum tfh_part part = tfh_remove_part(what);
	double s = 0;

	if (part < TFH_PART_COUNT)
		return r->breakdown[part].s_per_step;
	for (int p = 0; p < TFH_PART_COUNT; p++)
		if (p != TFH_PART_COMPUTE && p != TFH_PART_UNATTRIBUTED)
			s += r->breakdown[p].s_per_step;
	return s;
}

/* The rest of a window without the removed time, seconds. */
static double kept(const struct tfh_step *s, enum tfh_remove what)
{
	enum tfh_part part = tfh_remove_part(what);

	if (part < TFH_PART_COUNT)
		return s->dur_s - (double)s->breakdown[part];
	return (double)s->breakdown[TFH_PART_COMPUTE] + (double)s->breakdown[TFH_PART_UNATTRIBUTED];
}

/* Whether the removed time is a wait for batches. */
static bool is_waiting(enum tfh_remove what)
{
	return what == TFH_REMOVE_INPUT || what == TFH_REMOVE_EVERYTHING_BUT_COMPUTE;
}

/* Sums over blocks of steps: the rest of a step, the whole step, their squares and product. */
struct means {
	double kept, all, kept2, all2, both, least;
	double rest[TFH_PREDICT_RUN_BLOCKS], gone[TFH_PREDICT_RUN_BLOCKS]; /* of each block */
	size_t n;
};

static void block(struct means *m, double kept_s, double all_s, uint64_t steps)
{
	double k = kept_s / (double)steps, a = all_s / (double)steps;

	m->kept += k;
	m->all += a;
	m->kept2 += k * k;
	m->all2 += a * a;
	m->both += k * a;
	m->rest[m->n] = k;
	m->gone[m->n++] = a - k;
}

/* Whether blocks differ by more than a machine that is slow for a while explains. */
static bool differ(const struct means *m)
{
	double least = INFINITY, most = 0;

	for (size_t i = 0; i < m->n; i++) {
		least = fmin(least, m->rest[i] + m->gone[i]);
		most = fmax(most, m->rest[i] + m->gone[i]);
	}
	return m->n >= TFH_PREDICT_FEWEST_BLOCKS && most > TFH_PREDICT_SLOWED * least;
}

/* By how many seconds the rest of a step grows with each second of the removed part, because steps
 * do different amounts of work (an episode's length, a sentence's): at most in proportion; 0:
 * blocks hardly differ. */
static double in_step(const struct means *m)
{
	double n = (double)m->n, rest = m->kept / n, gone = (m->all - m->kept) / n, var = 0,
	       cov = 0;

	for (size_t i = 0; i < m->n; i++) {
		var += (m->gone[i] - gone) * (m->gone[i] - gone);
		cov += (m->gone[i] - gone) * (m->rest[i] - rest);
	}
	if (!differ(m) || !(var > gone * TFH_PREDICT_ALIKE * gone * TFH_PREDICT_ALIKE * n))
		return 0;
	return fmin(fmax(cov / var, 0), rest / gone);
}

/* The shortest rest of a step in any block, as if the removed part were equally long in all of
 * them. */
static void find_fastest(struct means *m)
{
	double slope = in_step(m), gone = (m->all - m->kept) / (double)m->n;

	for (size_t i = 0; i < m->n; i++) {
		double k = m->rest[i] - slope * (m->gone[i] - gone);
		m->least = i ? fmin(m->least, k) : k;
	}
}

/* The rest of a step, by blocks of the run. */
static struct means by_block(const struct tfh_accounts *accounts, enum tfh_remove what)
{
	struct means m = {0};
	double k = 0, all = 0;
	uint64_t steps = 0, blocks = accounts->judged_steps / TFH_PREDICT_RUN_BLOCK_STEPS;

	if (blocks > TFH_PREDICT_RUN_BLOCKS)
		blocks = TFH_PREDICT_RUN_BLOCKS;
	TFH_EACH (i, blocks > 1 ? accounts->step.n : 0) {
		if (!tfh_window_summed(accounts, i))
			continue;
		k += kept(&accounts->step.v[i], what);
		all += accounts->step.v[i].dur_s;
		steps += accounts->loops->window.v[i].steps;
		if (steps * blocks < accounts->judged_steps)
			continue;
		block(&m, k, all, steps);
		k = all = 0;
		steps = 0;
	}
	find_fastest(&m);
	return m;
}

/* Standard error of the rest, as a share of the step (ratio estimator: when the machine is slow for
 * a while, it is slow with and without the removed cost). 0 if there are too few steps. */
static double uncertain(const struct means *m)
{
	if (m->n < 2 || !(m->all > 0))
		return 0;
	double r = m->kept / m->all, n = (double)m->n;
	double variance = (m->kept2 - 2 * r * m->both + r * r * m->all2) / (n - 1);
	return variance > 0 ? sqrt(variance / n) / (m->all / n) : 0;
}

/* Computing on a device cannot become faster. Code on the processor may always be as fast as in its
 * fastest block. */
double tfh_faster_s(const struct tfh_accounts *accounts, enum tfh_remove what)
{
	struct means m = by_block(accounts, what);

	return accounts->facts->cpu_only && m.n ? m.kept / (double)m.n - m.least : 0;
}

/* How long the driving threads waited for a CPU, as a share of the time in which they ran or could
 * have run. All CPUs were busy with other work then, which may be the removed work. */
static double late_share(const struct tfh_accounts *accounts)
{
	double late = accounts->facts->cpu_only ? accounts->facts->delay_per_run : 0;

	return late / (1 + late);
}

/* What all causes of a part block, of all judged steps. */
static int64_t part_ns(const struct tfh_accounts *accounts, enum tfh_part part)
{
	int64_t ns = 0;

	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		ns += tfh_cause_part(c) == part ? accounts->cause_ns[c] : 0;
	return ns;
}

/*
 * The after-effect of a pause: others use the caches meanwhile, so the code after it fetches its
 * instructions and data again. The longer the pause, the more is evicted, up to all of it. Without
 * the pause this cost disappears. It is as large as what the rest of the step uses: a graph runs
 * the same few kernels again and again, but where ops are executed one by one, all code of a step
 * runs once, as does a framework's code around its graphs.
 */
double tfh_cooled_s(const struct tfh_accounts *accounts, double removed_s, double left_s)
{
	const struct tfh_facts *facts = accounts->facts;
	double most = TFH_PREDICT_COOL_S;
	double launching =
		(double)part_ns(accounts, TFH_PART_LAUNCH) / 1e9 / (double)accounts->judged_steps;

	if (tfh_op_by_op(facts))
		most = fmax(most, TFH_PREDICT_COOLED_SHARE * left_s);
	else if (facts->cpu_only)
		most = fmax(TFH_PREDICT_COOL_GRAPH_S,
			    TFH_PREDICT_COOLED_SHARE * fmin(launching, left_s));
	return fmin(removed_s * TFH_PREDICT_COOLS_SHARE, most);
}

/*
 * Tier C: by how much the rest of a step may become shorter than it was. Parts of it may be as fast
 * as in the fastest block. On a processor it no longer waits for cores that the removed work kept
 * busy. The loop's own Python no longer waits for the lock if functions of the pipeline held it.
 * After a pause in the loop's code, the caches were cold.
 */
static double may_shrink(const struct tfh_accounts *accounts, enum tfh_remove what, double left,
			 double step, double own)
{
	const struct tfh_facts *facts = accounts->facts;
	struct means m = by_block(accounts, what);
	double warmer = is_waiting(what) ? TFH_PREDICT_WARMER : TFH_PREDICT_MEASURED;
	double off = fmax(warmer * left + TFH_PREDICT_ERRORS * uncertain(&m) * step,
			  tfh_faster_s(accounts, what));

	off += left * late_share(accounts);
	if (what == TFH_REMOVE_HOST && facts->cpu_only)
		off += tfh_cooled_s(accounts, step - left, left);
	if (what == TFH_REMOVE_INPUT && facts->lock_feeds)
		off += own;
	return fmin(off, left / TFH_PREDICT_MOST_OFF_PART);
}

/* The length of a step that waits for no batch: the quantile 1 / TFH_PREDICT_RUN_BLOCKS of such
 * steps. The pipeline's buffer was full, so its work did not slow them down. What the program's own
 * code does in only some of the steps (checkpoints) is added. INFINITY: there are too few. */
static double unwaited_s(const struct tfh_accounts *accounts, double own)
{
	double *v = malloc(2 * (accounts->step.n + 1) * sizeof(*v)), s = INFINITY;
	double *host = v ? v + accounts->step.n + 1 : NULL;
	struct means m = by_block(accounts, TFH_REMOVE_INPUT);
	size_t n = 0;

	TFH_EACH (i, v && !differ(&m) ? accounts->step.n : 0) {
		const struct tfh_step *x = &accounts->step.v[i];
		double rest = kept(x, TFH_REMOVE_INPUT), steps = accounts->loops->window.v[i].steps;
		if (!tfh_window_summed(accounts, i) ||
		    x->dur_s - rest >= TFH_BLOCKING_SHARE * x->dur_s)
			continue;
		v[n] = rest / steps;
		host[n++] = (double)x->breakdown[TFH_PART_HOST] / steps;
	}
	if (n >= TFH_VERDICT_STEADY_STEPS)
		s = tfh_quantile(v, n, 1.0 / TFH_PREDICT_RUN_BLOCKS) +
		    fmax(own - tfh_quantile(host, n, 0.5), 0);
	free(v);
	return s;
}

/* The lower end of the interval. Computing on a device stays, in the amount that the report shows;
 * it gains at most from warm caches. */
static double at_best(const struct tfh_accounts *accounts, enum tfh_remove what, double left,
		      double step, const struct tfh_result *r)
{
	double least = is_waiting(what) ? 1 - TFH_PREDICT_WARMER : 1;
	double host = r->breakdown[TFH_PART_HOST].s_per_step, own = host;
	bool cpu_only = accounts->facts->cpu_only;

	if (cpu_only) /* nothing is launched: that is the loop's Python, too */
		own += r->breakdown[TFH_PART_LAUNCH].s_per_step;
	double shrunk = left - may_shrink(accounts, what, left, step, own);
	if (cpu_only)
		return what == TFH_REMOVE_INPUT && tfh_input_async(accounts)
			       ? fmin(shrunk, unwaited_s(accounts, host))
			       : shrunk;
	return fmax(shrunk, fmin(least * r->breakdown[TFH_PART_COMPUTE].s_per_step, left));
}

/* Whether a step becomes shorter by the removed time: no device works in parallel, and no worker
 * makes batches meanwhile. */
static bool serial(const struct tfh_accounts *accounts)
{
	return accounts->facts->cpu_only &&
	       (!accounts->facts->consumers || tfh_on_request(accounts));
}

void tfh_may_leave(struct tfh_whatif *w, double step)
{
	if (isnan(w->step_s))
		w->high_s = fmin(w->high_s + TFH_PREDICT_LEFT_SHARE * step, step);
}

/* Whether the steps' threads mostly sleep for a given time: that time is nobody's work. */
static bool sleeps(const struct tfh_accounts *accounts)
{
	return (double)accounts->cause_ns[TFH_CAUSE_HOST_SLEEP] >=
	       TFH_VERDICT_MOST_SHARE * (double)accounts->train_ns;
}

/* Seconds per step in which threads other than those that make the steps use all CPUs, in steps
 * that compute next to nothing themselves: the computing that a framework's threads do while the
 * program's thread does what is removed (JAX), or what other threads do while it sleeps, such as
 * making what it polls for. */
static double hidden_s(const struct tfh_accounts *accounts, double step)
{
	double used, allowed;
	double compute = (double)(accounts->compute_ns + accounts->cause_ns[TFH_CAUSE_COMPUTE_CPU]);

	double ran = tfh_drivers_ran(accounts);

	/* If the program's thread mostly waits, others may do what is removed. */
	bool theirs = ran < TFH_VERDICT_MOST_SHARE && !sleeps(accounts);
	if (compute >= TFH_BLOCKING_SHARE * (double)accounts->train_ns || theirs ||
	    !tfh_processors(accounts, &used, &allowed))
		return 0;
	return used > 0 ? fmax(used - ran, 0) * step / allowed : 0;
}

void tfh_serial_gain(const struct tfh_accounts *accounts, enum tfh_remove what, double step,
		     double left, double off_s, struct tfh_whatif *w)
{
	struct means m = by_block(accounts, what);
	double even =
		TFH_PREDICT_MEASURED * left + TFH_PREDICT_ERRORS * uncertain(&m) * step + off_s;
	double below =
		even + tfh_cooled_s(accounts, step - left, left) + left * late_share(accounts);
	/* Batches that other threads or processes make from now on compete with the step for the
	 * machine. */
	double crowded = what == TFH_REMOVE_INPUT ? (TFH_PREDICT_CROWDING - 1) * left : 0;

	if (!serial(accounts) || !(left > 0))
		return;
	w->about_s = left;
	w->low_s = fmax(left - fmax(below, tfh_faster_s(accounts, what)),
			left / TFH_PREDICT_COOLED_PART);
	w->high_s = fmin(left + fmax(even, crowded) + hidden_s(accounts, step), step);
	if (below <= TFH_PREDICT_WIDEST * fmax(left, step - left) &&
	    below <= TFH_PREDICT_WIDEST_EVER * left) {
		w->step_s = left;
		w->speedup = step / left;
	}
	tfh_may_leave(w, step);
}

static void forget(struct tfh_whatif *w, const char *why)
{
	w->no_bound = why;
	w->low_s = w->floor_s = w->about_s = 0;
	w->step_s = w->speedup = w->ceiling_speedup = NAN;
}

static bool blocks(const struct tfh_accounts *accounts, enum tfh_cause cause)
{
	return (double)accounts->cause_ns[cause] >= TFH_BLOCKING_SHARE * (double)accounts->train_ns;
}

static void forget_host(struct tfh_result *r, const char *why, bool all)
{
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (all || r->whatif[i].remove == TFH_REMOVE_HOST ||
		    r->whatif[i].remove == TFH_REMOVE_EVERYTHING_BUT_COMPUTE)
			forget(&r->whatif[i], why);
	for (uint32_t i = 0; i < r->n_place; i++)
		forget(&r->place[i].gain, why);
}

void tfh_forget_gains(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	static const char few[] =
		"so few steps do not tell what every step takes and what only the first ones do";
	static const char peer[] =
		"another process of the run works step by step with this one, and may need that "
		"time itself";
	uint64_t windows = 0;

	TFH_EACH (i, accounts->step.n)
		windows += tfh_window_counts(accounts, i);
	if (windows < TFH_VERDICT_FEWEST_WINDOWS)
		forget_host(r, few, true);
	else if (accounts->facts->peer && blocks(accounts, TFH_CAUSE_HOST_WAIT))
		forget_host(r, peer, false);
}

/* Whether the job's own threads compete for CPUs. A job that uses at most one CPU waits only for
 * other jobs. That wait shrinks in proportion to its work, which intervals allow for
 * (late_share()). */
static bool crowds_itself(const struct tfh_accounts *accounts)
{
	double used, allowed;

	if (!accounts->facts->cpu_only || !(tfh_steps_wait(accounts) > TFH_CROWDED_SHARE))
		return false;
	return !tfh_processors(accounts, &used, &allowed) || !(used <= 1) || !(allowed > 1);
}

static const char competes[] =
	"the job's threads compete for CPUs: with less to do, the rest of the step gets faster, too";

void tfh_at_most(struct tfh_whatif *w, double step)
{
	if (w->no_bound == competes && w->about_s > 0)
		w->about_s = w->high_s = step;
}

/* Whether the host's own code is less than launching: then it may be part of that. */
static bool launches_most(const struct tfh_accounts *accounts)
{
	return part_ns(accounts, TFH_PART_HOST) < accounts->cause_ns[TFH_CAUSE_HOST_LAUNCH];
}

/* Whether the fix is one graph of all ops, which replaces those that remain, too. */
static bool makes_one_graph(const struct tfh_accounts *accounts, enum tfh_remove what)
{
	enum tfh_part part = tfh_remove_part(what);
	bool launches = part >= TFH_PART_COUNT || part == TFH_PART_LAUNCH ||
			(part == TFH_PART_HOST && launches_most(accounts));

	return launches && accounts->facts->cpu_only && blocks(accounts, TFH_CAUSE_HOST_LAUNCH) &&
	       !tfh_executes_graphs(accounts->facts);
}

/* Whether a graph leaves next to nothing of the removed time. A graph of TensorFlow's ops launches
 * them itself; PyTorch's compiler may leave some of them, or compute more slowly. */
static bool goes(const struct tfh_accounts *accounts, enum tfh_remove what)
{
	return what == TFH_REMOVE_LAUNCH && !tfh_uses_torch(accounts->facts);
}

const char *tfh_no_bound(const struct tfh_accounts *accounts, enum tfh_remove what)
{
	enum tfh_part part = tfh_remove_part(what);
	bool host = part >= TFH_PART_COUNT || part == TFH_PART_HOST;

	if (makes_one_graph(accounts, what))
		return "ops compiled into one graph would compute faster or slower, too";
	if (host && blocks(accounts, TFH_CAUSE_HOST_COMPILE))
		return "a function compiled once may run faster or slower, too";
	if ((host || part == TFH_PART_INPUT) && blocks(accounts, TFH_CAUSE_HOST_GIL))
		return "all threads run differently once Python's lock is free";
	return crowds_itself(accounts) ? competes : NULL;
}

/* The step without a class. A loop that waits for a loader's processes still takes their batches
 * out of a queue, and unpacks them: it keeps the CPU time that its thread used. */
static double rest_of(const struct tfh_accounts *accounts, enum tfh_remove what, double step,
		      double gone)
{
	const struct tfh_facts *facts = accounts->facts;
	bool receives = what == TFH_REMOVE_INPUT && facts->cpu_only && facts->loader &&
			tfh_input_async(accounts);

	return receives ? fmin(fmax(step - gone, tfh_drivers_ran(accounts) * step), step)
			: step - gone;
}

/* What the fastest tenth of the steps takes, seconds; NAN: there are too few. */
static double fastest_s(const struct tfh_accounts *accounts)
{
	double *v = malloc((accounts->step.n + 1) * sizeof(*v)), s = NAN;
	size_t n = 0;

	TFH_EACH (i, v ? accounts->step.n : 0)
		if (tfh_window_summed(accounts, i))
			v[n++] = accounts->step.v[i].dur_s / accounts->loops->window.v[i].steps;
	if (n >= TFH_VERDICT_STEADY_STEPS)
		s = tfh_quantile(v, n, 1.0 / TFH_PREDICT_RUN_BLOCKS);
	free(v);
	return s;
}

void tfh_set_uncrowded(const struct tfh_accounts *accounts, double step, double left, double cut,
		       double off, struct tfh_whatif *w)
{
	double fastest = fastest_s(accounts), least;

	/* steps so much faster do other work */
	if (step - fastest > TFH_PREDICT_MOST_OFF_PART * tfh_contended_s(accounts, TFH_PART_NONE))
		fastest = NAN;
	least = isnan(fastest) ? left - cut : fmin(left, fastest);
	w->about_s = fmax(left - cut, least);
	w->low_s = fmin(w->about_s - off - cut / 2, least);
	w->high_s = fmin(fmax(w->about_s + off + cut / 2, isnan(fastest) ? 0 : fastest), step);
	w->ceiling_speedup = step / w->low_s;
}

/* The step without the time in which its threads waited for a CPU, from the accounts alone. */
static void uncrowded(const struct tfh_accounts *accounts, double step, struct tfh_whatif *w)
{
	double waited = tfh_contended_s(accounts, TFH_PART_NONE);

	*w = (struct tfh_whatif){.remove = TFH_REMOVE_NONE,
				 .step_s = NAN,
				 .speedup = NAN,
				 .saved_s = NAN,
				 .ceiling_speedup = NAN};
	if (waited > 0 && !crowds_itself(accounts))
		tfh_set_uncrowded(accounts, step, step, waited, 0, w);
}

void tfh_whatif(const struct tfh_accounts *accounts, struct tfh_result *r)
{
	double step = 0, compute = r->breakdown[TFH_PART_COMPUTE].s_per_step;
	bool host_only = tfh_tier(accounts) == 'C';

	for (int p = 0; p < TFH_PART_COUNT; p++)
		step += r->breakdown[p].s_per_step;
	if (!(step > 0))
		return;
	uncrowded(accounts, step, &r->uncrowded);
	for (int what = 0; what < TFH_REMOVE_COUNT; what++) {
		double s = removed(r, what);
		/* A gain below 1 % is not reported. From host calls alone, the bound is less exact:
		 * the threshold is that of a class. */
		if (!(s >= (host_only ? TFH_BLOCKING_SHARE : TFH_PREDICT_WORTH_SHARE) * step))
			continue;
		struct tfh_whatif *w = &r->whatif[r->n_whatif++];
		w->remove = what;
		w->step_s = w->speedup = NAN;
		double left = host_only ? rest_of(accounts, what, step, s) : step - s;
		w->low_s = host_only ? at_best(accounts, what, left, step, r) : left;
		w->high_s = step;
		if (host_only)
			tfh_serial_gain(accounts, what, step, left, 0, w);
		w->floor_s = fmin(compute, w->low_s);
		w->ceiling_speedup = left > 0 ? step / w->low_s : NAN;
		const char *why = host_only ? tfh_no_bound(accounts, what) : NULL;
		if (why)
			forget(w, why);
		/* If a graph may leave some of the removed time, the remaining step is not
		 * known. */
		if (why && left > 0 && (!makes_one_graph(accounts, what) || goes(accounts, what)))
			w->about_s = left;
		tfh_at_most(w, left);
	}
}
