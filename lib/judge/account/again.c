/*
 * Copies between host and device that repeat in step after step: from the same host memory
 * (constants that could stay on the device), of the same device memory, and those that send back
 * what was fetched. Only addresses and sizes are recorded, not contents, so these copies are only
 * hints.
 */
#include "judge/account/account.h"

static bool same_copy(const struct tfh_same_copy *c, const struct tfh_same_copy *d)
{
	return c->dir == d->dir && c->bytes == d->bytes &&
	       (c->dir == TFH_DIR_H2D ? c->host == d->host : c->device == d->device);
}

/* The entry of a copy, or a new one, which may replace an entry whose copy did not occur for a
 * whole step. NULL: no room. */
static struct tfh_same_copy *entry_of(struct tfh_accounts *accounts, const struct tfh_same_copy *c)
{
	struct tfh_same_copy *room = NULL;

	for (int i = 0; i < TFH_ACCOUNT_SAME_COPIES; i++) {
		struct tfh_same_copy *at = &accounts->same_copy[i];
		if (at->bytes && same_copy(at, c))
			return at;
		if (!room && (!at->bytes || at->window + 1 < c->window))
			room = at;
	}
	if (room)
		*room = *c;
	return room;
}

/* Whether this step or the one before copied to that host memory. */
static bool was_fetched(const struct tfh_accounts *accounts, const struct tfh_same_copy *c)
{
	for (int i = 0; i < TFH_ACCOUNT_SAME_COPIES; i++) {
		const struct tfh_same_copy *at = &accounts->same_copy[i];
		if (at->bytes == c->bytes && at->dir == TFH_DIR_D2H && at->host == c->host &&
		    at->window + 1 >= c->window)
			return true;
	}
	return false;
}

void tfh_count_same(struct tfh_accounts *accounts, const struct tfh_event *ev, size_t window)
{
	bool up = ev->dir == TFH_DIR_H2D;
	struct tfh_same_copy c = {.bytes = ev->w[0],
				  .host = up ? ev->w[2] : ev->w[1],
				  .device = up ? ev->w[1] : ev->w[2],
				  .window = window,
				  .dir = ev->dir};

	if ((!up && ev->dir != TFH_DIR_D2H) || ev->w[0] < TFH_ACCOUNT_SMALL_COPY || !c.host ||
	    !c.device)
		return;
	struct tfh_same_copy *at = entry_of(accounts, &c);
	if (!at || (at->steps && at->window == window))
		return;
	at->window = window;
	at->host = c.host;
	at->steps++;
	at->back += up && was_fetched(accounts, &c);
}

struct tfh_same_copy tfh_most_same(const struct tfh_accounts *accounts, unsigned dir,
				   uint64_t steps)
{
	struct tfh_same_copy sum = {.dir = dir};
	double most = 0;

	for (int i = 0; i < TFH_ACCOUNT_SAME_COPIES; i++) {
		const struct tfh_same_copy *at = &accounts->same_copy[i];
		double moved = (double)at->bytes * (double)at->steps;
		if (at->dir != dir || at->steps <= steps || !at->bytes)
			continue;
		sum.bytes += at->bytes;
		if (moved <= most)
			continue;
		most = moved;
		sum.host = at->host;
		sum.steps = at->steps;
		sum.back = at->back;
	}
	return sum;
}
