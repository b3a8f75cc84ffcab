/* Reads the host's calls once for all accounts. The host line takes each call before the device
 * line does. */
#include "judge/account/device.h"

const struct tfh_event *tfh_call_feed_next(struct tfh_call_feed *c)
{
	const struct tfh_feed *f = c->accounts->facts->feed;
	const struct tfh_event *ev;

	if (c->rc)
		return NULL;
	do
		ev = tfh_feed_borrow(f, &c->room);
	while (ev && ev->thread >= f->n_threads);
	if (!ev)
		return NULL;
	tfh_big_pass(++c->n);
	c->rc = tfh_host_line_add(c->line, ev);
	return c->rc ? NULL : ev;
}

int tfh_call_feed_error(const struct tfh_call_feed *c, struct tfh_err *err)
{
	const struct tfh_feed *f = c->accounts->facts->feed;

	return c->rc ? tfh_err_set(err, c->rc, "out of memory in the second pass")
		     : f->error(f->arg, err);
}
