/*
 * Windows of a period that hold several iterations of the program's loop: the clock has found only
 * every n-th step, the one that waits. If most windows launch one sequence so many times over, each
 * of these is a step. Device times tell the steps of a window apart, so that each of them gets what
 * delayed it: what a program does once before a hundred steps belongs to the first one. Without
 * them, the wait at the end is for all, and they share the window equally.
 */
#include "base/bisect.h"
#include "judge/loops/step_clock.h"

struct divided {
	const struct tfh_facts *facts;
	struct tfh_loops *loops;
	struct tfh_gpu_info gpu;
	uint64_t per;	/* steps of a window */
	uint64_t first; /* the first function that each step launches once, by its hash; 0: none */
	bool apart;	/* some windows' steps are told apart */
	struct tfh_loops out;
};

/* The tokens of a window. */
struct token_range {
	size_t from, to;
};

static struct token_range tokens_in(const struct tfh_facts *facts, const struct tfh_window *w)
{
	const struct tfh_token *t = facts->token.v;
	size_t from = TFH_BISECT(k, 0, facts->token.n, t[k].t0 < w->t0);

	return (struct token_range){from, TFH_BISECT(k, from, facts->token.n, t[k].t0 < w->t1)};
}

static bool launch_at(const struct tfh_facts *facts, size_t i)
{
	return tfh_is_launch(tfh_kind_of(facts, &facts->token.v[i]));
}

/* Whether the launches of these tokens are the same ones `times` times. */
static bool repeats(const struct tfh_facts *facts, struct token_range r, uint64_t times)
{
	size_t launches = 0, k = 0, first = r.from;

	for (size_t i = r.from; i < r.to; i++)
		launches += launch_at(facts, i);
	if (!launches || launches % times)
		return false;
	for (size_t i = r.from; i < r.to; i++) {
		if (!launch_at(facts, i) || k++ < launches / times)
			continue;
		while (!launch_at(facts, first))
			first++;
		if (tfh_kind_of(facts, &facts->token.v[i])->rough !=
		    tfh_kind_of(facts, &facts->token.v[first++])->rough)
			return false;
	}
	return true;
}

/* How often a function is launched there. */
static uint64_t times_of(const struct tfh_facts *facts, struct token_range r, uint64_t rough)
{
	uint64_t n = 0;

	for (size_t i = r.from; i < r.to; i++)
		n += launch_at(facts, i) && tfh_kind_of(facts, &facts->token.v[i])->rough == rough;
	return n;
}

/* The first function that each of the repetitions in these tokens launches once; 0: none. */
static uint64_t first_once(const struct tfh_facts *facts, struct token_range r, uint64_t times)
{
	for (size_t i = r.from; i < r.to; i++) {
		uint64_t rough = tfh_kind_of(facts, &facts->token.v[i])->rough;
		if (launch_at(facts, i) && times_of(facts, r, rough) == times)
			return rough;
	}
	return 0;
}

static bool timed(const struct divided *d, const struct tfh_window *w)
{
	for (uint32_t i = 0; i < d->gpu.n_span; i++)
		if (d->gpu.span[i].t0 <= w->t0 && w->t1 <= d->gpu.span[i].t1)
			return true;
	return false;
}

/* Adds the steps of a window. Each ends with its last launch, so that what the program does before
 * the next one belongs to the next; the last one ends with the wait. */
static int add_steps(struct divided *d, const struct tfh_window *w)
{
	const struct tfh_facts *facts = d->facts;
	struct token_range r = tokens_in(facts, w);
	struct tfh_window step = *w;
	size_t launch = SIZE_MAX;
	uint64_t seen = 0;
	int rc = 0;

	if (w->steps < 2 || !d->first || !timed(d, w) || times_of(facts, r, d->first) != w->steps)
		return TFH_PUSH_BIG(d->out.window, step);
	d->apart = true;
	step.steps = 1;
	step.cut = false;
	for (size_t i = r.from; i < r.to && !rc; tfh_big_pass(++i)) {
		const struct tfh_token_kind *k = tfh_kind_of(facts, &facts->token.v[i]);
		if (!tfh_is_launch(k))
			continue;
		if (k->rough == d->first && seen++) {
			step.t1 = step.last = tfh_token_end(&facts->token.v[launch]);
			rc = TFH_PUSH_BIG(d->out.window, step);
			step.t0 = step.t1;
		}
		launch = i;
	}
	step.t1 = w->t1;
	step.last = w->last;
	step.cut = w->cut;
	return rc ? rc : TFH_PUSH_BIG(d->out.window, step);
}

static int divide(struct divided *d)
{
	struct tfh_loops *loops = d->loops;
	int rc = 0;

	for (size_t i = 0; i < loops->window.n && !rc; tfh_big_pass(++i))
		rc = add_steps(d, &loops->window.v[i]);
	tfh_big_free(loops->window.v);
	loops->window.v = d->out.window.v;
	loops->window.n = d->out.window.n;
	loops->window.cap = d->out.window.cap;
	loops->divided = d->apart ? 0 : (uint32_t)d->per;
	return rc;
}

int tfh_divide_windows(const struct tfh_facts *facts, struct tfh_loops *loops, uint64_t per,
		       uint64_t total)
{
	struct divided d = {.facts = facts, .loops = loops, .per = per};
	size_t n = 0, alike = 0;
	uint64_t rest = total;

	TFH_EACH (i, loops->window.n) {
		const struct tfh_window *w = &loops->window.v[i];
		struct token_range r = tokens_in(facts, w);
		bool same = w->segment == TFH_SEGMENT_TRAIN && repeats(facts, r, per);
		n += w->segment == TFH_SEGMENT_TRAIN;
		alike += same;
		if (same && alike == 1)
			d.first = first_once(facts, r, per);
	}
	if (loops->clock != TFH_STEP_CLOCK_PERIOD || n < TFH_LOOPS_FEWEST_STEPS ||
	    total + per <= n * per || total > (n + 1) * per || facts->late.n ||
	    facts->late_launch || facts->late_lost ||
	    (double)alike < TFH_LOOPS_ALIKE_SHARE * (double)n)
		return 0;
	TFH_EACH (i, loops->window.n) {
		struct tfh_window *w = &loops->window.v[i];
		if (w->segment != TFH_SEGMENT_TRAIN)
			continue;
		w->steps = (uint32_t)(--n ? per : rest);
		rest -= w->steps;
	}
	/* The host may queue all steps of a window at once, and then wait for the last of them. */
	loops->median = tfh_median_step(loops);
	if (facts->feed->gpu)
		facts->feed->gpu(facts->feed->arg, facts->process, &d.gpu);
	return divide(&d);
}
