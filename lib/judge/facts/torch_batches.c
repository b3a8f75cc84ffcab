/*
 * What the batches of PyTorch's data loaders are for. All iterators of a kind have one name, but
 * what follows a batch shows it: a batch followed by a backward pass or an optimizer's step trains,
 * others evaluate, until the next one that trains. If there are several backward passes per
 * optimizer's step, their batches are one step. They may all be taken before the first of the
 * passes, as transformers' Trainer does.
 *
 * The call that ends an iterator is marked in the recording if the recorder could read the
 * interpreter by then. Until the first marked one, a call without training after one with training
 * counts as the loader's end. A marked call may also be followed by training: loaders that fetch a
 * batch ahead (accelerate's) find the end before the last batch is trained with.
 *
 * A resumed job may take the batches that it has trained with before, and pass over them. They are
 * no evaluation.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/facts/survey.h"

/* What followed a batch before the next one. */
struct after_batch {
	uint32_t passes; /* backward */
	bool trains, updates;
};

/* For each batch; NULL: out of memory. */
static struct after_batch *find_after_batches(const struct tfh_facts *facts)
{
	struct after_batch *v = tfh_big_array(facts->batch.n, sizeof(*v));
	size_t exec = 0, up = 0;

	TFH_EACH (i, v ? facts->batch.n : 0) {
		int64_t from = facts->batch.v[i].t1,
			until = i + 1 < facts->batch.n ? facts->batch.v[i + 1].t1 : INT64_MAX;
		v[i] = (struct after_batch){0};
		for (; exec < facts->exec.n && facts->exec.v[exec].t1 <= until; ++exec)
			v[i].passes += facts->exec.v[exec].t1 > from;
		for (; up < facts->update.n && facts->update.v[up].t1 <= until; ++up)
			v[i].updates |= facts->update.v[up].t1 > from;
		v[i].trains = v[i].passes || v[i].updates;
	}
	return v;
}

/* Whether a batch and those directly before it, which nothing trains with,
 * are as many as the passes that follow. */
static bool taken_together(const struct tfh_facts *facts, const struct after_batch *v, size_t i)
{
	size_t n = v[i].passes;

	if (n < 2 || n > i + 1)
		return false;
	for (size_t k = i - n + 1; k < i; k++)
		if (v[k].trains || facts->batch.v[k].end)
			return false;
	return true;
}

/* If most batches that are followed by passes are the last of such a group,
 * all batches of the groups train. */
static void find_groups(const struct tfh_facts *facts, struct after_batch *v)
{
	size_t trained = 0, together = 0;

	TFH_EACH (i, facts->batch.n) {
		trained += v[i].trains;
		together += taken_together(facts, v, i);
	}
	if (!TFH_DETECT_UNITS || TFH_FACTS_GROUP_PART * together <= trained)
		return;
	TFH_EACH (i, facts->batch.n)
		if (taken_together(facts, v, i))
			for (size_t k = i - v[i].passes + 1; k < i; k++)
				v[k].trains = true;
}

/* Whether one thread does everything. A loader that another thread reads runs ahead of the
 * training. */
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
static uint64_t accumulated(const struct tfh_facts *facts, const struct after_batch *v)
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

/* Time from a batch to the call for the next one, where both are of the same iterator. */
struct worked {
	int64_t ns;
	uint64_t n;
};

static void add_worked(const struct tfh_facts *facts, size_t i, struct worked *w)
{
	const struct tfh_boundary *t = &facts->batch.v[i], *next = t + 1;

	if (i + 1 == facts->batch.n || t->end || next->end)
		return;
	w->ns += next->t0 - t->t1;
	w->n++;
}

/* Ops that the device was given from t0 to t1. */
static uint64_t given(const struct tfh_facts *facts, int64_t t0, int64_t t1)
{
	uint64_t n = 0;

	for (size_t i = 0; i < facts->token.n && facts->token.v[i].t0 < t1; i++)
		n += facts->token.v[i].t0 >= t0;
	return n;
}

/* Marks the batches before the first training step if hardly anything was done with them: even an
 * evaluation, which is the forward pass alone, takes a considerable part of a training step, or
 * gives the device some work for each batch. */
static void mark_skipped(struct tfh_facts *facts)
{
	struct worked skipped = {0, 0}, trained = {0, 0};
	size_t before = 0;

	while (before < facts->batch.n && facts->series.v[facts->batch.v[before].series].tests)
		add_worked(facts, before++, &skipped);
	for (size_t i = before; i < facts->batch.n; i++)
		if (!facts->series.v[facts->batch.v[i].series].tests)
			add_worked(facts, i, &trained);
	if (!skipped.n || !trained.n ||
	    given(facts, facts->batch.v[0].t1, facts->batch.v[before].t0) >= before ||
	    (double)skipped.ns / (double)skipped.n >=
		    TFH_BLOCKING_SHARE * (double)trained.ns / (double)trained.n)
		return;
	for (size_t i = 0; i < before; i++)
		facts->series.v[facts->batch.v[i].series].skipped = true;
}

static int sort_batches(struct tfh_facts *facts, const struct after_batch *v)
{
	struct after_batch now, before = {0};
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
	if (TFH_DETECT_SKIPPED)
		mark_skipped(facts);
	return 0;
}

/* The same if no backward pass or optimizer of PyTorch's shows what batches are for. */
static int sort_by_launches(struct tfh_facts *facts)
{
	struct after_batch *v = tfh_big_array(facts->batch.n, sizeof(*v));
	bool *tests = calloc(facts->batch.n, sizeof(*tests));
	int rc = v && tests ? tfh_mark_tested(facts, tests) : -ENOMEM;

	TFH_EACH (i, rc > 0 ? facts->batch.n : 0)
		v[i].trains = v[i].updates = !tests[i] && !facts->batch.v[i].end;
	rc = rc > 0 ? sort_batches(facts, v) : rc;
	tfh_big_free(v);
	free(tests);
	return rc;
}

int tfh_torch_batches(struct tfh_facts *facts)
{
	struct after_batch *v;
	int rc;

	if (!facts->loader || facts->feed->imported || !facts->batch.n || !one_thread(facts))
		return 0;
	if (!(facts->exec.n + facts->update.n))
		return facts->late.n || facts->late_launch || facts->late_lost
			       ? 0
			       : sort_by_launches(facts);
	v = find_after_batches(facts);
	if (!v)
		return -ENOMEM;
	find_groups(facts, v);
	rc = sort_batches(facts, v);
	tfh_big_free(v);
	return rc;
}
