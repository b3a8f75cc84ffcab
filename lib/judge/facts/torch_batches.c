/*
 * What the batches of PyTorch's data loaders are for. All iterators of a kind have one name, but what follows a batch shows
 * it: a batch followed by a backward pass or an optimizer's step trains, others evaluate, until the next one that trains. If
 * there are several backward passes per optimizer's step, their batches are one step.
 *
 * The call that ends an iterator is marked in the recording if the recorder could read the interpreter by then. Until the first
 * marked one, a call without training after one with training counts as the loader's end. A marked call may also be followed by
 * training: loaders that fetch a batch ahead (accelerate's) find the end before the last batch is trained with.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "judge/facts/survey.h"

/* What followed a batch before the next one. */
struct behind {
	bool trains, updates;
};

static struct behind look_behind(const struct tfh_facts *facts, size_t i, size_t *exec, size_t *up)
{
	int64_t until = i + 1 < facts->batch.n ? facts->batch.v[i + 1].t1 : INT64_MAX;
	struct behind b = {false, false};

	for (; *exec < facts->exec.n && facts->exec.v[*exec].t1 <= until; ++*exec)
		b.trains |= facts->exec.v[*exec].t1 > facts->batch.v[i].t1;
	for (; *up < facts->update.n && facts->update.v[*up] <= until; ++*up)
		b.updates |= facts->update.v[*up] > facts->batch.v[i].t1;
	b.trains |= b.updates;
	return b;
}

/* Whether one thread does everything. A loader that another thread reads runs ahead of the training. */
static bool one_thread(const struct tfh_facts *facts)
{
	uint32_t thread = facts->batch.v[0].thread;

	for (size_t i = 0; i < facts->tag.n; i++)
		if (facts->tag.v[i].function && facts->tag.v[i].thread != thread)
			return false;
	TFH_EACH (i, facts->batch.n)
		if (facts->batch.v[i].thread != thread)
			return false;
	return true;
}

/* Batches per optimizer's step, 1 if there is no usual number. */
static uint64_t accumulated(const struct tfh_facts *facts)
{
	uint64_t trained = 0, updated = 0;
	size_t exec = 0, up = 0;

	TFH_EACH (i, facts->batch.n) {
		struct behind b = look_behind(facts, i, &exec, &up);
		trained += b.trains;
		updated += b.updates;
	}
	return updated ? (uint64_t)lround((double)trained / (double)updated) : 1;
}

static int new_series(struct tfh_facts *facts, struct tfh_series *like, bool tests)
{
	struct tfh_series s = *like;

	s.tests = tests;
	s.count = 0;
	if (tests)
		memset(s.tag, 0, sizeof(s.tag));
	return TFH_PUSH_BIG(facts->series, s);
}

int tfh_torch_batches(struct tfh_facts *facts)
{
	struct behind now, before = {false, false};
	bool began = false, marked = false, accumulates;
	size_t exec = 0, up = 0;

	if (!facts->loader || facts->feed->imported || !facts->batch.n ||
	    !(facts->exec.n + facts->update.n) || !one_thread(facts))
		return 0;
	accumulates = accumulated(facts) > 1;
	TFH_EACH (i, facts->series.n)
		facts->series.v[i].count = 0;
	TFH_EACH (i, facts->batch.n) {
		struct tfh_boundary *t = &facts->batch.v[i];
		now = look_behind(facts, i, &exec, &up);
		marked |= t->end;
		bool ends = !now.trains && (t->end || (!marked && before.trains));
		if (!ends && (!i || now.trains != before.trains || facts->batch.v[i - 1].end)) {
			struct tfh_series like = facts->series.v[t->series];
			if (new_series(facts, &like, !now.trains))
				return -ENOMEM;
			began = false;
		}
		t->series = ends ? facts->batch.v[i - 1].series : (uint32_t)facts->series.n - 1;
		t->end = ends;
		t->more = accumulates && began && now.trains && !before.updates;
		facts->series.v[t->series].count += !t->end;
		began |= now.trains;
		before = now;
	}
	return 0;
}
