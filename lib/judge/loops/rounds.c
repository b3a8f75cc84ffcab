/*
 * PyTorch launches a step's forward pass from one thread and its backward pass from another, so a
 * step is a round of both. In a trace of few steps without copies or waits, layers are more alike
 * than steps, but they are within one thread.
 */
#include "judge/loops/anchor.h"
#include "judge/loops/step_clock.h"

struct round {
	uint64_t rough; /* of its launches, whatever their order */
	uint32_t from, launches;
	bool both; /* both threads launched */
};

struct round_reader {
	const struct tfh_facts *facts;
	uint8_t first, second; /* threads */
	uint32_t at;	       /* token */
};

/* The two threads of the rounds: all that launch a fair part of the whole. */
static bool two_threads(struct round_reader *r)
{
	const struct tfh_facts *facts = r->facts;
	uint64_t n[TFH_FACTS_TOKEN_THREADS + 1] = {0}, all = 0;
	size_t found = 0;

	for (size_t i = 0; i < facts->token.n; i++) {
		const struct tfh_token_kind *k = tfh_kind_of(facts, &facts->token.v[i]);
		n[k->thread] += tfh_is_launch(k);
		all += tfh_is_launch(k);
	}
	for (size_t i = 0; i < facts->token.n && found < 3; i++) {
		const struct tfh_token_kind *k = tfh_kind_of(facts, &facts->token.v[i]);
		if (n[k->thread] < TFH_LOOPS_PASS_SHARE * (double)all ||
		    (found && k->thread == r->first) || (found > 1 && k->thread == r->second))
			continue;
		*(found++ ? &r->second : &r->first) = k->thread;
	}
	return found == 2 && r->second != TFH_FACTS_TOKEN_THREADS &&
	       r->first != TFH_FACTS_TOKEN_THREADS;
}

/* A round begins where the first thread launches again after the second one did. */
static bool next_round(struct round_reader *r, struct round *out)
{
	const struct tfh_facts *facts = r->facts;

	*out = (struct round){0};
	for (; r->at < facts->token.n; r->at++) {
		const struct tfh_token_kind *k = tfh_kind_of(facts, &facts->token.v[r->at]);
		if (!tfh_is_launch(k) || (k->thread != r->first && k->thread != r->second))
			continue;
		if (k->thread == r->first && out->both)
			return true;
		if (k->thread == r->second && !out->launches)
			continue; /* the end of a round from before the recording */
		out->from = out->launches ? out->from : r->at;
		out->both |= k->thread == r->second;
		out->rough += k->rough;
		out->launches++;
	}
	return out->both;
}

/* Whether most rounds, with most launches, launch the same functions. */
static bool alike(const struct round_reader *threads)
{
	struct round_reader r = *threads;
	struct round s;
	uint64_t most = 0, launches = 0, same_launches = 0;
	size_t lead = 0, n = 0, same = 0;

	for (; next_round(&r, &s); n++) { /* the only kind that may have a majority */
		most = lead ? most : s.rough;
		lead += lead && s.rough != most ? -(size_t)1 : 1;
		launches += s.launches;
	}
	for (r = *threads; next_round(&r, &s);) {
		same += s.rough == most;
		same_launches += s.rough == most ? s.launches : 0;
	}
	return same >= TFH_LOOPS_FEWEST_STEPS - 1 && 2 * same > n && 2 * same_launches > launches &&
	       n >= TFH_LOOPS_FEWEST_STEPS && launches >= TFH_LOOPS_STEP_LAUNCHES * n;
}

/* Whether most intervals launch from one thread alone. */
bool tfh_within_one_thread(const struct tfh_facts *facts, const struct tfh_anchor *a)
{
	struct tfh_cutter c = {.facts = facts, .anchor = a};
	struct tfh_interval s;
	int64_t alone = 0;

	while (tfh_cut_next(&c, &s)) {
		const struct tfh_token_kind *first = NULL, *k;
		bool one = true;
		for (uint32_t i = s.from; i < s.to && one; i++) {
			k = tfh_kind_of(facts, &facts->token.v[i]);
			first = first || !tfh_is_launch(k) ? first : k;
			one = !tfh_is_launch(k) || k->thread == first->thread;
		}
		alone += one ? 1 : -1;
	}
	return a->kind == TFH_ANCHOR_KERNEL && alone > 0;
}

int tfh_mark_rounds(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	struct round_reader r = {.facts = facts};
	struct round s;
	int rc = 0;

	if (!TFH_DETECT_ROUNDS || facts->late.n || facts->late_launch || facts->late_lost ||
	    !two_threads(&r) || !alike(&r))
		return 0;
	while (!rc && next_round(&r, &s)) {
		const struct tfh_token *t = &facts->token.v[s.from];
		rc = TFH_PUSH_BIG(loops->mark,
				  ((struct tfh_boundary){.t0 = t->t0, .t1 = tfh_token_end(t)}));
	}
	return rc;
}
