/*
 * How well samples support the cause of a host-bound verdict. A cause that its own calls prove
 * (launches, waits, allocations) needs no samples. Where there are none at all (an imported trace),
 * nothing is concluded from that.
 */
#include <math.h>

#include "judge/verdict/verdict.h"

/* Samples of driving threads between their calls in judged steps, by cause. */
struct seen {
	uint32_t all, of[TFH_CAUSE_COUNT];
	double ns[TFH_CAUSE_COUNT], ns2[TFH_CAUSE_COUNT]; /* their times, and the squares */
	/* of host.python: at a line of the program, in what may be an op of PyTorch */
	uint32_t ops;
	uint32_t takes; /* where a thread may be waiting for a result or for the next batch */
	/* waiting for a batch only because another thread is waited for before a copy */
	uint32_t locks;
};

static bool at_program(const struct tfh_facts *facts, uint32_t place)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];

	return tfh_frames_at(facts, place, frame) && !frame[0].library;
}

static struct seen count(const struct tfh_accounts *accounts)
{
	struct seen n = {0};
	struct tfh_judged_samples at = {0};
	struct tfh_seen_sample k;

	while (tfh_next_judged_sample(accounts, &at, &k)) {
		if (k.inside)
			continue;
		n.all++;
		enum tfh_cause cause = tfh_seen_cause(accounts, &k);
		n.of[cause]++;
		n.ns[cause] += k.ns;
		n.ns2[cause] += k.ns * k.ns;
		n.ops += cause == TFH_CAUSE_HOST_PYTHON && k.op &&
			 at_program(accounts->facts, k.place);
		n.locks += cause == TFH_CAUSE_INPUT_UNKNOWN && tfh_awaits_thread(k.at);
		n.takes += tfh_role_takes(tfh_at_role(k.at));
	}
	return n;
}

/* Whether the cause has more samples than the next one of its class, by more than chance. */
static bool leads(const struct seen *n, enum tfh_cause cause)
{
	uint32_t next = 0;

	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		if (c != (int)cause && tfh_cause_class(c) == tfh_cause_class(cause) &&
		    n->of[c] > next)
			next = n->of[c];
	return n->of[cause] > next &&
	       n->of[cause] - next >= TFH_PREDICT_ERRORS * sqrt((double)n->of[cause] + next);
}

/* How many samples of equal times would tell as much (Kish, 1965, Survey Sampling): of samples of
 * which one represents most of the time, hardly more than that one. */
static double as_many_as(const struct seen *n, enum tfh_cause cause)
{
	return n->ns2[cause] > 0 ? n->ns[cause] * n->ns[cause] / n->ns2[cause] : 0;
}

/* Whether most steps write summaries by ops, which are recorded. */
static bool writes_summaries(const struct tfh_accounts *accounts)
{
	return 2 * accounts->facts->logged.n > accounts->step.n;
}

/* Whether the cause is proved by calls alone. */
static bool proved_by_calls(const struct tfh_accounts *accounts, enum tfh_cause cause)
{
	return cause < 0 || tfh_cause_class(cause) != TFH_CLASS_HOST_BOUND ||
	       (cause == TFH_CAUSE_HOST_LAUNCH && !accounts->facts->cpu_only) ||
	       cause == TFH_CAUSE_HOST_SYNC || cause == TFH_CAUSE_HOST_ALLOC ||
	       (cause == TFH_CAUSE_HOST_LOGGING && writes_summaries(accounts)) ||
	       accounts->facts->feed->imported;
}

/* Whether calls show when the host spends the time (after the step, or between ops none of which
 * runs on a device) but not on what. */
static bool placed_by_calls(enum tfh_cause cause)
{
	return cause == TFH_CAUSE_HOST_CALLBACK || cause == TFH_CAUSE_HOST_LAUNCH;
}

enum tfh_borne_out tfh_borne_out(const struct tfh_accounts *accounts, enum tfh_cause cause)
{
	if (proved_by_calls(accounts, cause) || !tfh_stack_samples_count(accounts->facts->samples))
		return TFH_BORNE_OUT;
	if (cause == TFH_CAUSE_HOST_UNKNOWN)
		return TFH_BORNE_OUT_NOT;
	struct seen n = count(accounts);
	bool code = cause == TFH_CAUSE_HOST_PYTHON || cause == TFH_CAUSE_HOST_CODE;
	if (placed_by_calls(cause) && n.all < TFH_FACTS_SAMPLE_LEAST)
		return TFH_BORNE_OUT_HARDLY;
	if (!n.of[cause] && !code)
		return TFH_BORNE_OUT; /* its calls prove it, or the position of its pauses */
	if (n.of[cause] < TFH_VERDICT_LINE_SAMPLES && !placed_by_calls(cause))
		return TFH_BORNE_OUT_NOT;
	if (code && TFH_DETECT_FEW_TELL && as_many_as(&n, cause) < TFH_VERDICT_LINE_SAMPLES)
		return TFH_BORNE_OUT_NOT;
	/* The program's own Python holds the lock. Ops that it calls itself may be the forward
	 * pass. */
	if (TFH_DETECT_RELEASED && cause == TFH_CAUSE_HOST_PYTHON && 2 * n.ops > n.of[cause])
		return TFH_BORNE_OUT_AS_OPS;
	bool takes = (cause == TFH_CAUSE_HOST_LOCK || cause == TFH_CAUSE_HOST_WAIT) &&
		     2 * n.takes > n.of[cause];
	return !takes && n.of[cause] >= TFH_FACTS_SAMPLE_LEAST && leads(&n, cause)
		       ? TFH_BORNE_OUT
		       : TFH_BORNE_OUT_HARDLY;
}

bool tfh_is_supposed(const struct tfh_accounts *accounts, enum tfh_cause cause)
{
	if (cause != TFH_CAUSE_INPUT_UNKNOWN || accounts->facts->makers)
		return false;
	struct seen n = count(accounts);
	return 2 * n.locks > n.of[cause];
}
