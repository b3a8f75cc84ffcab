/*
 * Loads the windows of a slice: device ops in order of start, host calls of the relevant threads in
 * order of end. Both are read together; the parts that the next slice needs are copied for it.
 */
#include <stdlib.h>
#include <string.h>

#include "judge/account/device.h"

/* Whether a call belongs to the host's time line: calls of threads that launch or wait for input,
 * and calls of other threads that a thread may wait for (the main thread that copies and waits
 * while an executor's thread launches). Polls of other threads are left out: they do no work that
 * others wait for. */
static bool call_wanted(const struct tfh_accounts *accounts, const struct tfh_piece *p)
{
	/* Calls that order streams count from any thread: a loader's thread may record the event
	 * after its copy. */
	bool orders = p->family == TFH_FAM_EVENT || p->family == TFH_FAM_STREAM_WAIT;

	if (!p->passive)
		return accounts->facts->thread[p->thread].drives ||
		       p->activity == TFH_ACTIVITY_INPUT || orders ||
		       (p->activity >= TFH_ACTIVITY_LAUNCH && p->family != TFH_FAM_QUERY);
	return tfh_stage_is_loop_child(accounts->facts, p->stage);
}

int tfh_chunk_start(struct tfh_device *d, struct tfh_call_feed *calls, struct tfh_err *err)
{
	const struct tfh_feed *f = d->accounts->facts->feed;
	int rc = f->rewind_ops(f->arg, d->accounts->facts->process, err);

	if (rc)
		return rc;
	d->calls = calls;
	d->next_ev = tfh_call_feed_next(calls);
	d->next_op = tfh_feed_borrow_op(f, &d->op_room);
	d->first_later = calloc(f->n_threads + 1, sizeof(*d->first_later));
	d->horizon = INT64_MIN;
	return d->first_later ? 0 : -ENOMEM;
}

/* Calls stay in memory if they begin before the horizon, or are the next one of their thread, which
 * ends its last pause. */
static bool is_near(struct tfh_device *d, const struct tfh_piece *p)
{
	if (p->t0 <= d->horizon)
		return true;
	if (p->t0 >= d->first_later[p->thread])
		return false;
	d->first_later[p->thread] = p->t0;
	return true;
}

static int keep_call(struct tfh_device *d, const struct tfh_piece *p)
{
	if (is_near(d, p))
		return TFH_PUSH(d->call, *p);
	return TFH_PUSH(d->later, *p);
}

/* Moves the horizon when the windows have reached it. */
static int look_further(struct tfh_device *d, int64_t to)
{
	size_t n = 0;
	int rc = 0;

	if (to < d->horizon)
		return 0;
	d->horizon = to + TFH_ACCOUNT_AHEAD_NS;
	for (uint32_t i = 0; i < d->accounts->facts->feed->n_threads; i++)
		d->first_later[i] = INT64_MAX;
	for (size_t i = 0; i < d->call.n; i++)
		is_near(d, &d->call.v[i]);
	for (size_t i = 0; i < d->later.n && !rc; i++) {
		if (is_near(d, &d->later.v[i]))
			rc = TFH_PUSH(d->call, d->later.v[i]);
		else
			d->later.v[n++] = d->later.v[i];
	}
	d->later.n = n;
	return rc;
}

/* Whether this is the run of a host function on the driver's thread, not the call that queued
 * it. */
static bool runs_host_function(const struct tfh_event *ev)
{
	return ev->kind == TFT_CALL && ev->fn->family == TFH_FAM_HOST_FUNC &&
	       !strcmp(ev->fn->name, "host function");
}

static int add_call(struct tfh_device *d, const struct tfh_event *ev, int64_t from)
{
	struct tfh_accounts *accounts = d->accounts;
	struct tfh_piece p;

	if (ev->thread < accounts->facts->feed->n_threads && ev->t1 >= from &&
	    runs_host_function(ev)) {
		tfh_queued_count(accounts->queued, ev);
		struct tfh_run_of_function x = {ev->t0, ev->t1, ev->stream};
		return d->function.n < TFH_ACCOUNT_CALLS ? TFH_PUSH(d->function, x) : 0;
	}
	if (ev->thread >= accounts->facts->feed->n_threads || ev->t1 < from ||
	    !tfh_piece_of(ev, &p) || ev->t1 - ev->t0 >= TFH_LONG_NS ||
	    !tfh_exec_piece(accounts->facts, ev, &p) || !call_wanted(accounts, &p))
		return 0;
	if (p.passive) {
		p.passive = false;
		p.activity = TFH_ACTIVITY_INPUT;
	}
	tfh_loading_piece(accounts->facts, &p);
	return keep_call(d, &p);
}

static int read_calls(struct tfh_device *d, int64_t from, int64_t to)
{
	const struct tfh_accounts *accounts = d->accounts;
	int rc = 0;

	while (d->next_ev && d->next_ev->t1 <= to + TFH_LONG_NS && !rc) {
		rc = add_call(d, d->next_ev, from);
		d->next_ev = tfh_call_feed_next(d->calls);
	}
	for (; d->next_long < accounts->facts->longs.n &&
	       accounts->facts->longs.v[d->next_long].t0 <= to && !rc;
	     d->next_long++) {
		const struct tfh_piece *p = &accounts->facts->longs.v[d->next_long];
		if (p->t1 - p->t0 >= TFH_LONG_NS && p->t1 >= from &&
		    p->activity != TFH_ACTIVITY_GAP && !p->passive && call_wanted(accounts, p))
			rc = TFH_PUSH(d->call, *p);
	}
	return rc;
}

static int add_op(struct tfh_device *d, const struct tfh_op *o)
{
	struct tfh_device_op x = {.t0 = o->t0,
				  .t1 = o->t1,
				  .issue0 = o->issue0,
				  .issue1 = o->issue1,
				  .lane = tfh_lane_of(d, o),
				  .thread = o->thread,
				  .graph = o->graph,
				  .correlation = o->correlation,
				  .prev = TFH_NO,
				  .dep = TFH_NO,
				  .span = TFH_NO,
				  .shared = -1,
				  .work = tfh_work_of(o),
				  .copy = o->kind == TFH_OP_COPY,
				  .pageable = o->pageable};
	struct tfh_lane *l;
	size_t w;

	if (x.lane == TFH_NO)
		return -ENOMEM;
	if (x.work == TFH_W_COUNT)
		return 0;
	w = tfh_window_of(d->accounts->loops, o->issue0 > INT64_MIN ? o->issue0 : o->t0,
			  d->near_window);
	x.window = w == SIZE_MAX ? TFH_NO : (uint32_t)w;
	d->near_window = w == SIZE_MAX ? d->near_window : w;
	l = &d->lane.v[x.lane];
	x.device = l->device;
	if (x.work == TFH_W_COMM)
		x.shared = tfh_matches_shared(d->accounts->matches, d->accounts->facts->process,
					      o->device, d->met[l->device]++);
	if (tfh_busy_add(d, o, &x))
		return -ENOMEM;
	if (x.t1 < d->loaded) {
		if (x.t1 > l->past_end)
			l->past_end = x.t1;
		return 0;
	}
	return TFH_PUSH(d->op, x);
}

static int read_ops(struct tfh_device *d, int64_t to)
{
	const struct tfh_feed *f = d->accounts->facts->feed;
	int rc = 0;

	while (d->next_op && d->next_op->t0 <= to && !rc) {
		rc = add_op(d, d->next_op);
		d->next_op = tfh_feed_borrow_op(f, &d->op_room);
	}
	return rc;
}

/* Gives the slice what was read. Ops and calls that had not ended by `from` are also kept for the
 * next slice; of the other ops, only the end of each stream is kept. */
static int hand_on(struct tfh_device *d, struct tfh_slice *sl, int64_t from)
{
	int rc = 0;

	TFH_SWAP(d->op, sl->op);
	TFH_SWAP(d->call, sl->call);
	TFH_SWAP(d->function, sl->function);
	d->op.n = d->call.n = d->function.n = 0;
	for (size_t i = 0; i < sl->op.n && !rc; i++) {
		const struct tfh_device_op *o = &sl->op.v[i];
		struct tfh_lane *l = &d->lane.v[o->lane];
		if (o->t1 >= from)
			rc = TFH_PUSH(d->op, *o);
		else if (o->t1 > l->past_end)
			l->past_end = o->t1;
	}
	for (size_t i = 0; i < sl->call.n && !rc; i++)
		if (sl->call.v[i].t1 >= from)
			rc = TFH_PUSH(d->call, sl->call.v[i]);
	for (size_t i = 0; i < sl->function.n && !rc; i++)
		if (sl->function.v[i].t1 >= from)
			rc = TFH_PUSH(d->function, sl->function.v[i]);
	return rc;
}

/* Copies the parts of the device's state that keep changing, and begins the accounts. */
static int begin_slice(const struct tfh_device *d, struct tfh_slice *sl, size_t w0, size_t w1)
{
	int rc = 0;

	sl->w0 = w0;
	sl->w1 = w1;
	sl->until = tfh_needed_until(d, w1);
	sl->lane.n = sl->window.n = 0;
	for (size_t i = 0; i < d->lane.n && !rc; i++)
		rc = TFH_PUSH(sl->lane, d->lane.v[i]);
	for (size_t w = w0; w < w1 && !rc; w++)
		rc = TFH_PUSH(sl->window,
			      (struct tfh_slice_window){.known = d->win.v[w].ops ||
								 !d->accounts->use[w].launches});
	return rc;
}

static int by_thread(const void *a, const void *b, void *arg)
{
	(void)arg;
	const struct tfh_piece *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->t0 != y->t0)
		return x->t0 < y->t0 ? -1 : 1;
	/* An enclosing call comes before those it encloses. */
	return x->t1 != y->t1 ? (x->t1 > y->t1 ? -1 : 1) : 0;
}

/* Makes room for the ops and calls of the windows at once, since growing in steps takes twice the
 * memory. */
static int make_room(struct tfh_device *d, size_t w0, size_t w1, int64_t from, int64_t to)
{
	size_t ops = d->op.n, calls = d->call.n + tfh_calls_at_most(d->accounts->facts, from, to);
	int rc;

	for (size_t w = w0; w < w1; w++)
		ops += d->win.v[w].ops;
	rc = TFH_RESERVE(d->op, ops);
	return rc ? rc : TFH_RESERVE(d->call, calls);
}

int tfh_chunk_load(struct tfh_device *d, struct tfh_slice *sl, size_t w0, size_t w1, size_t next,
		   struct tfh_err *err)
{
	const struct tfh_feed *f = d->accounts->facts->feed;
	int64_t from = tfh_needed_from(d, w0), to = tfh_needed_until(d, w1);
	int rc;

	d->loaded = from;
	rc = make_room(d, w0, w1, from, to);
	if (!rc)
		rc = look_further(d, to);
	if (!rc)
		rc = read_ops(d, to);
	if (!rc)
		rc = read_calls(d, from, to);
	if (!rc && !d->next_ev)
		rc = tfh_call_feed_error(d->calls, err);
	if (!rc && !d->next_op)
		rc = f->ops_error(f->arg, err);
	if (rc)
		return rc;
	tfh_sort(d->call.v, d->call.n, sizeof(*d->call.v), by_thread, NULL);
	rc = begin_slice(d, sl, w0, w1);
	return rc ? rc : hand_on(d, sl, next < d->win.n ? tfh_needed_from(d, next) : INT64_MAX);
}

int tfh_chunk_end(struct tfh_device *d, struct tfh_err *err)
{
	d->loaded = INT64_MAX;
	int rc = read_ops(d, d->last);

	if (rc || d->next_op)
		return rc;
	return d->accounts->facts->feed->ops_error(d->accounts->facts->feed->arg, err);
}
