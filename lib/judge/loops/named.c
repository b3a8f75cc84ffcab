/*
 * Steps of another profiler's trace by the names of its ranges. A network's layers are alike, so
 * their launches repeat as steps do. But a step is not inside one call of a module, one op, or one
 * range that the program named. If most of the apparent periods are, the enclosing calls are the
 * steps if there are several; if there is one, nothing repeats. A period that covers only the
 * smaller part of the time is not a step either. An optimizer's step, which PyTorch itself names,
 * ends a training step if the program marked none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/text.h"
#include "judge/loops/step_clock.h"
#include "judge/loops/turns.h"
#include "judge/stats.h"

static const char update[] = "Optimizer.step#";

struct named_range {
	int64_t t0, t1;
	uint32_t name;
	bool holds; /* contains two marks or more */
};

struct found {
	TFH_VEC(struct named_range) range;
	TFH_VEC(uint8_t) kind; /* by name: enum name_kind */
	int64_t first_launch;
	bool updates;	/* search only for steps of optimizers */
	bool notes;	/* search only for ranges that the program named */
	bool exchanges; /* there are exchanges with other ranks */
};

enum name_kind { K_NEW, K_OTHER, K_MODULE, K_UPDATE };

static const char *text_of(const struct tfh_facts *facts, uint32_t name)
{
	const char *s = facts->feed->name(facts->feed->arg, facts->process, TFT_NAME_STRING, name,
					  NULL, NULL);

	return s ? s : "";
}

/* The kind of a range by its name, looked up once per name; K_NEW: out of memory. */
static enum name_kind kind_of(const struct tfh_facts *facts, struct found *f, uint32_t name)
{
	while (f->kind.n <= name)
		if (TFH_PUSH(f->kind, K_NEW))
			return K_NEW;
	if (f->kind.v[name] == K_NEW) {
		const char *s = text_of(facts, name);
		f->kind.v[name] = tfh_starts_with(s, "nn.Module: ") ? K_MODULE
				  : tfh_starts_with(s, update)	    ? K_UPDATE
								    : K_OTHER;
	}
	return f->kind.v[name];
}

/* The part of a name that is the same in all calls: "execute_context_1(8)" and
 * "execute_context_2(7)" share it. */
static size_t stem(const char *s)
{
	return strcspn(s, "0123456789[(#");
}

static bool alike(const struct tfh_facts *facts, const struct named_range *a,
		  const struct named_range *b)
{
	const char *x = text_of(facts, a->name), *y = text_of(facts, b->name);
	size_t n = stem(x);

	return a->name == b->name || (n == stem(y) && !memcmp(x, y, n));
}

/* The first mark that begins at t or later. */
static size_t mark_at(const struct tfh_loops *loops, int64_t t)
{
	return TFH_BISECT(i, 0, loops->mark.n, loops->mark.v[i].t0 < t);
}

static int add(const struct tfh_facts *facts, struct tfh_loops *loops, struct found *f,
	       const struct tfh_event *ev)
{
	struct named_range r = {ev->t0, ev->t1, (uint32_t)ev->w[0], false};

	if (ev->kind == TFT_CALL && ev->t0 < f->first_launch && tfh_family_launches(ev->fn->family))
		f->first_launch = ev->t0;
	f->exchanges |= ev->kind == TFT_RANGE && ev->w[1] == TFT_RANGE_EXCHANGE;

	if (ev->kind != TFT_RANGE || !facts->thread[ev->thread].drives ||
	    f->range.n >= TFH_LOOPS_NAMED_RANGES || ev->w[0] > TFH_LOOPS_RANGE_NAMES)
		return 0;
	enum name_kind kind = kind_of(facts, f, r.name);
	if (kind == K_NEW)
		return -ENOMEM;
	if (f->updates || f->notes) {
		bool wanted = f->updates ? kind == K_UPDATE : ev->w[1] == TFT_RANGE_NOTE;
		return wanted ? TFH_PUSH(f->range, r) : 0;
	}
	if (ev->w[1] == TFT_RANGE_PYTHON && kind != K_MODULE)
		return 0;
	r.holds = mark_at(loops, r.t1) >= mark_at(loops, r.t0) + 2;
	return r.holds || ev->w[1] != TFT_RANGE_OP ? TFH_PUSH(f->range, r) : 0;
}

static int by_begin(const void *a, const void *b, void *arg)
{
	const struct named_range *x = a, *y = b;

	(void)arg;
	if (x->t0 != y->t0)
		return x->t0 < y->t0 ? -1 : 1;
	return x->t1 != y->t1 ? (x->t1 > y->t1 ? -1 : 1) : 0;
}

static int read_ranges(const struct tfh_facts *facts, struct tfh_loops *loops, struct found *f,
		       struct tfh_err *err)
{
	const struct tfh_feed *feed = facts->feed;
	struct tfh_event ev;
	int rc = feed->rewind(feed->arg, facts->process, err);

	while (!rc && feed->next(feed->arg, &ev))
		rc = ev.thread < feed->n_threads ? add(facts, loops, f, &ev) : 0;
	if (!rc)
		rc = feed->error(feed->arg, err);
	if (!rc && f->range.n)
		tfh_sort(f->range.v, f->range.n, sizeof(*f->range.v), by_begin, NULL);
	return rc;
}

static void free_found(struct found *f)
{
	free(f->range.v);
	free(f->kind.v);
}

static const char *short_name(const struct tfh_facts *facts, uint32_t name)
{
	const char *s = text_of(facts, name);
	size_t n = stem(s);

	while (n && strchr(" _-.:", s[n - 1]))
		n--;
	return n ? tfh_arena_text(facts->arena, "%.*s", n < 60 ? (int)n : 60, s) : s;
}

/*
 * Whether an update belongs to the step that the one before it ended: the parts of a model may have
 * an optimizer each (sparse tables and dense layers), which follow one another after the same
 * backward pass. No pass ends between them, and they are near each other, compared with the step so
 * far; updates without any backward pass are farther apart. *at: the first pass that may be between
 * them.
 */
static bool ends_same_step(const struct tfh_facts *facts, const struct tfh_boundary *step,
			   const struct named_range *r, size_t *at)
{
	struct tfh_boundary between = {.t0 = step->t1, .t1 = r->t1};

	return !facts->feed->imported && facts->exec.n && !tfh_passes_in(facts, &between, at).n &&
	       TFH_LOOPS_SAME_UPDATE_PART * (r->t0 - step->t1) < step->t1 - step->t0;
}

static int mark_updates(const struct tfh_facts *facts, struct tfh_loops *loops,
			const struct found *f)
{
	size_t at = 0;
	int rc = 0;

	for (size_t i = 0, n = f->range.n; i < n && !rc && n >= TFH_LOOPS_FEWEST_STEPS; i++) {
		const struct named_range *r = &f->range.v[i];
		struct tfh_boundary *step =
			loops->mark.n ? &loops->mark.v[loops->mark.n - 1] : NULL;
		int64_t t0 = i ? f->range.v[i - 1].t1 : f->first_launch;
		if (t0 >= r->t1)
			continue;
		if (TFH_DETECT_UNITS && step && ends_same_step(facts, step, r, &at))
			step->t1 = r->t1;
		else
			rc = TFH_PUSH_BIG(loops->mark,
					  ((struct tfh_boundary){.t0 = t0, .t1 = r->t1}));
	}
	return rc;
}

int tfh_find_updates(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err)
{
	bool device = facts->launches > 0, imported = facts->feed->imported;
	struct found f = {.first_launch = device ? INT64_MAX : facts->first, .updates = true};
	int rc = read_ranges(facts, loops, &f, err);

	rc = rc ? rc : mark_updates(facts, loops, &f);
	if (!rc && !imported)
		rc = tfh_join_turns(facts, loops,
				    f.exchanges ? TFH_TURNS_OF_RANKS : TFH_TURNS_OF_SIZES);
	if (loops->mark.n)
		loops->clock_name = "Optimizer.step";
	free_found(&f);
	return rc;
}

/* Leaves only ranges that are in no other one. Returns the name that takes the larger part of the
 * trace in several of them; 0: none, or out of memory (*rc). */
static uint32_t longest_name(const struct tfh_facts *facts, struct found *f, int *rc)
{
	struct {
		int64_t ns;
		size_t n;
	} *of = calloc(f->kind.n + 1, sizeof(*of));
	int64_t end = INT64_MIN;
	uint32_t best = 0, kept = 0;

	*rc = *rc ? *rc : of ? 0 : -ENOMEM;
	for (size_t i = 0; i < f->range.n && !*rc; i++) {
		const struct named_range r = f->range.v[i];
		if (r.t0 < end)
			continue;
		end = r.t1;
		f->range.v[kept++] = r;
		of[r.name].n++;
		of[r.name].ns += r.t1 - r.t0;
		best = of[r.name].ns > of[best].ns ? r.name : best;
	}
	f->range.n = kept;
	if (*rc || of[best].n < TFH_LOOPS_FEWEST_STEPS ||
	    TFH_LOOPS_COVERED_PART * of[best].ns < facts->last - facts->first)
		best = 0;
	free(of);
	return best;
}

int tfh_find_annotated(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err)
{
	struct found f = {.notes = true};
	int rc = read_ranges(facts, loops, &f, err);
	uint32_t name = longest_name(facts, &f, &rc);

	for (size_t i = 0; i < f.range.n && name && !rc; i++) {
		const struct named_range *r = &f.range.v[i];
		if (r->name == name)
			rc = TFH_PUSH_BIG(loops->mark,
					  ((struct tfh_boundary){.t0 = r->t0, .t1 = r->t1}));
	}
	if (loops->mark.n)
		loops->clock_name = short_name(facts, name);
	free_found(&f);
	return rc;
}

/* Of the ranges that contain periods and are in no other range, chooses the name with the most
 * time. Returns the index of one such range, SIZE_MAX if there is none. */
static size_t outermost(const struct tfh_facts *facts, const struct found *f)
{
	int64_t end = INT64_MIN, most = 0;
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < f->range.n; i++) {
		const struct named_range *r = &f->range.v[i];
		int64_t ns = 0;
		if (!r->holds || r->t0 < end)
			continue;
		end = r->t1;
		if (best != SIZE_MAX && alike(facts, r, &f->range.v[best]))
			continue;
		for (size_t k = i; k < f->range.n; k++)
			if (f->range.v[k].holds && alike(facts, r, &f->range.v[k]))
				ns += f->range.v[k].t1 - f->range.v[k].t0;
		if (ns > most) {
			most = ns;
			best = i;
		}
	}
	return best;
}

/* Whether most calls launch something, as steps do. A name whose numbers mean something else
 * ("stage 1", "stage 3") stands for several kinds of calls. */
static bool most_launch(const struct tfh_facts *facts, const struct tfh_loops *loops)
{
	size_t n = 0;

	TFH_EACH (i, loops->mark.n)
		n += tfh_launches_in(facts, loops->mark.v[i].t0, loops->mark.v[i].t1) > 0;
	return 2 * n > loops->mark.n;
}

/* The number of pairs of marks inside one range. */
static size_t pairs_inside(const struct tfh_loops *loops, const struct found *f)
{
	size_t n = 0, next = 0;

	for (size_t i = 0; i < f->range.n; i++) {
		const struct named_range *r = &f->range.v[i];
		if (!r->holds)
			continue;
		size_t a = mark_at(loops, r->t0), b = mark_at(loops, r->t1) - 1;
		a = a > next ? a : next;
		if (b > a) {
			n += b - a;
			next = b;
		}
	}
	return n;
}

/* Makes marks of the ranges like the best one, outermost only; no marks if most of these ranges
 * launch nothing. */
static int mark_alike(const struct tfh_facts *facts, struct tfh_loops *loops, const struct found *f,
		      size_t best)
{
	int64_t end = INT64_MIN;
	int rc = 0;

	loops->mark.n = 0;
	if (best == SIZE_MAX)
		return 0;
	for (size_t i = 0; i < f->range.n && !rc; i++) {
		const struct named_range *r = &f->range.v[i];
		if (r->t0 < end || !alike(facts, r, &f->range.v[best]))
			continue;
		end = r->t1;
		rc = TFH_PUSH_BIG(loops->mark, ((struct tfh_boundary){.t0 = r->t0, .t1 = r->t1}));
	}
	if (!rc && (loops->mark.n < 2 || !most_launch(facts, loops)))
		loops->mark.n = 0;
	else
		loops->clock_name = short_name(facts, f->range.v[best].name);
	return rc;
}

/* Whether one interval, not the first, takes most of the time since the first launch, and launches
 * at least twice as much as the others on average: it holds what they are a detail of (an image's
 * encoder before the decoder's prompts). */
static bool one_holds_most(const struct tfh_facts *facts, const struct tfh_loops *loops,
			   const struct found *f)
{
	const struct tfh_boundary *m = loops->mark.v;
	const size_t last = loops->mark.n - 1;
	uint64_t all = tfh_launches_in(facts, m[0].t0, m[last].t0), in = 0;

	for (size_t i = 1; i < last && !in; i++)
		if (TFH_LOOPS_COVERED_PART * (m[i + 1].t0 - m[i].t0) >
		    facts->last_work - f->first_launch)
			in = tfh_launches_in(facts, m[i].t0, m[i + 1].t0);
	return TFH_DETECT_ONE_PART && in && in * (last - 1) >= 2 * (all - in);
}

/* How long the program waited for the steps' work, if that is the first thing it waited for after
 * them: it may have launched all of it long before. */
static int64_t waited_after(const struct tfh_facts *facts, int64_t t)
{
	size_t i = TFH_BISECT(k, 0, facts->token.n, facts->token.v[k].t0 < t);

	while (i < facts->token.n && tfh_kind_of(facts, &facts->token.v[i])->family != TFH_FAM_SYNC)
		i++;
	return TFH_DETECT_WAIT_AFTER && i < facts->token.n
		       ? tfh_token_end(&facts->token.v[i]) - facts->token.v[i].t0
		       : 0;
}

/* Whether the period covers at least half of the time since the first launch, and also without its
 * first interval, which may load what the work needs. Otherwise it is only a detail of the work. */
static bool covers(const struct tfh_facts *facts, const struct tfh_loops *loops,
		   const struct found *f)
{
	const struct tfh_boundary *m = loops->mark.v, *last = &m[loops->mark.n - 1];
	int64_t until = last->t1 + waited_after(facts, last->t1), end = facts->last_work;

	return TFH_LOOPS_COVERED_PART * (until - m[0].t0) >= end - f->first_launch &&
	       (loops->mark.n < 2 || TFH_LOOPS_COVERED_PART * (until - m[1].t0) >= end - m[1].t0) &&
	       !one_holds_most(facts, loops, f);
}

int tfh_check_period(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err)
{
	struct found f = {.first_launch = INT64_MAX};
	size_t pairs = loops->mark.n - 1;
	int rc;

	tfh_sort_marks(loops);
	rc = read_ranges(facts, loops, &f, err);
	if (!rc && (double)pairs_inside(loops, &f) > TFH_LOOPS_INSIDE_SHARE * (double)pairs) {
		rc = mark_alike(facts, loops, &f, outermost(facts, &f));
		loops->clock = loops->mark.n ? TFH_STEP_CLOCK_MARK : TFH_STEP_CLOCK_NONE;
	} else if (!rc && !covers(facts, loops, &f)) {
		loops->mark.n = 0;
		loops->clock = TFH_STEP_CLOCK_NONE;
	}
	free_found(&f);
	return rc;
}
