/* Which calls and ops the windows with device times need in memory. */
#include "judge/account/device.h"

/* Time from which window w0 needs calls and ops: those it waits for may have been issued one window
 * earlier. */
int64_t tfh_needed_from(const struct tfh_device *d, size_t w0)
{
	const struct tfh_window *w = d->accounts->loops->window.v;
	size_t back = w0 && w[w0 - 1].t1 == w[w0].t0 ? w0 - 1 : w0;
	int64_t t = w[back].t0;

	return d->win.v[w0].from < t ? d->win.v[w0].from : t;
}

/* Time until which the windows before w1 issue ops and run them. */
int64_t tfh_needed_until(const struct tfh_device *d, size_t w1)
{
	int64_t t = d->accounts->loops->window.v[w1 - 1].t1, done = d->win.v[w1 - 1].done;

	return done > t ? done : t;
}

/* The ops of the previous window are included, and calls are read ahead by the longest duration of
 * calls that the first pass does not store. */
bool tfh_chunk_fits(const struct tfh_device *d, size_t w0, size_t w1)
{
	int64_t from = tfh_needed_from(d, w0), to = tfh_needed_until(d, w1) + TFH_LONG_NS;
	uint64_t ops = 0;

	for (size_t i = w0 ? w0 - 1 : 0; i < w1; i++)
		ops += d->win.v[i].ops;
	return ops <= TFH_ACCOUNT_OPS &&
	       tfh_calls_at_most(d->accounts->facts, from, to) <= TFH_ACCOUNT_CALLS;
}
