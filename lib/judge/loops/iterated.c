/*
 * The number of steps by the program's own loop. Samples show which iteration of a Python loop the
 * driving thread was in (facts/seen_loops.c). If the number of windows begun by each sample agrees
 * with the number of iterations to within one or two, the clock missed a step at one end of the
 * run, or found one outside of the loop. If each window has n iterations, and launches the same
 * sequence n times, the clock found only every n-th step: the one that waits. A loop with several
 * windows in each iteration has epochs, rounds, or steps of several parts; it decides nothing, but
 * its iterations are kept if each has equally many windows.
 */
#include <stdlib.h>

#include "base/bisect.h"
#include "judge/facts/loop_entries.h"
#include "judge/loops/step_clock.h"
#include "judge/stats.h"

/* Samples of one thread, and the begins of the training windows. */
struct iterated {
	const struct tfh_facts *facts;
	struct tfh_loops *loops;
	TFH_VEC(struct tfh_start_sample) sample;
	TFH_VEC(struct tfh_start_loop) loop;
	TFH_VEC(int64_t) begin;
	struct tfh_loop_samples of;
	double median; /* length of a window, ns */
};

/* A loop compared with the windows. */
struct fit {
	uint64_t total; /* iterations */
	uint64_t per;	/* iterations of a window */
	/* Windows begun, in iterations, minus iterations: smallest and largest at a sample. */
	int64_t least, most;
	int64_t first; /* time of its first sample */
	bool sure;     /* `total` counts from the loop's first iteration */
	bool open;     /* it may have had more */
	bool flat;     /* it is in no other loop */
};

/* ---- samples ---- */

static uint32_t frames_at(const void *arg, uint32_t place,
			  struct tfh_model_line frame[TFH_VERDICT_FRAMES])
{
	return tfh_frames_at(arg, place, frame);
}

/* The driving thread with most samples of loops. */
static uint32_t looping_thread(const struct tfh_facts *facts)
{
	uint32_t best = UINT32_MAX;
	size_t most = 0;

	for (uint32_t t = 0; t < facts->feed->n_threads; t++) {
		size_t n = 0;
		for (size_t i = 0; facts->thread[t].drives && i < facts->looped.n; i++)
			n += facts->looped.v[i].thread == t;
		if (n > most)
			best = t;
		most = n > most ? n : most;
	}
	return best;
}

static int take_samples(struct iterated *x)
{
	const struct tfh_facts *facts = x->facts;
	uint32_t thread = looping_thread(facts);
	size_t at = 0;
	int rc = 0;

	for (size_t i = 0; i < facts->looped.n && !rc; at += facts->looped.v[i++].n) {
		const struct tfh_looped_sample *s = &facts->looped.v[i];
		if (s->thread != thread)
			continue;
		for (uint32_t k = 0; k < s->n && !rc; k++) {
			struct tfh_start_loop l = facts->loop.v[at + k];
			l.sample = (uint32_t)x->sample.n;
			rc = TFH_PUSH(x->loop, l);
		}
		rc = rc ? rc
			: TFH_PUSH(x->sample,
				   ((struct tfh_start_sample){.t = s->t, .place = s->place}));
	}
	return rc;
}

static int take_windows(struct iterated *x)
{
	const struct tfh_loops *loops = x->loops;
	double *length = calloc(loops->window.n, sizeof(*length));
	int rc = length ? 0 : -ENOMEM;

	x->begin.n = 0;
	for (size_t i = 0; i < loops->window.n && !rc; i++) {
		const struct tfh_window *w = &loops->window.v[i];
		if (w->segment != TFH_SEGMENT_TRAIN)
			continue;
		length[x->begin.n] = (double)(w->t1 - w->t0);
		rc = TFH_PUSH(x->begin, w->t0);
	}
	if (!rc && x->begin.n)
		x->median = tfh_select(length, x->begin.n, x->begin.n / 2);
	free(length);
	return rc;
}

/* ---- a loop compared with the windows ---- */

/* The entry of a path with most samples, as an index; UINT32_MAX: none, or out of memory. *of_all:
 * what share of the path's samples it has. An iterator that changes while it is read may look like
 * another loop. */
static uint32_t main_entry(const struct iterated *x, uint32_t path, double *of_all)
{
	const struct tfh_loop_samples *of = &x->of;
	uint32_t *n = calloc(of->entry.n + 1, sizeof(*n)), all = 0, best = UINT32_MAX;

	for (size_t i = 0; n && i < of->at.n; i++) {
		uint32_t e = of->at.v[i].entry;
		if (of->entry.v[e].path != path)
			continue;
		all++;
		n[e]++;
		best = best == UINT32_MAX || n[e] > n[best] ? e : best;
	}
	*of_all = best == UINT32_MAX ? 0 : (double)n[best] / all;
	free(n);
	return best;
}

/* Iterations of an entry that ran to its end; 0: not known. */
static uint64_t total_of(const struct tfh_loop_entry *e)
{
	return e->left < 0 ? 0 : e->done + (uint64_t)e->left;
}

/* A loop that is entered once, or once in each iteration of such a loop. */
struct nest {
	uint32_t path, entry, outer; /* entry: with most samples; outer: UINT32_MAX: none */
	uint64_t each, times;	     /* iterations of an entry, entries */
	bool sure;
	bool open; /* `each` is what its last sample shows: its end is not known */
};

/* A counter with an unknown start, or one that also counts earlier work, says nothing. */
static bool counts(const struct tfh_loop_entry *e)
{
	return !e->counter || (e->sure && !e->base);
}

static bool nest_of(const struct iterated *x, uint32_t path, struct nest *out)
{
	const struct tfh_loop_entry *all = x->of.entry.v, *e;
	double share, outer_share;

	*out = (struct nest){
		.path = path, .entry = main_entry(x, path, &share), .outer = UINT32_MAX};
	if (out->entry == UINT32_MAX || !counts(&all[out->entry]))
		return false;
	e = &all[out->entry];
	out->open = e->counter && e->left < 0;
	out->each = out->open ? e->done : total_of(e);
	out->times = 1;
	out->sure = e->sure;
	if (!e->parent)
		return out->each && out->each < UINT32_MAX && share >= TFH_CYCLE_SURE_SHARE;
	out->outer = main_entry(x, all[e->parent - 1].path, &outer_share);
	if (out->outer == UINT32_MAX || outer_share < TFH_CYCLE_SURE_SHARE ||
	    all[out->outer].parent || !counts(&all[out->outer]))
		return false;
	out->times = total_of(&all[out->outer]);
	out->sure = e->sure && all[out->outer].sure;
	return out->each && out->times && out->each < UINT32_MAX / out->times &&
	       (out->times == 1 || !(out->open || e->goes_on));
}

/* Which of all iterations a sample is in, from 1; 0: it is in another loop. */
static uint64_t iteration_at(const struct iterated *x, const struct nest *l,
			     const struct tfh_loop_sample *s)
{
	const struct tfh_loop_entry *e = &x->of.entry.v[s->entry];
	bool belongs = l->outer == UINT32_MAX || l->open
			       ? s->entry == l->entry
			       : e->parent == l->outer + 1 && total_of(e) == l->each &&
					 e->parent_done - 1 < l->times;

	if (e->path != l->path || !belongs || s->done > l->each)
		return 0;
	return s->done + (l->outer == UINT32_MAX ? 0 : (e->parent_done - 1) * l->each);
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Finds the range of at most that width with the most differences, and returns their number. */
static size_t agreeing(int64_t *off, size_t n, int64_t width, struct fit *f)
{
	size_t from = 0, best = 0;

	qsort(off, n, sizeof(*off), by_value);
	for (size_t i = 0; i < n; i++) {
		while (off[i] - off[from] > width)
			from++;
		if (i + 1 - from <= best)
			continue;
		best = i + 1 - from;
		f->least = off[from];
		f->most = off[i];
	}
	return best;
}

/* Windows begun at a sample. */
static int64_t begun_at(const struct iterated *x, const struct tfh_loop_sample *s)
{
	int64_t t = x->sample.v[s->sample].t;

	return (int64_t)TFH_BISECT(k, 0, x->begin.n, x->begin.v[k] <= t);
}

/* Compares the loop's iterations with the windows. Returns 1 if they go together, 0 if not, or
 * -ENOMEM. */
static int compare(const struct iterated *x, uint32_t path, struct fit *f)
{
	const uint64_t windows = x->begin.n;
	uint64_t lo = UINT64_MAX, hi = 0;
	size_t n = 0, all = 0, agree;
	struct nest l;
	int64_t *off, width;

	if (!nest_of(x, path, &l))
		return 0;
	*f = (struct fit){.total = l.each * l.times,
			  .per = 1,
			  .sure = l.sure,
			  .open = l.open,
			  .flat = l.outer == UINT32_MAX};
	f->first = x->sample.v[x->of.entry.v[l.outer == UINT32_MAX ? l.entry : l.outer].first].t;
	/* Iterations that were seen can only show that the clock has fewer. */
	if (f->open && (f->total <= windows || f->total > windows + TFH_LOOPS_MISCOUNTED))
		return 0;
	if (f->total > windows + TFH_LOOPS_MISCOUNTED)
		f->per = (f->total + windows / 2) / windows;
	width = (int64_t)f->per + TFH_LOOPS_MISCOUNTED;
	off = calloc(x->of.at.n, sizeof(*off));
	for (size_t i = 0; off && i < x->of.at.n; i++) {
		const struct tfh_loop_sample *s = &x->of.at.v[i];
		uint64_t at = iteration_at(x, &l, s);
		all += x->of.entry.v[s->entry].path == path;
		if (!at)
			continue;
		off[n++] = begun_at(x, s) * (int64_t)f->per - (int64_t)at;
		lo = at < lo ? at : lo;
		hi = at > hi ? at : hi;
	}
	agree = off ? agreeing(off, n, width, f) : 0;
	free(off);
	return !off ? -ENOMEM
		    : agree >= TFH_LOOPS_LOOPED && hi - lo >= TFH_LOOPS_LOOPED * (uint64_t)width &&
			       (double)agree >= TFH_CYCLE_SURE_SHARE * (double)all &&
			       (!f->open || f->most + (int64_t)(f->total - windows) <= 0);
}

/* ---- one step more or less ---- */

static size_t train_window(const struct tfh_loops *loops, size_t number)
{
	size_t i = 0;

	for (size_t n = 0; i < loops->window.n; i++)
		if (loops->window.v[i].segment == TFH_SEGMENT_TRAIN && n++ == number)
			break;
	return i;
}

static void drop(struct iterated *x, size_t number)
{
	struct tfh_loops *loops = x->loops;

	for (size_t i = train_window(loops, number) + 1; i < loops->window.n; i++)
		loops->window.v[i - 1] = loops->window.v[i];
	loops->window.n--;
}

/* Adds the steps before the first window: from the first time that the loop was seen on. */
static int add_before(struct iterated *x, const struct fit *f, uint32_t steps)
{
	struct tfh_loops *loops = x->loops;
	struct tfh_window first = loops->window.v[0];
	int rc = TFH_PUSH_BIG(loops->window, first);

	for (size_t i = loops->window.n; !rc && --i > 0;)
		loops->window.v[i] = loops->window.v[i - 1];
	if (!rc)
		loops->window.v[0] = (struct tfh_window){.t0 = f->first,
							 .t1 = first.t0,
							 .steps = steps,
							 .segment = TFH_SEGMENT_TRAIN,
							 .last = first.t0};
	return rc;
}

/* Adds steps that the clock has lost: before the first window if there was time for one, else to
 * the last window if that is so long, else to the first one. A run that was ended before its loop
 * was has lost none. */
static int add(struct iterated *x, const struct fit *f, uint32_t steps)
{
	const struct tfh_facts *facts = x->facts;
	struct tfh_loops *loops = x->loops;
	struct tfh_window *last = &loops->window.v[train_window(loops, x->begin.n - 1)];
	bool in_last = (double)(last->t1 - last->t0) * TFH_LOOPS_USUAL_PART >
		       x->median * (TFH_LOOPS_USUAL_PART + 1);

	if (!f->sure || loops->clock == TFH_STEP_CLOCK_EXEC ||
	    !facts->feed->processes[facts->process].clean_end)
		return 0;
	if (loops->window.v[0].segment == TFH_SEGMENT_TRAIN &&
	    (double)(x->begin.v[0] - f->first) >= x->median)
		return add_before(x, f, steps);
	(in_last ? last : &loops->window.v[train_window(loops, 0)])->steps += steps;
	return 0;
}

/* Makes the windows as many as the iterations. Surplus windows are taken to lie before the loop,
 * unless no window is ahead of its iteration: then they lie after it. */
static int correct(struct iterated *x, const struct fit *f)
{
	bool late = f->most <= 0 && f->least < 0;
	size_t n = x->begin.n;

	if (f->total > n)
		return add(x, f, (uint32_t)(f->total - n));
	for (; n > f->total && x->loops->clock != TFH_STEP_CLOCK_ITERATOR; n--)
		drop(x, late ? n - 1 : 0);
	return 0;
}

/* ---- several windows in each iteration ---- */

/* The windows begun when the entry was first seen in its last iteration. */
static uint64_t windows_before_last(const struct iterated *x, uint32_t entry)
{
	for (size_t i = 0; i < x->of.at.n; i++) {
		const struct tfh_loop_sample *s = &x->of.at.v[i];
		if (s->entry == entry && s->done == x->of.entry.v[entry].done)
			return (uint64_t)begun_at(x, s);
	}
	return 0;
}

/* The number of windows per iteration of this loop; 0: it differs, or is 1. The last iteration of a
 * loop whose end is not known may have fewer, so it is left out. */
static uint64_t windows_of_each(const struct iterated *x, uint32_t entry)
{
	const struct tfh_loop_entry *e = &x->of.entry.v[entry];
	uint64_t windows = e->left < 0 ? windows_before_last(x, entry) : x->begin.n, each, off;
	uint64_t n = e->left < 0 ? e->done - 1 : total_of(e);

	if (!n || n > windows || !counts(e))
		return 0;
	each = (windows + n / 2) / n;
	off = each * n > windows ? each * n - windows : windows - each * n;
	return each > 1 && off <= TFH_LOOPS_MISCOUNTED ? each : 0;
}

/* Keeps the iterations of an outermost loop if each of them has equally many windows. */
static int find_rounds(struct iterated *x, uint32_t path)
{
	double share;
	uint32_t entry = main_entry(x, path, &share);
	uint64_t lo = UINT64_MAX, hi = 0, windows = x->begin.n, each;
	struct fit f;
	size_t n = 0, agree;

	if (entry == UINT32_MAX || x->of.path.v[path].parent || share < TFH_CYCLE_SURE_SHARE ||
	    !(each = windows_of_each(x, entry)))
		return 0;
	int64_t *off = calloc(x->of.at.n, sizeof(*off));
	for (size_t i = 0; off && i < x->of.at.n; i++) {
		const struct tfh_loop_sample *s = &x->of.at.v[i];
		if (s->entry != entry || s->done > windows)
			continue;
		off[n++] = begun_at(x, s) - (int64_t)(s->done * each);
		lo = s->done < lo ? s->done : lo;
		hi = s->done > hi ? s->done : hi;
	}
	agree = off ? agreeing(off, n, (int64_t)each + TFH_LOOPS_MISCOUNTED, &f) : 0;
	if (agree >= TFH_LOOPS_LOOPED && hi - lo >= TFH_LOOPS_LOOPED &&
	    (double)agree >= TFH_CYCLE_SURE_SHARE * (double)n) {
		x->loops->rounds = (windows + each / 2) / each;
		x->loops->per_round = each;
	}
	free(off);
	return off ? 0 : -ENOMEM;
}

/* ---- choosing ---- */

static bool may_look(const struct tfh_facts *facts, const struct tfh_loops *loops)
{
	return TFH_DETECT_ITERATIONS && facts->looped.n && loops->window.n &&
	       loops->window.n < UINT32_MAX && !loops->grouped && !facts->feed->imported &&
	       !facts->feed->n_discarded;
}

static bool may_count(const struct tfh_loops *loops)
{
	return loops->clock == TFH_STEP_CLOCK_PERIOD || loops->clock == TFH_STEP_CLOCK_EXEC ||
	       loops->clock == TFH_STEP_CLOCK_ITERATOR;
}

/* Takes the first loop that goes together with the windows. */
static int choose(struct iterated *x)
{
	struct fit f = {.per = 1};
	int fits = 0;

	for (uint32_t i = 0; i < x->of.path.n && !fits; i++)
		fits = compare(x, i, &f);
	if (fits < 1)
		return fits;
	if (f.per > 1)
		return f.sure ? tfh_divide_windows(x->facts, x->loops, f.per, f.total, f.flat) : 0;
	if (f.total + TFH_LOOPS_MISCOUNTED >= x->begin.n && f.total != x->begin.n)
		return correct(x, &f);
	return 0;
}

int tfh_take_iterations(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	struct iterated x = {.facts = facts, .loops = loops};
	struct tfh_loop_source from = {.arg = facts, .frames = frames_at};
	int rc;

	if (!may_look(facts, loops))
		return 0;
	rc = take_samples(&x);
	rc = rc ? rc : take_windows(&x);
	from.sample = x.sample.v;
	from.loop = x.loop.v;
	from.n_loop = (uint32_t)x.loop.n;
	rc = rc ? rc : tfh_loop_entries(&from, &x.of);
	if (!rc && x.begin.n && may_count(loops))
		rc = choose(&x);
	rc = rc ? rc : take_windows(&x);
	/* A program without loops may call a library's learn(). */
	if (!rc && !x.of.path.n) {
		from.libraries = true;
		tfh_loop_samples_free(&x.of);
		rc = tfh_loop_entries(&from, &x.of);
	}
	for (uint32_t i = 0; !rc && i < x.of.path.n && !loops->rounds; i++)
		rc = find_rounds(&x, i);
	tfh_loop_samples_free(&x.of);
	free(x.sample.v);
	free(x.loop.v);
	free(x.begin.v);
	return rc;
}
