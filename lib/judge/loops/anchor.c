/*
 * Which call begins or ends a step in a job that tells nothing but its driver calls. Stretches
 * between calls of one kind are compared with each other: where they come again, that kind is an
 * anchor. Stretches count by their launches, so that the small ones of a loop inside a step do not
 * speak for it, and each is compared with its neighbours only, so that a job may go over to another
 * model or another batch size.
 *
 * A batch makes a step, so copies to the device come first; then waits, graphs, kernels. But an
 * anchor that covers clearly less of the launches than a later one loses against it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#include "judge/loops/anchor.h"

struct score {
	double cover;  /* launches that come again, of all */
	double ratio;  /* of those in the region where they do */
	double strict; /* of all, where nothing but the same counts */
	int64_t ns;    /* of the region */
	size_t n;      /* stretches that come again */
};

struct finder {
	const struct tfh_facts *facts;
	struct tfh_anchor at; /* where `v` is cut */
	bool is_cut;
	struct tfh_lap *v;
	size_t n;
	uint64_t launches; /* of all tokens that were cut */
	uint32_t usual;	   /* launches of the stretch in which the middle one of all launches is */
	struct tfh_anchor best;
	double cover;
};

/* ---- stretches ---- */

static uint32_t usual_launches(const struct finder *f)
{
	uint64_t in[4 * 33] = {0}, sum = 0, all = 0;

	/* Quarters of a power of two. */
	for (size_t i = 0; i < f->n; i++) {
		uint32_t w = f->v[i].launches, log = w ? 31 - (uint32_t)__builtin_clz(w) : 0;
		uint32_t at = 4 * log + (log >= 2 ? (w >> (log - 2)) & 3 : (w << (2 - log)) & 3);
		in[at] += w;
		all += w;
	}
	for (uint32_t at = 0; at < 4 * 32; at++) {
		sum += in[at];
		if (sum * 2 >= all)
			return (uint32_t)(((uint64_t)(4 + (at & 3)) << (at >> 2)) >> 2);
	}
	return 0;
}

static void cut(struct finder *f, const struct tfh_anchor *a)
{
	struct tfh_cutter c = {.facts = f->facts, .anchor = a};

	if (f->is_cut && a->kind == f->at.kind && a->what == f->at.what && a->hash == f->at.hash)
		return;
	f->is_cut = true;
	f->at = *a;
	f->n = 0;
	while (f->n < TFH_LOOPS_STRETCHES && tfh_cut_next(&c, &f->v[f->n]))
		f->n++;
	f->launches = c.launches;
	if (f->n < TFH_LOOPS_STRETCHES)
		f->n += tfh_cut_last(&c, &f->v[f->n]);
	f->usual = usual_launches(f);
}

static bool minor(const struct finder *f, const struct tfh_lap *s)
{
	return (uint64_t)s->launches * TFH_LOOPS_MINOR_PART <= f->usual;
}

/* The kind of token i if it is a launch, or NULL. */
static inline const struct tfh_token_kind *launch_at(const struct finder *f, uint32_t i)
{
	const struct tfh_token_kind *k = tfh_kind_of(f->facts, &f->facts->token.v[i]);

	return tfh_is_launch(k) ? k : NULL;
}

/* By the functions that are launched, whatever their grids: batches are of different sizes. */
static bool alike(const struct finder *f, const struct tfh_lap *a, const struct tfh_lap *b)
{
	const struct tfh_token_kind *k;
	uint32_t has[256] = {0}, n = 0, same = 0;

	if (a->rough == b->rough)
		return true;
	for (uint32_t i = a->from; i < a->to; i++)
		if ((k = launch_at(f, i))) {
			has[k->bucket]++;
			n++;
		}
	for (uint32_t i = b->from; i < b->to; i++)
		if ((k = launch_at(f, i))) {
			uint32_t *h = &has[k->bucket];
			n++;
			same += *h > 0;
			*h -= *h > 0;
		}
	return 2.0 * same >= TFH_LOOPS_ALIKE_SHARE * n;
}

/* ---- regularity ---- */

/* Sums over the region in which stretches come again. */
struct launch_region {
	double good, all, since; /* since: from the last good one on */
	int64_t from, to;
	size_t n;
};

static void region_add(struct launch_region *r, const struct tfh_lap *s, bool good)
{
	double w = s->launches;

	if (good) {
		if (!r->n++)
			r->from = s->t0;
		r->all += r->n > 1 ? r->since + w : w;
		r->good += w;
		r->since = 0;
		r->to = s->t1;
	} else {
		r->since += w;
	}
}

static struct score score_of(const struct finder *f, const struct launch_region *r)
{
	double all = f->launches ? (double)f->launches : 1;
	struct score s = {.n = r->n, .ns = r->to - r->from};

	/* A graph counts as several. */
	s.cover = r->good < all ? r->good / all : 1;
	s.ratio = r->all > 0 ? r->good / r->all : 0;
	return s;
}

/* Each stretch like the one before or the one behind it. */
static struct score in_a_row(const struct finder *f)
{
	struct launch_region like = {0}, same = {0};
	const struct tfh_lap *last = NULL;
	bool l = false, s = false;

	for (size_t i = 0; i < f->n; i++) {
		const struct tfh_lap *v = &f->v[i];
		if (!v->launches || minor(f, v))
			continue;
		bool s1 = last && last->rough == v->rough, l1 = s1 || (last && alike(f, last, v));
		if (last) {
			region_add(&like, last, l || l1);
			region_add(&same, last, s || s1);
		}
		last = v;
		l = l1;
		s = s1;
	}
	if (last) {
		region_add(&like, last, l);
		region_add(&same, last, s);
	}
	struct score out = score_of(f, &like);
	out.strict = score_of(f, &same).cover;
	return out;
}

static uint64_t content(const struct tfh_lap *s, bool exact)
{
	return exact ? s->exact : s->rough;
}

/* Each one the same as the one m later. */
static struct score after(const struct finder *f, size_t m, bool exact)
{
	size_t n = f->n < TFH_LOOPS_TURN_STRETCHES ? f->n : TFH_LOOPS_TURN_STRETCHES;
	struct launch_region r = {0};
	uint64_t tail = 0;

	for (size_t i = 0; i + m < n; i++)
		region_add(&r, &f->v[i], content(&f->v[i], exact) == content(&f->v[i + m], exact));
	struct score s = score_of(f, &r);
	for (size_t i = f->n - m; i < f->n; i++)
		tail += f->v[i].launches;
	s.cover *= n == f->n ? 1 : (double)f->n / (double)n;
	s.cover += (double)tail / (double)(f->launches ? f->launches : 1);
	s.cover = s.cover < 1 ? s.cover : 1;
	return s;
}

/* Random kinds of steps: each the same as one of those just before. */
static struct score recent(const struct finder *f)
{
	struct launch_region r = {0};

	for (size_t i = 0; i < f->n; i++) {
		bool good = false;
		for (size_t k = 1; k <= TFH_LOOPS_RECENT && k <= i && !good; k++)
			good = f->v[i].rough == f->v[i - k].rough;
		region_add(&r, &f->v[i], good);
	}
	return score_of(f, &r);
}

/* Where in a turn a stretch comes whose like comes but once in it. Turns begin with the first one
 * of the run, or where they come again later, with the first that does. */
static bool find_key(const struct finder *f, struct tfh_anchor *a)
{
	size_t m = a->turn, from = 0;

	while (from + 2 * m < f->n &&
	       (content(&f->v[from], a->exact) != content(&f->v[from + m], a->exact) ||
		content(&f->v[from + m], a->exact) != content(&f->v[from + 2 * m], a->exact)))
		from++;
	if (from + 2 * m >= f->n)
		return false;
	for (size_t i = from; i < from + m; i++) {
		uint32_t times = 0;
		for (size_t k = from; k < from + m; k++)
			times += content(&f->v[k], a->exact) == content(&f->v[i], a->exact);
		if (times > 1)
			continue;
		a->key = content(&f->v[i], a->exact);
		a->at = (uint32_t)((from < m ? i : i - from) % m);
		return true;
	}
	return false;
}

/* ---- choice ---- */

/* Unless it covers clearly more than what was found earlier, that stays. */
static void offer(struct finder *f, const struct tfh_anchor *a, const struct score *s)
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
	f->best.few = a->turn > 1 ? 0 : f->usual / TFH_LOOPS_MINOR_PART;
	f->cover = s->cover;
}

/* A turn of several stretches; `sure`: only one that explains what a single stretch does not. */
static bool offer_turn(struct finder *f, const struct tfh_anchor *anchor, bool sure)
{
	struct tfh_anchor a = *anchor;

	for (int rough = 0; rough < 2; rough++) {
		double once = after(f, 1, !rough).ratio;
		for (a.turn = 2; a.turn <= TFH_TURN_MOST && a.turn * TFH_LOOPS_ENOUGH_STEPS <= f->n;
		     a.turn++) {
			struct score s = after(f, a.turn, !rough);
			if (s.ratio < (sure ? TFH_TURN_SURE_SHARE : TFH_LOOPS_TURN_SHARE) ||
			    s.n < TFH_LOOPS_FEWEST_TURNS * a.turn ||
			    (sure && 1 - s.ratio > (1 - once) / TFH_TURN_UNEXPLAINED_PART))
				continue;
			a.exact = !rough;
			if (!find_key(f, &a))
				continue;
			offer(f, &a, &s);
			return true;
		}
	}
	return false;
}

/* Whether the stretches are as large as a step at least: several launches, not all of the same. */
static bool substantial(const struct finder *f)
{
	const struct tfh_token_kind *k, *first = NULL;
	const struct tfh_lap *s = NULL;

	for (size_t n = 0, i = f->n / 2; n < f->n && !s; n++, i = (i + 1) % f->n)
		if (f->v[i].launches >= TFH_LOOPS_SUBSTANTIAL_SHARE * f->usual)
			s = &f->v[i];
	if (!s || f->usual < TFH_LOOPS_STEP_LAUNCHES)
		return false;
	for (uint32_t i = s->from; i < s->to; i++) {
		if (!(k = launch_at(f, i)))
			continue;
		if (k->family == TFH_FAM_GRAPH_LAUNCH || (first && k->what != first->what))
			return true;
		first = k;
	}
	return false;
}

static bool good(const struct finder *f)
{
	return f->cover >= TFH_LOOPS_COVER_SHARE;
}

/* Copies to the device in a row are one batch. Small ones between them send numbers, no batch: when
 * the stretches between all copies do not come again, neither one by one nor in turn, those between
 * the larger ones may. */
static void try_uploads(struct finder *f)
{
	struct tfh_anchor a = {.kind = TFH_ANCHOR_UPLOAD, .turn = 1};
	size_t before = 0;

	for (uint64_t least = 0; least <= UINT32_MAX && !good(f);
	     least = least ? least * TFH_LOOPS_UPLOAD_TIMES : TFH_LOOPS_UPLOAD_FIRST) {
		a.what = (uint32_t)least;
		cut(f, &a);
		if (f->n < TFH_LOOPS_FEWEST_STEPS)
			break;
		if (f->n == before)
			continue;
		struct score s = in_a_row(f);
		offer(f, &a, &s);
		if (!before && s.ratio < TFH_LOOPS_AGAIN_SHARE)
			offer_turn(f, &a, false);
		before = f->n;
	}
	a.what = 0;
	if (f->cover > 0)
		return;
	cut(f, &a);
	struct score s = recent(f);
	offer(f, &a, &s);
}

static void try_waits(struct finder *f, uint64_t hash)
{
	struct tfh_anchor a = {.kind = TFH_ANCHOR_WAIT, .turn = 1, .hash = hash};

	cut(f, &a);
	if (f->n < TFH_LOOPS_FEWEST_STEPS || (!substantial(f) && offer_turn(f, &a, true)))
		return;
	struct score s = in_a_row(f);
	if (s.ratio < TFH_LOOPS_AGAIN_SHARE && offer_turn(f, &a, false))
		return;
	if (s.ratio < TFH_LOOPS_AGAIN_SHARE)
		s = recent(f);
	offer(f, &a, &s);
}

static void try_graphs(struct finder *f)
{
	struct tfh_anchor a = {.kind = TFH_ANCHOR_GRAPH, .turn = 1};

	cut(f, &a);
	if (f->n < TFH_LOOPS_ENOUGH_STEPS || offer_turn(f, &a, true))
		return;
	struct score s = in_a_row(f);
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
	uint32_t *kind = calloc(facts->kind.n, sizeof(*kind)); /* in order of their first token */
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

/* The most frequent one that was not taken yet. */
static struct anchor_kind *next_kind(struct anchor_kind *table, bool wait)
{
	struct anchor_kind *best = NULL;

	for (size_t i = 0; i < TFH_LOOPS_ANCHOR_KINDS; i++)
		if (table[i].wait == wait && table[i].count >= TFH_LOOPS_FEWEST_STEPS &&
		    (!best || table[i].count > best->count))
			best = &table[i];
	return best;
}

/* The kernel between whose launches most is the same every time: a step's own, rather than one that
 * each layer launches. Of several like that the one that comes first. */
static void try_kernels(struct finder *f, struct anchor_kind *table)
{
	struct tfh_anchor best = {0};
	struct score top = {0};
	uint32_t first = 0;
	struct anchor_kind *k;

	for (int n = 0; n < TFH_LOOPS_KERNELS_TRIED && (k = next_kind(table, false)); n++) {
		struct tfh_anchor a = {.kind = TFH_ANCHOR_KERNEL, .turn = 1, .what = k->what};
		k->count = 0;
		cut(f, &a);
		struct score s = in_a_row(f);
		if (s.ratio < TFH_LOOPS_AGAIN_SHARE || s.n < TFH_LOOPS_ENOUGH_STEPS ||
		    s.strict < top.strict - TFH_LOOPS_STRICT_SLACK)
			continue;
		if (s.strict <= top.strict + TFH_LOOPS_STRICT_SLACK && best.turn &&
		    f->v[0].from >= first)
			continue;
		first = f->v[0].from;
		top = s;
		best = a;
	}
	if (!best.turn)
		return;
	cut(f, &best);
	offer(f, &best, &top);
}

/* ---- evaluation ---- */

/* Stretches of the same content. */
struct sort {
	uint64_t rough;
	size_t n, runs, first;
	int64_t ns;
};

static uint32_t sorts_of(const struct finder *f, struct sort *v, uint32_t most)
{
	uint64_t before = 0;
	uint32_t n = 0;

	for (size_t i = 0; i + 1 < f->n; i++) {
		const struct tfh_lap *s = &f->v[i];
		uint32_t at = 0;
		if (s->launches <= f->best.few)
			continue;
		while (at < n && v[at].rough != s->rough)
			at++;
		if (at == most)
			continue;
		if (at == n)
			v[n++] = (struct sort){.rough = s->rough, .first = i};
		v[at].n++;
		v[at].runs += s->rough != before;
		v[at].ns += f->v[i + 1].t0 - s->t0;
		before = s->rough;
	}
	return n;
}

/* Launches of b whose function a launches, too. */
static uint32_t shared(const struct finder *f, const struct tfh_lap *a, const struct tfh_lap *b)
{
	const struct tfh_token_kind *k;
	bool has[256] = {false};
	uint32_t n = 0;

	for (uint32_t i = a->from; i < a->to; i++)
		if ((k = launch_at(f, i)))
			has[k->bucket] = true;
	for (uint32_t i = b->from; i < b->to; i++)
		n += (k = launch_at(f, i)) && has[k->bucket];
	return n;
}

/* Whether runs of both follow each other, epoch after epoch. */
static bool in_turn(const struct sort *e, const struct sort *train)
{
	return e->runs > 1 && train->runs > 1;
}

/* The way there without the way back and the update: mostly functions that the steps just before it
 * launch, too, but not a third of theirs. In runs. What does not come in turn with training takes
 * less time than it: what a run spends most of its time on is what it is for. One or two steps that launch more are the first,
 * before what they launch has become a graph. */
static bool evaluates(const struct finder *f, const struct sort *e, const struct sort *train)
{
	const struct tfh_lap *a = &f->v[e->first], *b = &f->v[train->first];

	return train->n >= TFH_LOOPS_FEWEST_STEPS && e->runs * TFH_LOOPS_EVAL_RUN <= e->n &&
	       (e->ns < train->ns || in_turn(e, train)) && a->launches < b->launches &&
	       (double)shared(f, b, a) >= TFH_LOOPS_EVAL_KNOWN_SHARE * a->launches &&
	       (double)shared(f, a, b) <= TFH_LOOPS_EVAL_TRAIN_SHARE * b->launches;
}

/* What comes just before the first of that sort, NULL: nothing. */
static const struct sort *before(const struct finder *f, const struct sort *v, uint32_t n,
				 const struct sort *e)
{
	size_t at = e->first;

	while (at && f->v[at - 1].launches <= f->best.few)
		at--;
	for (uint32_t i = 0; at && i < n; i++)
		if (v[i].rough == f->v[at - 1].rough)
			return &v[i];
	return NULL;
}

/* What comes just behind the first run of them, in runs itself: an agent acts before it learns. A single one that does more
 * ends what those before it gathered. */
static const struct sort *behind(const struct finder *f, const struct sort *v, uint32_t n,
				 const struct sort *e)
{
	size_t at = e->first;

	while (at < f->n && (f->v[at].rough == e->rough || f->v[at].launches <= f->best.few))
		at++;
	for (uint32_t i = 0; i < n && at < f->n; i++)
		if (v[i].rough == f->v[at].rough)
			return v[i].runs * TFH_LOOPS_EVAL_RUN <= v[i].n ? &v[i] : NULL;
	return NULL;
}

static void find_evaluation(struct finder *f)
{
	struct sort v[TFH_LOOPS_SORTS];
	uint32_t n;
	int64_t all = 0, eval = 0;

	cut(f, &f->best);
	n = sorts_of(f, v, TFH_LOOPS_SORTS);
	for (uint32_t i = 0; i < n; i++)
		all += v[i].ns;
	for (uint32_t i = 0; i < n && f->best.n_eval < TFH_LOOPS_EVALS; i++) {
		const struct sort *train = before(f, v, n, &v[i]);
		train = train ? train : behind(f, v, n, &v[i]);
		if (!train || !evaluates(f, &v[i], train))
			continue;
		eval += in_turn(&v[i], train) ? 0 : v[i].ns;
		f->best.eval[f->best.n_eval++] = v[i].rough;
	}
	if (eval * TFH_LOOPS_EVAL_MOST_PART > all)
		f->best.n_eval = 0;
}

bool tfh_find_anchor(const struct tfh_facts *facts, struct tfh_anchor *out, int *rc)
{
	size_t most =
		facts->token.n + 1 < TFH_LOOPS_STRETCHES ? facts->token.n + 1 : TFH_LOOPS_STRETCHES;
	struct finder f = {.facts = facts, .v = malloc(most * sizeof(*f.v))};
	struct anchor_kind *table = calloc(TFH_LOOPS_ANCHOR_KINDS, sizeof(*table)), *k;

	*rc = f.v && table ? 0 : -ENOMEM;
	if (!*rc && facts->token.n && facts->launches) {
		try_uploads(&f);
		if (!good(&f))
			try_waits(&f, 0);
		if (!good(&f))
			*rc = count_kinds(facts, table);
		for (int n = 0;
		     n < TFH_LOOPS_WAITS_TRIED && !good(&f) && (k = next_kind(table, true)); n++) {
			k->count = 0;
			try_waits(&f, k->hash);
		}
		if (!good(&f))
			try_graphs(&f);
		if (!good(&f))
			try_kernels(&f, table);
	}
	if (f.cover > 0 && f.best.turn == 1)
		if (TFH_DETECT_EVALUATION)
			find_evaluation(&f);
	*out = f.best;
	free(f.v);
	free(table);
	return f.cover > 0;
}
