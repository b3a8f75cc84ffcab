/* Predicts, before steps are judged, which of them will be requested: their durations are known,
 * and most of them remain training steps. */
#include <errno.h>
#include <math.h>

#include "judge/account/device.h"
#include "judge/chain.h"
#include "judge/stats.h"

/* The duration that the step's account will have (close.c). */
static double length_of(const struct tfh_accounts *accounts, size_t i)
{
	const struct tfh_window *w = &accounts->loops->window.v[i];
	const struct tfh_device_window *d = accounts->timed && accounts->use[i].tier != 'C'
						    ? &accounts->device->win.v[i]
						    : NULL;

	return (double)(d ? d->to - d->from : w->t1 - w->t0) / 1e9;
}

/* Assigns to the next n chains the steps with the durations nearest to this one; among equals, the
 * first ones. */
static void take_nearest(const struct tfh_accounts *accounts, double length,
			 struct tfh_chain *chain, uint32_t n)
{
	double off[TFH_CHAIN_LIKELY];
	uint32_t have = 0;
	uint64_t step = 0, next = 0;

	TFH_EACH (i, accounts->loops->window.n) {
		step = next;
		next += accounts->loops->window.v[i].steps;
		double d = fabs(length_of(accounts, i) - length);
		if (accounts->use[i].segment != TFH_SEGMENT_TRAIN || (have == n && d >= off[n - 1]))
			continue;
		uint32_t k = have < n ? have++ : n - 1;
		for (; k && off[k - 1] > d; k--) {
			off[k] = off[k - 1];
			chain[k].step = chain[k - 1].step;
		}
		off[k] = d;
		chain[k].step = step;
	}
}

/* The window that holds the step; TFH_NO_STEP: none. */
static uint64_t window_of(const struct tfh_loops *loops, uint64_t step)
{
	uint64_t n = 0;

	TFH_EACH (i, loops->window.n)
		if (step < (n += loops->window.v[i].steps))
			return i;
	return TFH_NO_STEP;
}

void tfh_place_chains(const struct tfh_accounts *accounts)
{
	for (struct tfh_chain *c = accounts->facts->feed->chain; c; c = c->next)
		if (c->process == accounts->facts->process)
			c->window = window_of(accounts->loops, c->step);
}

int tfh_find_likely(struct tfh_accounts *accounts)
{
	struct tfh_likely *l = accounts->facts->feed->likely;
	double *length = tfh_big_array(accounts->loops->window.n + 1, sizeof(*length));
	size_t n = 0;

	if (!length)
		return -ENOMEM;
	for (int i = 0; i < TFH_CHAIN_LIKELY; i++)
		l->chain[i].process = accounts->facts->process;
	l->chain[0].step = l->step;
	TFH_EACH (i, accounts->loops->window.n)
		if (accounts->use[i].segment == TFH_SEGMENT_TRAIN)
			length[n++] = length_of(accounts, i);
	if (n && l->step == TFH_NO_STEP) {
		take_nearest(accounts, tfh_quantile(length, n, TFH_CHAIN_SLOW), &l->chain[0], 1);
		take_nearest(accounts, tfh_quantile(length, n, TFH_CHAIN_FAST), &l->chain[1], 1);
		/* The median step is one of the verdict's class, which is not known yet. */
		take_nearest(accounts, tfh_quantile(length, n, 0.5), &l->chain[2],
			     TFH_CHAIN_LIKELY - 2);
	}
	tfh_big_free(length);
	return 0;
}
