/*
 * What the batches of PyTorch's data loaders are for. All iterators of a kind have one name, but what follows a batch shows
 * it: a batch followed by a backward pass or an optimizer's step trains, others evaluate, until the next one that trains. If
 * there are several backward passes per optimizer's step, their batches are one step. They may all be taken before the first
 * of the passes, as transformers' Trainer does.
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
	uint32_t passes; /* backward */
	bool trains, updates;
};

/* For each batch; NULL: out of memory. */
static struct behind *look_behind(const struct tfh_facts *facts)
{
	struct behind *v = tfh_big_array(facts->batch.n, sizeof(*v));
	size_t exec = 0, up = 0;

	TFH_EACH (i, v ? facts->batch.n : 0) {
		int64_t from = facts->batch.v[i].t1,
			until = i + 1 < facts->batch.n ? facts->batch.v[i + 1].t1 : INT64_MAX;
		v[i] = (struct behind){0};
		for (; exec < facts->exec.n && facts->exec.v[exec].t1 <= until; ++exec)
			v[i].passes += facts->exec.v[exec].t1 > from;
		for (; up < facts->update.n && facts->update.v[up] <= until; ++up)
			v[i].updates |= facts->update.v[up] > from;
		v[i].trains = v[i].passes || v[i].updates;
	}
	return v;
}

/* Whether a batch and those directly before it, which nothing trains with, are as many as the passes that follow. */
static bool taken_together(const struct tfh_facts *facts, const struct behind *v, size_t i)
{
	size_t n = v[i].passes;

	if (n < 2 || n > i + 1)
		return false;
	for (size_t k = i - n + 1; k < i; k++)
		if (v[k].trains || facts->batch.v[k].end)
			return false;
	return true;
}

/* If most batches that are followed by passes are the last of such a group, all batches of the groups train. */
static void find_groups(const struct tfh_facts *facts, struct behind *v)
{
	size_t trained = 0, together = 0;

	TFH_EACH (i, facts->batch.n) {
		trained += v[i].trains;
		together += taken_together(facts, v, i);
	}
	if (!TFH_DETECT_UNITS || 2 * together <= trained)
		return;
	TFH_EACH (i, facts->batch.n)
		if (taken_together(facts, v, i))
			for (size_t k = i - v[i].passes + 1; k < i; k++)
				v[k].trains = true;
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
static uint64_t accumulated(const struct tfh_facts *facts, const struct behind *v)
{
	uint64_t trained = 0, updated = 0;

	TFH_EACH (i, facts->batch.n) {
		trained += v[i].trains;
		updated += v[i].updates;
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

static int sort_batches(struct tfh_facts *facts, const struct behind *v)
{
	struct behind now, before = {0};
	bool began = false, marked = false, accumulates = accumulated(facts, v) > 1;

	TFH_EACH (i, facts->series.n)
		facts->series.v[i].count = 0;
	TFH_EACH (i, facts->batch.n) {
		struct tfh_boundary *t = &facts->batch.v[i];
		now = v[i];
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

int tfh_torch_batches(struct tfh_facts *facts)
{
	struct behind *v;
	int rc;

	if (!facts->loader || facts->feed->imported || !facts->batch.n ||
	    !(facts->exec.n + facts->update.n) || !one_thread(facts))
		return 0;
	v = look_behind(facts);
	if (!v)
		return -ENOMEM;
	find_groups(facts, v);
	rc = sort_batches(facts, v);
	tfh_big_free(v);
	return rc;
}
