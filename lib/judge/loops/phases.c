/* What each window is part of (warm-up, training, or the time between loops), and which windows are
 * incomplete. */

#include "base/bisect.h"
#include "judge/loops/step_clock.h"
#include "judge/stats.h"

static void note_segment(struct tfh_loops *loops, enum tfh_segment kind, int64_t ns, uint32_t n)
{
	if (ns <= 0)
		return;
	loops->segment_ns[kind] += ns;
	loops->segment_n[kind] += n;
}

static int64_t step_ns(const struct tfh_window *w)
{
	return (w->t1 - w->t0) / (w->steps ? w->steps : 1);
}

/* Of training windows; 0: there are none, or all are cut off, without `with_cut`. */
static int64_t median_of(const struct tfh_loops *loops, bool with_cut)
{
	double *v = tfh_big_array(loops->window.n, sizeof(*v)), m = 0;
	size_t n = 0;

	TFH_EACH (i, v ? loops->window.n : 0)
		if (loops->window.v[i].segment == TFH_SEGMENT_TRAIN &&
		    (with_cut || !loops->window.v[i].cut))
			v[n++] = (double)step_ns(&loops->window.v[i]);
	if (n)
		m = tfh_select(v, n, n / 2);
	tfh_big_free(v);
	return (int64_t)m;
}

/* A window without a closing batch may extend into work outside of steps: it is shortened to the
 * usual duration, but ends after the call that used its batch. */
static void trim(struct tfh_loops *loops)
{
	TFH_EACH (i, loops->window.n) {
		struct tfh_window *w = &loops->window.v[i];
		int64_t usual = loops->median * w->steps;
		int64_t must = w->group ? w->x1 : w->last;
		if (!w->cut || w->segment != TFH_SEGMENT_TRAIN ||
		    w->t1 - w->t0 <= usual + usual / TFH_LOOPS_USUAL_PART)
			continue;
		int64_t t1 = w->t0 + usual;
		w->t1 = must > t1 && must < w->t1 ? must : t1;
	}
}

/* A job that evaluates after every step has no closing batches. Then the windows count as they
 * are. */
static void take_cut(struct tfh_loops *loops)
{
	size_t n = 0, cut = 0;

	TFH_EACH (i, loops->window.n) {
		n += loops->window.v[i].segment == TFH_SEGMENT_TRAIN;
		cut += loops->window.v[i].segment == TFH_SEGMENT_TRAIN && loops->window.v[i].cut;
	}
	TFH_EACH (i, cut == n && n > TFH_LOOPS_WARMUP_STEPS ? loops->window.n : 0)
		loops->window.v[i].cut = false;
}

/* Adds a window without steps for the time between two windows, so that the time between the job's
 * loops also has an account. */
static int fill_between(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	const struct tfh_window *old = loops->window.v;
	struct tfh_loops filled = {0};
	int rc = 0;

	for (size_t i = 0; i < loops->window.n && !rc; tfh_big_pass(++i)) {
		int64_t from = i ? old[i - 1].t1 : old[i].t0;
		bool apart = old[i].t0 - from > TFH_GAP_NS &&
			     tfh_discarded_from(facts, from, old[i].t0) >= old[i].t0;
		if (apart) {
			note_segment(loops, TFH_SEGMENT_BETWEEN, old[i].t0 - from, 1);
			rc = TFH_PUSH_BIG(filled.window,
					  ((struct tfh_window){.t0 = from,
							       .t1 = old[i].t0,
							       .last = old[i].t0,
							       .segment = TFH_SEGMENT_BETWEEN}));
		}
		rc = rc ? rc : TFH_PUSH_BIG(filled.window, old[i]);
	}
	tfh_big_free(loops->window.v);
	loops->window.v = filled.window.v;
	loops->window.n = filled.window.n;
	loops->window.cap = filled.window.cap;
	return rc;
}

/* Steps are steady from the first one that is within half of the median, but warm-up is at most a
 * tenth of the run. The first step is never steady. Nor is a step without a closing batch, since it
 * lacks the wait for that. */
static void warm_up(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	size_t n = 0, seen = 0;
	bool steady = false;

	TFH_EACH (i, loops->window.n)
		n += loops->window.v[i].segment == TFH_SEGMENT_TRAIN;
	size_t most = n / TFH_WARMUP_PART > 1 ? n / TFH_WARMUP_PART : 1;
	TFH_EACH (i, n >= TFH_LOOPS_WARMUP_STEPS ? loops->window.n : 0) {
		struct tfh_window *w = &loops->window.v[i];
		if (w->segment != TFH_SEGMENT_TRAIN)
			continue;
		steady |= seen &&
			  (seen >= most ||
			   step_ns(w) <= loops->median + loops->median / TFH_LOOPS_USUAL_PART);
		seen++;
		if (!steady || w->cut)
			w->segment = TFH_SEGMENT_WARMUP;
	}
	TFH_EACH (i, loops->window.n) {
		const struct tfh_window *w = &loops->window.v[i];
		if (w->segment != TFH_SEGMENT_EVAL)
			note_segment(loops, w->segment, w->t1 - w->t0 - (i ? 0 : loops->lead_in),
				     w->steps);
	}
	if (loops->window.n)
		note_segment(loops, TFH_SEGMENT_STARTUP,
			     loops->window.v[0].t0 + loops->lead_in - facts->first, 1);
}

/* The first window that ends after t. */
static size_t window_after(const struct tfh_loops *loops, int64_t t)
{
	return TFH_BISECT(i, 0, loops->window.n, loops->window.v[i].t1 <= t);
}

static void mark_holes(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	const struct tfh_feed *f = facts->feed;

	for (uint32_t h = 0; h < f->n_holes; h++) {
		const struct tfh_hole *hole = &f->holes[h];
		if (hole->process != facts->process)
			continue;
		for (size_t i = window_after(loops, hole->t0);
		     i < loops->window.n && hole->t1 >= loops->window.v[i].t0; tfh_big_pass(++i))
			loops->window.v[i].hole = true;
	}
}

int64_t tfh_median_step(const struct tfh_loops *loops)
{
	int64_t m = median_of(loops, false);

	return m ? m : median_of(loops, true);
}

int tfh_finish_windows(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	int rc;

	loops->median = loops->median ? loops->median : tfh_median_step(loops);
	trim(loops);
	take_cut(loops);
	warm_up(facts, loops);
	rc = fill_between(facts, loops);
	mark_holes(facts, loops);
	return rc;
}
