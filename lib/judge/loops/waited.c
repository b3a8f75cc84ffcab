/*
 * Windows that are parts of a step, by the waits. Parts that run side by side on streams of their
 * own are each waited for at the step's end: if each k-th window, and no other, waits, and does so
 * k times, k windows are one step. Several steps followed by one wait are not joined. But if the
 * windows before it are too small for steps, and the one that waits also launches what they do not,
 * with much of the device's time, they are a loop inside the step: over the tables of a model, each
 * with a copy and a kernel, before its layers.
 */
#include <stdlib.h>

#include "base/bisect.h"
#include "judge/loops/loop_events.h"
#include "judge/loops/unit.h"

struct waited {
	uint32_t waits;	      /* at the end of the first step */
	size_t steps, whole;  /* whole: of as many parts */
	TFH_VEC(int64_t) end; /* of the steps */
	/* Windows of the second step, and how many steps have as many. */
	size_t parts, alike;
	TFH_VEC(int64_t) last;	/* begins of the windows that wait */
	uint64_t inner, ending; /* launched in the other windows and in these, as tfh_node.ops */
	size_t most;		/* launches of one of the others */
};

/* What a window launches, and how often it waits. */
struct window_calls {
	uint32_t waits, fetches;
	uint64_t ops;
	size_t launches;
};

static struct window_calls calls_in(const struct tfh_facts *facts, const struct tfh_window *x,
				    size_t *at)
{
	struct window_calls c = {0};

	for (; *at < facts->token.n && facts->token.v[*at].t0 < x->t1; ++*at) {
		const struct tfh_token_kind *k = tfh_kind_of(facts, &facts->token.v[*at]);
		if (facts->token.v[*at].t0 < x->t0)
			continue;
		c.waits += k->family == TFH_FAM_SYNC;
		c.fetches += k->family == TFH_FAM_COPY && k->dir == TFH_DIR_D2H;
		if (!tfh_is_launch(k))
			continue;
		c.ops |= tfh_op_of(k);
		c.launches += k->family == TFH_FAM_LAUNCH ? 1 : TFH_LOOPS_STEP_SEQUENCE;
	}
	return c;
}

/* Reads each window: where one waits, a step ends. */
static int find(const struct tfh_facts *facts, const struct tfh_loops *loops, struct waited *w)
{
	size_t at = 0, windows = 0;
	int rc = 0;

	for (size_t i = 0; i < loops->window.n && !rc; tfh_big_pass(++i)) {
		const struct tfh_window *x = &loops->window.v[i];
		struct window_calls c = calls_in(facts, x, &at);
		windows++;
		if (!c.waits) {
			w->inner |= c.ops;
			w->most = c.launches > w->most ? c.launches : w->most;
			w->most = c.fetches ? SIZE_MAX : w->most;
			continue;
		}
		w->ending |= c.ops;
		rc = i + 1 < loops->window.n ? TFH_PUSH(w->end, x->t1) : 0;
		rc = rc ? rc : TFH_PUSH(w->last, x->t0);
		w->waits = w->waits ? w->waits : c.waits;
		w->parts = w->steps < 2 ? windows : w->parts;
		w->steps++;
		w->whole += c.waits == w->waits && windows == c.waits;
		w->alike += windows == w->parts;
		windows = 0;
	}
	return rc;
}

/* Whether the windows that wait have much of the device's time for themselves. */
static bool much_at_end(const struct tfh_facts *facts, const struct tfh_loops *loops,
			const struct waited *w)
{
	const struct tfh_feed *f = facts->feed;
	double inner = 0, ending = 0;
	const struct tfh_op *op;
	struct tfh_op room;
	struct tfh_err err;
	size_t window = 0;

	if (!f->rewind_ops || tfh_feed_rewind_brief(f, facts->process, &err))
		return false;
	while ((op = tfh_feed_borrow_op(f, &room))) {
		window = tfh_window_of(loops, op->issue0, window);
		if (op->kind != TFH_OP_KERNEL || window == SIZE_MAX)
			continue;
		int64_t t0 = loops->window.v[window].t0;
		size_t k = TFH_BISECT(i, 0, w->last.n, w->last.v[i] < t0);
		*(k < w->last.n && w->last.v[k] == t0 ? &ending : &inner) +=
			(double)(op->t1 - op->t0);
	}
	double usual = inner / (double)(loops->window.n - w->last.n) * (double)w->last.n;
	return ending - usual > TFH_LOOPS_BESIDES_SHARE * (inner + ending);
}

/* Whether the steps are loops over small windows and an end that launches something else. */
static bool small_parts(const struct tfh_facts *facts, const struct tfh_loops *loops,
			const struct waited *w)
{
	uint32_t functions = 0;

	for (uint64_t ops = w->inner; ops; ops &= ops - 1)
		functions++;
	return TFH_DETECT_SMALL_PARTS && w->parts > 1 && w->steps >= w->parts &&
	       (double)w->alike >= TFH_CYCLE_SURE_SHARE * (double)w->steps &&
	       functions < TFH_LOOPS_STEP_FUNCTIONS && w->most < TFH_LOOPS_STEP_SEQUENCE &&
	       (w->ending & ~w->inner) && much_at_end(facts, loops, w);
}

int tfh_join_waited(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	struct waited w = {0};
	int rc = 0;

	if (loops->clock == TFH_STEP_CLOCK_PERIOD && tfh_counts_units(facts, loops))
		rc = find(facts, loops, &w);
	bool whole = TFH_DETECT_WAITED && w.waits > 1 &&
		     (double)w.whole >= TFH_CYCLE_SURE_SHARE * (double)w.steps;
	if (!rc && w.steps >= TFH_LOOPS_FEWEST_STEPS && (whole || small_parts(facts, loops, &w)))
		tfh_join_windows(loops, w.end.v, w.end.n);
	free(w.end.v);
	free(w.last.v);
	return rc;
}
