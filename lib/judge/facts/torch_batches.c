/*
 * What the batches of PyTorch's data loaders are for. All iterators of a kind have one name, but
 * what follows a batch shows it: a batch followed by a backward pass or an optimizer's step trains,
 * others evaluate, until the next one that trains. If there are several backward passes per
 * optimizer's step, their batches are one step, also if the loader ends and begins again among
 * them. They may all be taken before the first of the passes, as transformers' Trainer does. If an
 * evaluation follows batches without an update, they count with the step before: the next update
 * belongs to the step after the evaluation.
 *
 * The call that ends an iterator is marked in the recording if the recorder could read the
 * interpreter by then, which samples with lines of Python show, too. Until then, a call without
 * training after one with training counts as the loader's end. A marked call may also be followed
 * by training: loaders that fetch a batch ahead (accelerate's) find the end before the last batch
 * is trained with, and take two batches before their first step.
 *
 * A resumed job may fetch and skip the batches that it trained with before it was stopped. They are
 * not an evaluation.
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
	bool ahead; /* the first of a loader that fetches the next batch before this one is used */
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

/* Launches, copies and waits that begin in [t0, t1). */
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

/* Marks the first batches of loaders that fetch a batch ahead, if most ends show such a loader. */
static void find_ahead(struct tfh_facts *facts, struct after_batch *v)
{
	const struct tfh_boundary *t = facts->batch.v;
	size_t ends = 0, trained = 0;

	TFH_EACH (i, facts->batch.n) {
		ends += t[i].end && i && v[i - 1].trains;
		trained += t[i].end && v[i].trains;
	}
	facts->told_ends = ends > 0;
	for (size_t i = 0; 2 * trained > ends && i + 1 < facts->batch.n; tfh_big_pass(++i)) {
		bool first = !i || t[i - 1].end;
		v[i].ahead = first && !v[i].trains && !t[i].end && v[i + 1].trains && !t[i + 1].end;
		v[i].trains |= v[i].ahead;
	}
}

/* From when on the recorder could read the interpreter of the thread, and so marked ends. */
static int64_t find_marked(const struct tfh_facts *facts)
{
	const struct tfh_stack_samples *l = facts->samples;
	int64_t from = INT64_MAX;

	TFH_EACH (i, facts->batch.n)
		if (facts->batch.v[i].end && facts->batch.v[i].t1 < from)
			from = facts->batch.v[i].t1;
	for (size_t i = 0; l && from < INT64_MAX && i < tfh_stack_samples_count(l); i++) {
		struct tfh_seen_sample k = tfh_stack_samples_at(l, i);
		if (k.place && k.t < from && k.thread == facts->batch.v[0].thread)
			from = k.t;
	}
	return from;
}

/* Whether the step in which an iterator ends takes the rest of its batches, as many as usual, from
 * the next iterator. */
static bool is_shared(const struct tfh_facts *facts, const struct after_batch *v, size_t end,
		      uint64_t usual)
{
	size_t from = end + v[end].trains, i;
	uint64_t n = 0;

	if (end + 1 == facts->batch.n || !v[end + 1].trains || !from || v[from - 1].updates)
		return false;
	while (from > 0 && v[from - 1].trains && !v[from - 1].updates && n <= usual)
		n += !v[--from].ahead;
	for (i = end + 1; n && n <= usual && i < facts->batch.n && v[i].trains; i++) {
		n += !v[i].ahead;
		if (v[i].updates)
			return n == usual;
	}
	return false;
}

/* Whether one endless generator reads one iterator after another: the steps tell nothing of their
 * ends. */
static bool is_endless(const struct tfh_facts *facts, const struct after_batch *v, uint64_t usual)
{
	for (size_t i = 0; usual > 1 && i < facts->batch.n; tfh_big_pass(++i))
		if (facts->batch.v[i].end && is_shared(facts, v, i, usual))
			return true;
	return false;
}

/* The batches of each iterator, put into series. */
struct sorting {
	struct tfh_facts *facts;
	const struct after_batch *v;
	int64_t marked;	  /* find_marked() */
	bool endless;	  /* is_endless() */
	bool accumulates; /* several batches per update */
	bool trains;	  /* the batch before does */
	bool ended;	  /* the iterator that trains has ended */
	bool began;	  /* the series has a step */
	bool open;	  /* a step has begun, and its update follows */
	size_t first;	  /* that step's first batch */
	bool later;	  /* it is not the first step of its series */
};

/* No update follows in this series: the batches of the open step join the step before. */
static void leave_open(struct sorting *s, size_t i)
{
	for (size_t k = s->first; s->open && s->later && k < i; k++)
		s->facts->batch.v[k].more = true;
	s->open = s->began = false;
}

/* Whether batch i, which nothing trains with, is an iterator's end. */
static bool is_end(const struct sorting *s, size_t i)
{
	const struct tfh_boundary *t = &s->facts->batch.v[i];

	return !s->v[i].trains && (t->end || (i && t->t1 < s->marked && s->v[i - 1].trains));
}

static void take_training(struct sorting *s, size_t i)
{
	s->facts->batch.v[i].more = s->open && (s->accumulates || s->v[i - 1].ahead);
	if (!s->facts->batch.v[i].more) {
		s->first = i;
		s->later = s->began;
	}
	s->began = true;
	s->open = (s->accumulates && !s->v[i].updates) || s->v[i].ahead;
}

static int sort_batch(struct sorting *s, size_t i)
{
	struct tfh_facts *facts = s->facts;
	struct tfh_boundary *t = &facts->batch.v[i];
	const struct after_batch *now = &s->v[i];
	bool ends = is_end(s, i), marked = t->end;

	t->end = ends;
	if (ends && i && s->endless && i + 1 < facts->batch.n && s->v[i + 1].trains) {
		t->end = false; /* part of the step before */
		t->more = true;
		t->series = facts->batch.v[i - 1].series;
		return 0;
	}
	if (!ends && (!i || now->trains != s->trains || facts->batch.v[i - 1].end ||
		      (now->ahead && !s->endless))) {
		struct tfh_series like = facts->series.v[t->series];
		leave_open(s, i);
		if (new_series(facts, &like, !now->trains))
			return -ENOMEM;
		facts->series.v[facts->series.n - 1].goes_on =
			facts->told_ends && now->trains && i && !s->ended;
		s->ended &= !now->trains;
	}
	s->ended |= marked && (s->trains || now->trains);
	t->series = ends ? facts->batch.v[i - 1].series : (uint32_t)facts->series.n - 1;
	facts->series.v[t->series].count += !t->end;
	if (now->trains)
		take_training(s, i);
	s->trains = now->trains;
	return 0;
}

static int sort_batches(struct tfh_facts *facts, const struct after_batch *v)
{
	uint64_t usual = accumulated(facts, v);
	struct sorting s = {.facts = facts,
			    .v = v,
			    .marked = find_marked(facts),
			    .endless = is_endless(facts, v, usual),
			    .accumulates = usual > 1};
	int rc = 0;

	TFH_EACH (i, facts->series.n)
		facts->series.v[i].count = 0;
	for (size_t i = 0; i < facts->batch.n && !rc; tfh_big_pass(++i))
		rc = sort_batch(&s, i);
	if (!rc && TFH_DETECT_SKIPPED)
		mark_skipped(facts);
	return rc;
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
	find_ahead(facts, v);
	rc = sort_batches(facts, v);
	tfh_big_free(v);
	return rc;
}
