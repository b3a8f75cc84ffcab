/* Which batches fit a preprocessing layer of Keras (StringLookup.adapt()), and not the model: the
 * samples between them show it. Such a layer is ready before the model is trained. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "judge/facts/survey.h"

/* Samples between the batches of an iterator. */
struct seen_between {
	uint32_t all, adapting;
};

static bool in_adapt(const struct tfh_model_line *frame, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (frame[i].library && !strcmp(tfh_last_name(frame[i].function), "adapt") &&
		    strstr(frame[i].file, "keras/"))
			return true;
	return false;
}

/* Counts a sample if the batch before it and the one after it are of one iterator. */
static void count(const struct tfh_facts *facts, const struct tfh_seen_sample *k,
		  struct seen_between *seen)
{
	struct tfh_model_line frame[TFH_VERDICT_FRAMES];
	size_t next = TFH_BISECT(i, 0, facts->batch.n, facts->batch.v[i].t1 <= k->t);

	if (!facts->thread[k->thread].drives || !next || next == facts->batch.n ||
	    facts->batch.v[next].series != facts->batch.v[next - 1].series)
		return;
	uint32_t n = tfh_frames_at(facts, k->place, frame);
	if (!n)
		return;
	seen[facts->batch.v[next].series].all++;
	seen[facts->batch.v[next].series].adapting += in_adapt(frame, n);
}

int tfh_find_adapting(struct tfh_facts *facts)
{
	struct seen_between *seen = calloc(facts->series.n + 1, sizeof(*seen));

	if (!seen)
		return -ENOMEM;
	for (size_t i = 0; i < tfh_stack_samples_count(facts->samples); i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(facts->samples, i);
		count(facts, &k, seen);
	}
	for (size_t i = 0; i < facts->series.n; i++) {
		struct tfh_series *s = &facts->series.v[i];
		s->adapts = seen[i].adapting > TFH_VERDICT_MOST_SHARE * seen[i].all;
		s->tests |= s->adapts;
	}
	free(seen);
	return 0;
}
