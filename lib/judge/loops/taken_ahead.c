/*
 * A thread that only fetches batches runs ahead of the training by the size of its queue: the first
 * batches arrive faster than steps, and the last ones are never trained with. The driver's calls
 * show how many steps there were.
 */
#include <string.h>

#include "judge/loops/step_clock.h"

static bool taken_by_others(const struct tfh_facts *facts, const struct tfh_loops *loops)
{
	TFH_EACH (i, facts->batch.n) {
		const struct tfh_boundary *t = &facts->batch.v[i];
		if ((int32_t)tfh_group_of(loops, t) == loops->train_group &&
		    facts->thread[t->thread].drives)
			return false;
	}
	return facts->launches > 0;
}

/* The number of training steps by the period of the launches; 0: nothing repeats. */
static int count_steps(const struct tfh_facts *facts, size_t *n, struct tfh_err *err)
{
	struct tfh_loops period = {.train_group = -1};
	int rc = tfh_find_period(facts, &period, err);

	*n = 0;
	TFH_EACH (i, period.mark.n)
		*n += !period.mark.v[i].eval;
	tfh_big_free(period.mark.v);
	return rc;
}

/* Makes one window of the first 1 + `ahead` windows if they belong to one epoch. */
static void join_first(struct tfh_loops *loops, size_t ahead)
{
	struct tfh_window *w = loops->window.v;

	for (size_t i = 0; i <= ahead; i++)
		if (w[i].segment != TFH_SEGMENT_TRAIN || w[i].cut || w[i].t1 != w[i + 1].t0)
			return;
	w[0].t1 = w[ahead].t1;
	w[0].last = w[ahead].last;
	loops->window.n -= ahead;
	memmove(w + 1, w + 1 + ahead, (loops->window.n - 1) * sizeof(*w));
}

int tfh_join_ahead(const struct tfh_facts *facts, struct tfh_loops *loops, struct tfh_err *err)
{
	size_t batches = 0, steps;
	int rc;

	if (facts->feed->imported || loops->grouped || !taken_by_others(facts, loops))
		return 0;
	rc = count_steps(facts, &steps, err);
	TFH_EACH (i, loops->window.n)
		batches += loops->window.v[i].segment == TFH_SEGMENT_TRAIN;
	if (!rc && batches > steps && (batches - steps) * TFH_LOOPS_AHEAD_PART <= batches)
		join_first(loops, batches - steps);
	return rc;
}
