/* Whether the job serves requests. Then time without a request is idle, and not a defect. */
#include <math.h>
#include <string.h>

#include "judge/facts/served.h"
#include "judge/verdict/verdict.h"

static bool waits(enum tfh_cause cause)
{
	return cause == TFH_CAUSE_HOST_WAIT || cause == TFH_CAUSE_HOST_LOCK ||
	       cause == TFH_CAUSE_INPUT_UNKNOWN || cause == TFH_CAUSE_INPUT_REMOTE;
}

/* Whether most of the waiting happens in a server's own code. Its event loop may have timers of its
 * own. */
static bool waits_in_server(const struct tfh_accounts *accounts, enum tfh_cause about)
{
	const struct tfh_facts *facts = accounts->facts;
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	double all = 0, there = 0;
	struct tfh_judged_samples at = {0};
	struct tfh_seen_sample k;

	while (tfh_next_judged_sample(accounts, &at, &k)) {
		enum tfh_cause of = tfh_sample_cause(facts, k.at, k.feeds);
		bool idle = waits(of) || k.state == TFH_SEEN_TIMER;
		if (!idle && of != about)
			continue;
		uint32_t n = tfh_frames_at(facts, k.place, frame);
		all += k.ns;
		there += idle && tfh_in_server(frame, n) ? k.ns : 0;
	}
	return all > 0 && there > TFH_VERDICT_MOST_SHARE * all;
}

/* Whether the waiting is mostly for a mutex: a thread of the same process holds it, and no request
 * comes through it. */
static bool is_held_up(const struct tfh_accounts *accounts)
{
	double all = 0, held = 0;
	struct tfh_judged_samples at = {0};
	struct tfh_seen_sample k;

	while (tfh_next_judged_sample(accounts, &at, &k)) {
		if (!waits(tfh_sample_cause(accounts->facts, k.at, k.feeds)))
			continue;
		all += k.ns;
		held += k.at == TFH_SEEN_MUTEX ? k.ns : 0;
	}
	return all > 0 && held > TFH_VERDICT_MOST_SHARE * all;
}

/* Whether anything shows that the steps train: marks and names, a backward pass, an optimizer's
 * kernels, simulators that the program tells what to do. */
static bool trains(const struct tfh_accounts *accounts, const struct tfh_result *r)
{
	for (uint32_t i = 0; i < r->n_tree; i++)
		if (r->tree[i].kind == TFH_BRANCH_TRAIN || r->tree[i].kind == TFH_BRANCH_EPOCH)
			return true;
	for (uint32_t i = 0; i < r->n_families; i++)
		if (r->families[i].family == TFH_FAMILY_OPTIMIZER)
			return true;
	return accounts->facts->update.n || accounts->facts->loader || accounts->facts->consumers ||
	       accounts->facts->told;
}

/* Quartile coefficient of dispersion, (Q3 - Q1) / (Q3 + Q1), of sums of in_a_row consecutive
 * waits. */
static double spread_of(const double *wait, double *sum, size_t n, size_t in_a_row)
{
	size_t m = 0;

	for (size_t i = in_a_row - 1; i < n; i++, m++) {
		sum[m] = 0;
		for (size_t k = 0; k < in_a_row; k++)
			sum[m] += wait[i - k];
	}
	double low = tfh_quantile(sum, m, 0.25), high = tfh_quantile(sum, m, 0.75);
	return high + low > 0 ? (high - low) / (high + low) : 0;
}

/*
 * Whether the time of the verdict's part varies like the intervals between independent requests:
 * widely from step to step, and in sums of several steps no less than random intervals would.
 * (Batches of several workers arrive in bursts, but several together always take the same time.)
 */
static bool by_chance(const struct tfh_accounts *accounts, enum tfh_part part)
{
	double *v = tfh_big_array(2 * accounts->step.n, sizeof(*v)), *sum = v + accounts->step.n;
	size_t n = 0;
	bool found = false;

	TFH_EACH (i, v ? accounts->step.n : 0)
		if (tfh_window_counts(accounts, i))
			v[n++] = (double)accounts->step.v[i].breakdown[part];
	found = n >= (size_t)TFH_VERDICT_STEADY_STEPS;
	for (int row = 1; found && row <= TFH_VERDICT_CHANCE_STEPS; row++)
		found = spread_of(v, sum, n, (size_t)row) > TFH_VERDICT_CHANCE_SPREAD / sqrt(row);
	tfh_big_free(v);
	return found;
}

enum tfh_serves tfh_find_serving(const struct tfh_accounts *accounts, const struct tfh_result *r)
{
	enum tfh_cause cause = r->steady.cause;

	if (cause == TFH_CAUSE_NONE || !(waits(cause) || cause == TFH_CAUSE_HOST_SLEEP) || r->lead)
		return TFH_SERVES_NOT;
	if (waits_in_server(accounts, cause))
		return TFH_SERVES;
	return waits(cause) && !is_held_up(accounts) && !trains(accounts, r) &&
			       by_chance(accounts, tfh_cause_part(cause))
		       ? TFH_SERVES_MAYBE
		       : TFH_SERVES_NOT;
}
