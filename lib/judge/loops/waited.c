/*
 * Parts of a step that run side by side on streams of their own are each waited for at its end. If
 * each k-th window, and no other, waits, and does so k times, k windows are one step. A series of
 * steps that ends with a wait has only one.
 */
#include <stdlib.h>

#include "judge/loops/unit.h"

struct waited {
	uint32_t waits;	      /* at the end of the first step */
	size_t steps, whole;  /* whole: of as many parts */
	TFH_VEC(int64_t) end; /* of the steps */
};

/* Counts the waits in each window: where there are any, a step ends. */
static int find(const struct tfh_facts *facts, const struct tfh_loops *loops, struct waited *w)
{
	size_t at = 0, windows = 0;
	int rc = 0;

	for (size_t i = 0; i < loops->window.n && !rc; tfh_big_pass(++i)) {
		const struct tfh_window *x = &loops->window.v[i];
		uint32_t waits = 0;
		for (; at < facts->token.n && facts->token.v[at].t0 < x->t1; at++)
			waits += facts->token.v[at].t0 >= x->t0 &&
				 tfh_kind_of(facts, &facts->token.v[at])->family == TFH_FAM_SYNC;
		windows++;
		if (!waits)
			continue;
		rc = i + 1 < loops->window.n ? TFH_PUSH(w->end, x->t1) : 0;
		w->waits = w->waits ? w->waits : waits;
		w->steps++;
		w->whole += waits == w->waits && windows == waits;
		windows = 0;
	}
	return rc;
}

int tfh_join_waited(const struct tfh_facts *facts, struct tfh_loops *loops)
{
	struct waited w = {0};
	int rc = 0;

	if (TFH_DETECT_WAITED && loops->clock == TFH_STEP_CLOCK_PERIOD &&
	    tfh_counts_units(facts, loops))
		rc = find(facts, loops, &w);
	if (!rc && w.waits > 1 && w.steps >= TFH_LOOPS_FEWEST_STEPS &&
	    (double)w.whole >= TFH_CYCLE_SURE_SHARE * (double)w.steps)
		tfh_join_windows(loops, w.end.v, w.end.n);
	free(w.end.v);
	return rc;
}
