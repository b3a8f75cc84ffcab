/*
 * CPU contention: time in which a driving thread could have run while others used the CPUs. There
 * are two kinds:
 *
 * 1. A thread that waited for the device continues late. Device times show each case (blame.c):
 *    host.cpu-contention.
 * 2. A thread is interrupted in its work, which then takes longer. The kernel adds up such time per
 *    thread (run delay), and the recorder samples the sums. The part that is not of the first kind
 *    is divided here over the steps between two samples, in proportion to the threads' work. It
 *    remains part of that work, as it would disappear with it, but does not count when the work is
 *    compared with other parts of a step.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "judge/account/account.h"

/* The time between two samples. */
struct interval {
	int64_t t0, t1;
	double ran, delay;  /* of the driving threads, seconds */
	double steps, late; /* of steps: their time, and the part of it that is of the first kind */
};

struct intervals {
	struct tfh_accounts *accounts;
	struct interval *v;
	size_t n;
	double runs;		   /* share of the part "host" in which the threads did not sleep */
	double sync, launch, host; /* of the second kind, in judged steps, seconds */
};

static void add_thread(struct interval *s, const struct tfh_thread_times *now,
		       const struct tfh_sample *before)
{
	for (uint32_t i = 0; i < before->threads; i++) {
		const struct tfh_thread_times *was = &before->thread[i];
		/* less than before: another thread has its id */
		if (was->thread != now->thread || was->run_s > now->run_s ||
		    was->delay_s > now->delay_s)
			continue;
		s->ran += now->run_s - was->run_s;
		s->delay += now->delay_s - was->delay_s;
	}
}

static int find_intervals(struct intervals *all)
{
	const struct tfh_facts *facts = all->accounts->facts;
	const struct tfh_sample *s = NULL;
	uint32_t n = tfh_machine_samples(facts, &s);

	all->v = calloc(n, sizeof(*all->v));
	if (!all->v)
		return -ENOMEM;
	for (uint32_t i = 1; i < n; i++) {
		struct interval *x = &all->v[all->n];
		*x = (struct interval){.t0 = s[i - 1].t, .t1 = s[i].t};
		for (uint32_t k = 0; k < s[i].threads; k++)
			if (tfh_index_drives(facts, s[i].thread[k].thread))
				add_thread(x, &s[i].thread[k], &s[i - 1]);
		all->n += x->t1 > x->t0;
	}
	return 0;
}

/* The share of a step that is inside an interval. */
static double part_in(const struct tfh_step *s, const struct interval *x)
{
	double t0 = (double)x->t0 / 1e9, t1 = (double)x->t1 / 1e9, end = s->start_s + s->dur_s;
	double from = s->start_s > t0 ? s->start_s : t0, to = end < t1 ? end : t1;

	return to > from && s->dur_s > 0 ? (to - from) / s->dur_s : 0;
}

/* Calls fn for each step that overlaps an interval. */
static void each_step(struct intervals *all, void (*fn)(struct intervals *all, struct interval *x,
							size_t step, double part))
{
	const struct tfh_step *s = all->accounts->step.v;
	size_t from = 0, n = all->accounts->step.n;

	for (size_t k = 0; k < all->n; k++) {
		struct interval *x = &all->v[k];
		while (from < n && (s[from].start_s + s[from].dur_s) * 1e9 <= (double)x->t0)
			from++;
		for (size_t i = from; i < n && s[i].start_s * 1e9 < (double)x->t1; i++)
			if (part_in(&s[i], x) > 0)
				fn(all, x, i, part_in(&s[i], x));
		tfh_big_trim();
	}
}

static void add_step(struct intervals *all, struct interval *x, size_t i, double part)
{
	x->steps += part * all->accounts->step.v[i].dur_s;
	x->late += part * (double)all->accounts->contention[i].late;
}

/* The share of run delay in the threads' work. */
static double slowed(const struct interval *x)
{
	double in_steps = x->steps / ((double)(x->t1 - x->t0) / 1e9);
	double rest = x->delay * in_steps - x->late;

	return rest > 0 ? rest / (x->ran * in_steps + rest) : 0;
}

static void slow_step(struct intervals *all, struct interval *x, size_t i, double part)
{
	struct tfh_accounts *accounts = all->accounts;
	const struct tfh_step *s = &accounts->step.v[i];
	struct tfh_contention *c = &accounts->contention[i];
	double share = part * slowed(x);
	double sync = share * (double)(s->breakdown[TFH_PART_SYNC] - c->late);
	/* A thread whose ops others execute waits for these. */
	double launch =
		accounts->facts->others_launch ? 0 : share * (double)s->breakdown[TFH_PART_LAUNCH];
	double host = share * all->runs * (double)s->breakdown[TFH_PART_HOST];

	c->sync += (float)sync;
	c->launch += (float)launch;
	c->host += (float)host;
	if (tfh_window_summed(accounts, i)) {
		all->sync += sync;
		all->launch += launch;
		all->host += host;
	}
}

/* Whether threads run, rather than sleep or wait, in host time of this cause. */
static bool is_running(int cause)
{
	return tfh_cause_part(cause) == TFH_PART_HOST && cause != TFH_CAUSE_HOST_SLEEP &&
	       cause != TFH_CAUSE_HOST_WAIT && cause != TFH_CAUSE_HOST_LOCK &&
	       cause != TFH_CAUSE_HOST_GIL;
}

/* Host time of all causes, or only of those in which the threads run. */
static double host_ns(const struct tfh_accounts *accounts, bool all)
{
	double ns = 0;

	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		ns += is_running(c) || (all && tfh_cause_part(c) == TFH_PART_HOST)
			      ? (double)accounts->cause_ns[c]
			      : 0;
	return ns;
}

static void sum_up(const struct intervals *all)
{
	struct tfh_accounts *accounts = all->accounts;
	double ns = host_ns(accounts, false);

	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		if (is_running(c) && ns > 0)
			accounts->slowed_ns[c] =
				1e9 * all->host * (double)accounts->cause_ns[c] / ns;
	accounts->slowed_ns[TFH_CAUSE_HOST_SYNC] = 1e9 * all->sync;
	accounts->slowed_ns[TFH_CAUSE_HOST_LAUNCH] = 1e9 * all->launch;
}

/* Sets the class of each step without contention, and the cause if it belongs to another class. */
static void judge_steps(struct tfh_accounts *accounts)
{
	TFH_EACH (i, accounts->step.n) {
		struct tfh_step *s = &accounts->step.v[i];
		double part[TFH_PART_COUNT], all = tfh_own_parts(accounts, i, part);
		enum tfh_class cls = tfh_class_of(part, all);
		if (s->cls == TFH_CLASS_UNCLASSIFIED || cls == (enum tfh_class)s->cls)
			continue;
		s->cls = (int8_t)cls;
		s->cause = (int8_t)(cls == TFH_CLASS_COMPUTE_BOUND && accounts->facts->cpu_only
					    ? TFH_CAUSE_COMPUTE_CPU
					    : tfh_largest_cause(accounts->cause_ns, cls));
	}
}

double tfh_own_parts(const struct tfh_accounts *accounts, size_t i, double part[TFH_PART_COUNT])
{
	const struct tfh_step *s = &accounts->step.v[i];
	const struct tfh_contention *c = accounts->contention ? &accounts->contention[i] : NULL;

	for (int p = 0; p < TFH_PART_COUNT; p++)
		part[p] = (double)s->breakdown[p];
	if (!c)
		return s->dur_s;
	part[TFH_PART_SYNC] -= (double)(c->late + c->sync);
	part[TFH_PART_LAUNCH] -= (double)c->launch;
	part[TFH_PART_HOST] -= (double)c->host;
	return s->dur_s - (double)(c->late + c->sync + c->launch + c->host);
}

double tfh_contended_s(const struct tfh_accounts *accounts, enum tfh_part without)
{
	double ns = 0;

	for (int c = 0; accounts->contention && c < TFH_CAUSE_COUNT; c++) {
		if (tfh_cause_part(c) == without)
			continue;
		ns += accounts->slowed_ns[c];
		ns += c == TFH_CAUSE_HOST_CONTENTION ? (double)accounts->cause_ns[c] : 0;
	}
	return accounts->judged_steps ? ns / 1e9 / (double)accounts->judged_steps : 0;
}

double tfh_steps_wait(const struct tfh_accounts *accounts)
{
	const struct tfh_loops *loops = accounts->loops;
	int64_t t0 = INT64_MAX, t1 = INT64_MIN;

	TFH_EACH (i, loops->window.n) {
		const struct tfh_window *w = &loops->window.v[i];
		if (w->segment != TFH_SEGMENT_TRAIN)
			continue;
		t0 = w->t0 < t0 ? w->t0 : t0;
		t1 = w->t1 > t1 ? w->t1 : t1;
	}
	return tfh_processor_wait(accounts->facts, t0, t1);
}

/* CPU seconds between two samples. */
typedef double ran(const struct tfh_facts *facts, const struct tfh_sample *from,
		   const struct tfh_sample *to);

static double process_ran(const struct tfh_facts *facts, const struct tfh_sample *from,
			  const struct tfh_sample *to)
{
	(void)facts;
	(void)from;
	return to->cpu_s - to->flusher_s;
}

/* Processors in use between the first window and the last. NAN: no two samples lie there. */
static double in_use(const struct tfh_accounts *accounts, ran *between)
{
	const struct tfh_sample *s = NULL;
	uint32_t n = tfh_machine_samples(accounts->facts, &s);
	const struct tfh_loops *l = accounts->loops;
	double cpu_s = 0, wall_s = 0;

	for (uint32_t i = 1; i < n && l->window.n; i++) {
		if (s[i - 1].t < l->window.v[0].t0 || s[i].t > l->window.v[l->window.n - 1].t1)
			continue;
		cpu_s += between(accounts->facts, &s[i - 1], &s[i]);
		wall_s += (double)(s[i].t - s[i - 1].t) / 1e9;
	}
	return wall_s > 0 ? cpu_s / wall_s : NAN;
}

bool tfh_processors(const struct tfh_accounts *accounts, double *used, double *allowed)
{
	const struct tfh_sample *s = NULL;
	uint32_t n = tfh_machine_samples(accounts->facts, &s);

	*used = in_use(accounts, process_ran);
	*allowed = n ? s[0].cpus : 0;
	return *allowed > 0;
}

double tfh_all_work_s(const struct tfh_accounts *accounts, double step)
{
	double used, allowed;

	if (!tfh_processors(accounts, &used, &allowed) || !(used > 0))
		return 0;
	return fmin((used + tfh_steps_wait(accounts)) * step / allowed, step);
}

double tfh_drivers_ran(const struct tfh_accounts *accounts)
{
	double used = in_use(accounts, tfh_drivers_between);

	return used > 0 ? used : 0;
}

int tfh_find_contention(struct tfh_accounts *accounts)
{
	struct intervals all = {.accounts = accounts};
	double host = host_ns(accounts, true);
	int rc = accounts->contention ? find_intervals(&all) : 0;

	if (!accounts->contention || rc)
		return rc;
	all.runs = host > 0 ? host_ns(accounts, false) / host : 0;
	each_step(&all, add_step);
	each_step(&all, slow_step);
	sum_up(&all);
	judge_steps(accounts);
	free(all.v);
	return 0;
}
