/*
 * Closes a window's account: computes its step, and the sums over all steps that count. Used for
 * windows charged from the device line and from the host line.
 */
#include <string.h>

#include "judge/account/account.h"

/* Sums an account by part, ns; the rest of the window's `ns` is unattributed. */
static void parts_of(const struct tfh_account *a, int64_t ns, double part[TFH_PART_COUNT])
{
	int64_t known = a->compute;

	memset(part, 0, TFH_PART_COUNT * sizeof(*part));
	part[TFH_PART_COMPUTE] = (double)a->compute;
	for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
		part[tfh_cause_part(c)] += (double)a->cause[c];
		known += a->cause[c];
	}
	part[TFH_PART_UNATTRIBUTED] = (double)(ns - known);
}

/* Adds an account to the sums. */
static void count(struct tfh_accounts *accounts, const struct tfh_account *a, int64_t ns,
		  uint32_t steps)
{
	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		accounts->cause_ns[c] += a->cause[c];
	accounts->compute_ns += a->compute;
	accounts->direct_ns += a->direct;
	accounts->train_ns += ns;
	accounts->judged_steps += steps;
}

static void count_other(struct tfh_accounts *accounts, size_t i, const struct tfh_account *a,
			int64_t ns)
{
	struct tfh_others *o = &accounts->other[accounts->use[i].segment];

	tfh_account_sum(&o->sum, a);
	o->ns += ns;
	o->longest = ns > o->longest ? ns : o->longest;
	o->n++;
	o->late += i >= accounts->loops->window.n / 2;
	o->steps += accounts->loops->window.v[i].steps;
}

void tfh_account_close(struct tfh_accounts *accounts, size_t i, const struct tfh_account *a,
		       int64_t from, int64_t to)
{
	const struct tfh_window *w = &accounts->loops->window.v[i];
	struct tfh_step *s = &accounts->step.v[i];
	double part[TFH_PART_COUNT];
	int64_t ns = to - from;

	parts_of(a, ns, part);
	s->start_s = (double)from / 1e9;
	s->dur_s = (double)ns / 1e9;
	s->host_t0 = w->t0;
	s->host_t1 = w->t1;
	s->tier = accounts->use[i].tier;
	s->cls = (int8_t)(w->hole ? TFH_CLASS_UNCLASSIFIED : tfh_class_of(part, (double)ns));
	s->cause = (int8_t)(w->hole ? TFH_CAUSE_NONE : tfh_largest_cause(a->cause, s->cls));
	if (s->cause == TFH_CAUSE_COMPUTE_CONTENTION &&
	    (double)a->cause[s->cause] < (1 - TFH_ACCOUNT_COMPUTE_SHARE) * (double)ns)
		s->cause = TFH_CAUSE_NONE;
	if (s->cls == TFH_CLASS_COMPUTE_BOUND && accounts->facts->cpu_only)
		s->cause = TFH_CAUSE_COMPUTE_CPU;
	for (int p = 0; p < TFH_PART_COUNT; p++)
		s->breakdown[p] = (float)(part[p] / 1e9);
	if (accounts->contention)
		accounts->contention[i].late =
			(float)((double)a->cause[TFH_CAUSE_HOST_CONTENTION] / 1e9);
	for (int c = 0; c < TFH_CAUSE_COUNT && accounts->step_cause; c++)
		accounts->step_cause[i][c] = (float)((double)a->cause[c] / 1e9);
	if (tfh_is_stall(accounts, i, ns, a->compute))
		accounts->use[i].segment = TFH_SEGMENT_STALL;
	s->segment = (int8_t)accounts->use[i].segment;
	if (tfh_window_summed(accounts, i))
		count(accounts, a, ns, w->steps);
	else if (accounts->use[i].segment != TFH_SEGMENT_TRAIN)
		count_other(accounts, i, a, ns);
}
