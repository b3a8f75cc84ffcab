/*
 * Which call begins or ends a step in a job that shows nothing but its driver calls. Intervals
 * between calls of one kind are compared with each other: if they repeat, that kind is an anchor.
 * Intervals are weighted by their launches, so that the small intervals of a loop inside a step do
 * not decide. Each is compared only with its neighbours, since a job may change to another model or
 * another batch size.
 *
 * A batch makes a step, so copies to the device are tried first; then waits, graphs, kernels. An
 * anchor that covers clearly fewer launches than a later one is replaced by it.
 */
#include <stdlib.h>

#include "base/hash.h"

#include "judge/loops/finder.h"

/* Replaces the best anchor only if this one covers clearly more launches. */
static void offer(struct tfh_finder *f, const struct tfh_anchor *a, const struct tfh_score *s)
{
	const struct tfh_token *t = f->facts->token.v;
	int64_t all = tfh_token_end(&t[f->facts->token.n - 1]) - t[0].t0;

	size_t fewest = a->kind <= TFH_ANCHOR_WAIT && s->cover >= TFH_LOOPS_COVER_SHARE
				? TFH_LOOPS_FEWEST_STEPS
				: TFH_LOOPS_ENOUGH_STEPS;
	if (s->n < fewest || s->ratio < TFH_LOOPS_AGAIN_SHARE ||
	    (s->cover < TFH_LOOPS_LEAST_SHARE &&
	     (double)s->ns < TFH_LOOPS_LEAST_SHARE * (double)all))
		return;
	if (f->cover > 0 && f->cover >= TFH_LOOPS_COVER_SHARE * s->cover)
		return;
	f->best = *a;
	f->best.few = a->cycle > 1 ? 0 : f->usual / TFH_LOOPS_MINOR_PART;
	f->cover = s->cover;
}

/* Tries several intervals as one cycle; `sure`: accept only a cycle that explains what a single
 * interval does not. */
static bool offer_cycle(struct tfh_finder *f, const struct tfh_anchor *anchor, bool sure)
{
	struct tfh_anchor a = *anchor;

	for (int rough = 0; rough < 2; rough++) {
		double once = tfh_score_after(f, 1, !rough).ratio;
		for (a.cycle = 2;
		     a.cycle <= TFH_CYCLE_MOST && a.cycle * TFH_LOOPS_ENOUGH_STEPS <= f->n;
		     a.cycle++) {
			struct tfh_score s = tfh_score_after(f, a.cycle, !rough);
			if (s.ratio < (sure ? TFH_CYCLE_SURE_SHARE : TFH_LOOPS_CYCLE_SHARE) ||
			    s.n < TFH_LOOPS_FEWEST_CYCLES * a.cycle ||
			    (sure && 1 - s.ratio > (1 - once) / TFH_CYCLE_UNEXPLAINED_PART))
				continue;
			a.exact = !rough;
			if (!tfh_find_key(f, &a))
				continue;
			offer(f, &a, &s);
			return true;
		}
	}
	return false;
}

/* Whether the intervals are large enough for a step: several launches of different functions. */
static bool substantial(const struct tfh_finder *f)
{
	const struct tfh_token_kind *k, *first = NULL;
	const struct tfh_interval *s = NULL;

	for (size_t n = 0, i = f->n / 2; n < f->n && !s; n++, i = (i + 1) % f->n)
		if (f->v[i].launches >= TFH_LOOPS_SUBSTANTIAL_SHARE * f->usual)
			s = &f->v[i];
	if (!s || f->usual < TFH_LOOPS_STEP_LAUNCHES)
		return false;
	for (uint32_t i = s->from; i < s->to; i++) {
		if (!(k = tfh_launch_at(f, i)))
			continue;
		if (k->family == TFH_FAM_GRAPH_LAUNCH || (first && k->what != first->what))
			return true;
		first = k;
	}
	return false;
}

static bool launches(const struct tfh_finder *f, const struct tfh_interval *s, uint32_t what)
{
	const struct tfh_token_kind *k;

	for (uint32_t i = s->from; i < s->to; i++)
		if ((k = tfh_launch_at(f, i)) && k->what == what)
			return true;
	return false;
}

/* Whether `s` launches every function of `all`. */
static bool launches_all(const struct tfh_finder *f, const struct tfh_interval *s,
			 const struct tfh_interval *all)
{
	const struct tfh_token_kind *k;

	for (uint32_t i = all->from; i < all->to; i++)
		if ((k = tfh_launch_at(f, i)) && !launches(f, s, k->what))
			return false;
	return true;
}

/* Whether more than half of the intervals launch the same functions, and the others, of which no
 * two follow each other, launch these, too: each is a step, and the program adds work to every
 * n-th. If several of the others follow each other, they are training steps and the rest their
 * rollouts. The caller excludes large intervals, which may be parts of a step whose last one has
 * the update. */
static bool others_add(const struct tfh_finder *f)
{
	const struct tfh_interval *most = NULL;
	size_t lead = 0, same = 0;

	for (size_t i = 0; i < f->n; i++) { /* the only content that may have a majority */
		most = lead ? most : &f->v[i];
		lead += lead && f->v[i].rough != most->rough ? -(size_t)1 : 1;
	}
	for (size_t i = 0, in_a_row = 0; i < f->n; i++) {
		in_a_row = f->v[i].rough == most->rough ? 0 : in_a_row + 1;
		same += !in_a_row;
		if (in_a_row > 1 || (in_a_row && !launches_all(f, &f->v[i], most)))
			return false;
	}
	return 2 * same > f->n;
}

static bool good(const struct tfh_finder *f)
{
	return f->cover >= TFH_LOOPS_COVER_SHARE;
}

/* Consecutive copies to the device are one batch. Small copies carry numbers, not batches: if the
 * intervals between all copies do not repeat, singly or in cycles, those between the larger copies
 * may. */
static void try_uploads(struct tfh_finder *f)
{
	struct tfh_anchor a = {.kind = TFH_ANCHOR_UPLOAD, .cycle = 1};
	size_t before = 0;

	for (uint64_t least = 0; least <= UINT32_MAX && !good(f);
	     least = least ? least * TFH_LOOPS_UPLOAD_TIMES : TFH_LOOPS_UPLOAD_FIRST) {
		a.what = (uint32_t)least;
		tfh_finder_cut(f, &a);
		if (f->n < TFH_LOOPS_FEWEST_STEPS)
			break;
		if (f->n == before)
			continue;
		struct tfh_score s = tfh_score_in_a_row(f);
		offer(f, &a, &s);
		if (!before && s.ratio < TFH_LOOPS_AGAIN_SHARE)
			offer_cycle(f, &a, false);
		before = f->n;
	}
	a.what = 0;
	if (f->cover > 0)
		return;
	tfh_finder_cut(f, &a);
	struct tfh_score s = tfh_score_recent(f);
	offer(f, &a, &s);
}

static void try_waits(struct tfh_finder *f, uint64_t hash)
{
	struct tfh_anchor a = {.kind = TFH_ANCHOR_WAIT, .cycle = 1, .hash = hash};

	tfh_finder_cut(f, &a);
	if (f->n < TFH_LOOPS_FEWEST_STEPS)
		return;
	bool small = !substantial(f), adds = TFH_DETECT_ADDED && small && others_add(f);
	if (small && !adds && offer_cycle(f, &a, true))
		return;
	struct tfh_score s = tfh_score_in_a_row(f);
	if (s.ratio < TFH_LOOPS_AGAIN_SHARE && offer_cycle(f, &a, false))
		return;
	if (s.ratio < TFH_LOOPS_AGAIN_SHARE)
		s = tfh_score_recent(f);
	a.adds = adds;
	offer(f, &a, &s);
}

/* Makes `a` the anchor if it marks at least `times` as many complete, similar intervals as the
 * present one. */
static void take_finer(struct tfh_finder *f, const struct tfh_anchor *a, size_t times)
{
	tfh_finder_cut(f, &f->best);
	size_t coarse = f->n;
	tfh_finder_cut(f, a);
	if (f->n < times * coarse || !substantial(f))
		return;
	struct tfh_score s = tfh_score_in_a_row(f);
	if (s.strict < TFH_CYCLE_SURE_SHARE)
		return;
	f->best = *a;
	f->best.few = f->usual / TFH_LOOPS_MINOR_PART;
	f->cover = s.cover;
}

/*
 * A batch may hold the work of many steps: a request with one step per token, or an epoch's data
 * copied at once. If that many complete, similar intervals that each end with a wait are between
 * two batches, each of them is a step.
 */
static void try_inside(struct tfh_finder *f)
{
	struct tfh_anchor a = {.kind = TFH_ANCHOR_WAIT, .cycle = 1};

	if (!TFH_DETECT_BATCH_STEPS || !good(f) || f->best.kind != TFH_ANCHOR_UPLOAD ||
	    f->best.cycle > 1)
		return;
	take_finer(f, &a, TFH_LOOPS_BATCH_STEPS);
}

/*
 * If values are compiled into the source of a kernel, each step launches a new kernel. If the
 * program waits only after many such steps, these kernels mark them. They cannot mark layers, since
 * a layer launches the same kernel again in the next step.
 */
static void try_remade(struct tfh_finder *f)
{
	struct tfh_anchor a = {.kind = TFH_ANCHOR_KERNEL, .cycle = 1, .what = f->facts->remade};

	if (!TFH_DETECT_MADE_ANEW || !a.what || !good(f) || f->best.kind != TFH_ANCHOR_WAIT ||
	    f->best.cycle > 1)
		return;
	take_finer(f, &a, TFH_LOOPS_REMADE_STEPS);
}

static void try_graphs(struct tfh_finder *f)
{
	struct tfh_anchor a = {.kind = TFH_ANCHOR_GRAPH, .cycle = 1};

	tfh_finder_cut(f, &a);
	if (f->n < TFH_LOOPS_ENOUGH_STEPS || offer_cycle(f, &a, true))
		return;
	struct tfh_score s = tfh_score_in_a_row(f);
	offer(f, &a, &s);
}

struct anchor_kind {
	uint64_t hash, count;
	uint32_t what;
	bool wait;
};

/* Adds `count` calls of that kind of token. */
static void count_kind(struct anchor_kind *table, const struct tfh_token_kind *t, uint64_t count)
{
	bool kernel = t->family == TFH_FAM_LAUNCH;
	uint64_t hash = kernel ? tfh_hash_u64(t->what + 1ull) : t->hash;

	if (!kernel && (t->family == TFH_FAM_GRAPH_LAUNCH ||
			(t->family == TFH_FAM_COPY && t->dir != TFH_DIR_D2H)))
		return;
	for (uint64_t at = hash, n = 0; n < TFH_LOOPS_KIND_PROBES; at++, n++) {
		struct anchor_kind *k = &table[at % TFH_LOOPS_ANCHOR_KINDS];
		if (k->count && (k->hash != hash || k->wait == kernel))
			continue;
		*k = (struct anchor_kind){hash, k->count + count, t->what, !kernel};
		return;
	}
}

/* 0 or -ENOMEM */
static int count_kinds(const struct tfh_facts *facts, struct anchor_kind *table)
{
	uint64_t *count = calloc(facts->kind.n, sizeof(*count));
	uint32_t *kind = calloc(facts->kind.n, sizeof(*kind)); /* by their first token */
	size_t n = 0;

	for (size_t i = 0; count && kind && i < facts->token.n; i++)
		if (!count[facts->token.v[i].kind]++)
			kind[n++] = (uint32_t)facts->token.v[i].kind;
	for (size_t i = 0; i < n; i++)
		count_kind(table, &facts->kind.v[kind[i]], count[kind[i]]);
	free(count);
	free(kind);
	return count && kind ? 0 : -ENOMEM;
}

/* The most frequent kind that was not taken yet. */
static struct anchor_kind *next_kind(struct anchor_kind *table, bool wait)
{
	struct anchor_kind *best = NULL;

	for (size_t i = 0; i < TFH_LOOPS_ANCHOR_KINDS; i++)
		if (table[i].wait == wait && table[i].count >= TFH_LOOPS_FEWEST_STEPS &&
		    (!best || table[i].count > best->count))
			best = &table[i];
	return best;
}

/* Tries the kernel whose intervals are identical for the most launches: one that belongs to the
 * step, rather than to each layer. Among equals, the first one wins. */
static void try_kernels(struct tfh_finder *f, struct anchor_kind *table)
{
	struct tfh_anchor best = {0};
	struct tfh_score top = {0};
	uint32_t first = 0;
	struct anchor_kind *k;

	for (int n = 0; n < TFH_LOOPS_KERNELS_TRIED && (k = next_kind(table, false)); n++) {
		struct tfh_anchor a = {.kind = TFH_ANCHOR_KERNEL, .cycle = 1, .what = k->what};
		k->count = 0;
		tfh_finder_cut(f, &a);
		struct tfh_score s = tfh_score_in_a_row(f);
		if (s.ratio < TFH_LOOPS_AGAIN_SHARE || s.n < TFH_LOOPS_ENOUGH_STEPS ||
		    s.strict < top.strict - TFH_LOOPS_STRICT_SLACK)
			continue;
		if (s.strict <= top.strict + TFH_LOOPS_STRICT_SLACK && best.cycle &&
		    f->v[0].from >= first)
			continue;
		first = f->v[0].from;
		top = s;
		best = a;
	}
	if (!best.cycle)
		return;
	tfh_finder_cut(f, &best);
	offer(f, &best, &top);
}

bool tfh_find_anchor(const struct tfh_facts *facts, struct tfh_anchor *out, int *rc)
{
	size_t most =
		facts->token.n + 1 < TFH_LOOPS_INTERVALS ? facts->token.n + 1 : TFH_LOOPS_INTERVALS;
	struct tfh_finder f = {.facts = facts, .v = malloc(most * sizeof(*f.v))};
	struct anchor_kind *table = calloc(TFH_LOOPS_ANCHOR_KINDS, sizeof(*table)), *k;

	*rc = f.v && table ? 0 : -ENOMEM;
	if (!*rc && facts->token.n && (facts->launches || facts->eager)) {
		try_uploads(&f);
		try_inside(&f);
		if (!good(&f))
			try_waits(&f, 0);
		if (!good(&f))
			*rc = count_kinds(facts, table);
		for (int n = 0;
		     n < TFH_LOOPS_WAITS_TRIED && !good(&f) && (k = next_kind(table, true)); n++) {
			k->count = 0;
			try_waits(&f, k->hash);
		}
		try_remade(&f);
		if (!good(&f))
			try_graphs(&f);
		if (!good(&f))
			try_kernels(&f, table);
	}
	if (f.cover > 0 && f.best.cycle == 1 && !f.best.adds)
		if (TFH_DETECT_EVALUATION)
			tfh_find_evaluation(&f);
	*out = f.best;
	free(f.v);
	free(table);
	return f.cover > 0;
}
