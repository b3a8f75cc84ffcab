/*
 * Short pauses between calls. They are launching, unless samples of a thread's short pauses in
 * training steps show other work: many short calls log a value, or read weights for a callback.
 */
#include <stdlib.h>

#include "judge/account/account.h"

/* Samples of one thread's short pauses in training steps. */
struct tfh_brief {
	uint64_t samples;
	double all, of[TFH_CAUSE_COUNT]; /* ns; from tfh_brief_find() on, of: shares */
	bool divides;
};

/* Whether a place in the program shows work that no launch needs, so that it is no launching
 * either. */
static bool is_other_work(enum tfh_role role)
{
	return role == TFH_ROLE_LOG || role == TFH_ROLE_SAVE || role == TFH_ROLE_CALLED ||
	       role == TFH_ROLE_READ || role == TFH_ROLE_DECODE || role == TFH_ROLE_MAP ||
	       role == TFH_ROLE_BATCH || role == TFH_ROLE_REMOTE || role == TFH_ROLE_LOADER;
}

static void count(struct tfh_accounts *accounts, const struct tfh_seen_sample *k)
{
	struct tfh_brief *b = &accounts->brief[k->thread];

	b->samples++;
	b->all += k->ns;
	b->of[is_other_work(tfh_at_role(k->at)) ? tfh_sample_cause(accounts->facts, k->at, k->feeds)
						: TFH_CAUSE_HOST_LAUNCH] += k->ns;
}

/* Whether the samples say how short pauses divide. Five that all show other work are enough, too:
 * if half of the time were launching, that would happen once in 32 times. */
static bool tells(const struct tfh_brief *b)
{
	double launching = b->of[TFH_CAUSE_HOST_LAUNCH];

	return launching > 0 ? b->samples >= TFH_FACTS_SAMPLE_LEAST && launching < b->all
			     : b->samples >= (TFH_DETECT_AGREED ? TFH_VERDICT_LINE_SAMPLES
								: TFH_FACTS_SAMPLE_LEAST);
}

int tfh_brief_find(struct tfh_accounts *accounts)
{
	const struct tfh_facts *facts = accounts->facts;
	const struct tfh_loops *loops = accounts->loops;
	uint32_t threads = facts->feed->n_threads;
	size_t at = SIZE_MAX;

	if (!TFH_DETECT_BRIEF || !tfh_stack_samples_count(facts->samples))
		return 0;
	accounts->brief = calloc(threads + 1, sizeof(*accounts->brief));
	if (!accounts->brief)
		return -ENOMEM;
	for (size_t i = 0; i < tfh_stack_samples_count(facts->samples); i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		if (k.pauses || k.inside || !facts->thread[k.thread].drives)
			continue;
		at = tfh_window_of(loops, k.t, at);
		if (at != SIZE_MAX && loops->window.v[at].segment == TFH_SEGMENT_TRAIN)
			count(accounts, &k);
	}
	for (uint32_t t = 0; t < threads; t++) {
		struct tfh_brief *b = &accounts->brief[t];
		b->divides = tells(b);
		for (int c = 0; c < TFH_CAUSE_COUNT && b->divides; c++)
			b->of[c] /= b->all;
	}
	return 0;
}

const double *tfh_brief_shares(const struct tfh_accounts *accounts, uint32_t thread)
{
	const struct tfh_brief *brief = accounts->brief;
	uint32_t threads = accounts->facts->feed->n_threads, t = thread;

	if (!brief)
		return NULL;
	if (thread == TFH_ANY_THREAD)
		for (uint32_t i = t = 0; i < threads; i++)
			t = brief[i].all > brief[t].all ? i : t;
	return t < threads && brief[t].divides ? brief[t].of : NULL;
}
