/*
 * The host line: assigns causes to what the driving threads did, moment by moment. Without device
 * times (tier C) the device is seen only through the calls that wait for it:
 *
 * wait with launches outstanding     the device computed. If the wait is long compared with the
 *                                    time since the first launch, the device was busy all that
 *                                    time, and hid what the host did
 * wait after copies only             transfer
 * blocking copy                      bytes / best bandwidth seen for the size is transfer; the
 *                                    rest, if launches were outstanding, is waiting for them
 * long launch with a deep queue      the queue was full: the device computed
 * get-next, pauses, other calls      what they are, unless hidden as above
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "judge/account/inferred.h"
#include "judge/copy_causes.h"

struct tfh_host_line {
	struct tfh_accounts *accounts;
	struct tfh_open_accounts *open;
	struct tfh_flat *flat;
	int64_t flattened; /* charged up to here */
	struct last_call {
		int64_t end;
		struct tfh_bound_call call;
		int64_t paused;	      /* a pause has ended then, 0: none; the call is open */
		uint32_t pause_stack; /* read then; 0: unknown */
		bool marks;	      /* marks may have ended pauses, too */
	} * last;		      /* by thread */
	const double *brief; /* shares of causes in short pauses; NULL: they are launching */
	/* A row of consecutive short launches in one window, charged at once: all of [from, to) is
	 * launching. The next launch belongs to it if it ends at or before `until`. */
	struct {
		int64_t from, to, until;
		struct tfh_use *use; /* window in which they are counted, or NULL */
		int64_t *work;	     /* work of the window that they are charged to, or NULL */
		uint32_t thread;
	} row;
	struct tfh_inferred device;
	uint64_t fetched; /* launches before the last blocking copy */
};

/* Charges [t0, t1), a wait for the device to complete launches up to `upto`. */
static void waited(struct tfh_host_line *a, int64_t t0, int64_t t1, uint64_t upto)
{
	struct tfh_inferred *d = &a->device;
	struct tfh_waited w = tfh_inferred_wait(d, t0, t1, upto);

	if (!w.kernels && !w.copies) {
		tfh_charge(a->open, t0, t1, TFH_CAUSE_HOST_SYNC, false, true);
	} else if (!w.kernels) {
		tfh_charge(a->open, t0, t1, d->copied, false, true);
		tfh_settle(a->open, w.busy, d->copied);
	} else {
		tfh_settle(a->open, w.busy, TFH_CAUSE_NONE);
		tfh_charge(a->open, t0, t0 + w.copy_ns, d->copied, false, false);
		tfh_charge(a->open, t0 + w.copy_ns, t1, TFH_CAUSE_NONE, false, w.direct);
		a->accounts->mixed_bytes += d->copy_bytes;
	}
	tfh_inferred_complete(d, upto);
}

/* A blocking copy whose direction is not known, as in an export without copies: one inside the
 * device would not block. It fetches results if there are any, else it sends data; the runtime's
 * function for that is mostly given pageable memory. */
static enum tfh_cause copy_cause(struct tfh_host_line *a, const struct tfh_piece *p)
{
	bool results = a->device.launches > a->fetched;

	a->fetched = a->device.launches;
	return p->dir == TFH_DIR_ANY ? tfh_copy_cause(results ? TFH_DIR_D2H : TFH_DIR_H2D, true)
				     : tfh_copy_cause(p->dir, p->pageable);
}

static void charge_copy(struct tfh_host_line *a, int64_t t0, int64_t t1, const struct tfh_piece *p)
{
	struct tfh_inferred *d = &a->device;
	int64_t take = tfh_inferred_copy_ns(d, p), from = t0;

	if ((tfh_inferred_outstanding(d) || d->copy_ns) && t1 - t0 > take)
		from = t1 - take;
	if (from > t0 || tfh_inferred_outstanding(d))
		waited(a, t0, from, d->launches);
	tfh_charge(a->open, from, t1, copy_cause(a, p), false, true);
	tfh_inferred_complete(d, d->launches);
}

/* The device has work from the end of this call on. */
static void submitted(struct tfh_inferred *d, int64_t t1, const struct tfh_piece *p)
{
	if (!d->since)
		d->since = t1;
	if (p->family == TFH_FAM_COPY)
		tfh_inferred_queued(d, p);
	else if (t1 == p->t1)
		*tfh_inferred_last(d, p->stream) = ++d->launches;
}

static void charge_launch(struct tfh_host_line *a, int64_t t0, int64_t t1,
			  const struct tfh_piece *p)
{
	struct tfh_inferred *d = &a->device;
	bool launch = tfh_family_launches(p->family);
	bool slow = t1 - t0 > TFH_GAP_NS;

	if (launch)
		d->slow_launches = d->slow_launches << 1 | slow;
	if (launch && slow && tfh_inferred_queue_full(d)) {
		tfh_settle(a->open, true, TFH_CAUSE_NONE);
		tfh_charge(a->open, t0, t1, TFH_CAUSE_NONE, false, false);
		d->since = t1;
	} else {
		tfh_charge(a->open, t0, t1, TFH_CAUSE_HOST_LAUNCH, d->since != 0, true);
	}
	submitted(d, t1, p);
}

static void charge_sync(struct tfh_host_line *a, int64_t t0, int64_t t1, const struct tfh_piece *p)
{
	struct tfh_inferred *d = &a->device;
	uint64_t upto = tfh_inferred_covered(d, p);

	if (p->family == TFH_FAM_SYNC) {
		waited(a, t0, t1, upto);
	} else if (p->failed && tfh_inferred_outstanding(d)) {
		/* A poll that returns "not ready" shows that the device is busy, and has been since
		 * it got work. */
		tfh_settle(a->open, true, TFH_CAUSE_NONE);
		tfh_charge(a->open, t0, t1, TFH_CAUSE_NONE, false, true);
	} else {
		tfh_charge(a->open, t0, t1, TFH_CAUSE_HOST_SYNC, d->since != 0, true);
		if (p->failed || upto < d->launches)
			return;
		tfh_settle(a->open, false, TFH_CAUSE_NONE);
		tfh_inferred_complete(d, upto);
	}
}

/* Charges a pause that is covered `by` what a thread did. */
static void charge_covered(struct tfh_host_line *a, int64_t t0, int64_t t1, bool hidden,
			   uint32_t thread, enum tfh_covered by)
{
	struct tfh_accounts *accounts = a->accounts;
	bool code = by == TFH_COVERED_CODE;
	enum tfh_cause usual = code ? tfh_cover_code(accounts->cover) : TFH_CAUSE_HOST_UNKNOWN;
	struct tfh_share_end part[TFH_CAUSE_COUNT] = {{t1, usual}};
	double share[TFH_CAUSE_COUNT];
	uint32_t n = tfh_cover_causes(accounts, by, thread, t0, t1, usual, share)
			     ? tfh_divide(t0, t1, share, part)
			     : 1;

	if (!accounts->timed)
		tfh_pauses_count(accounts->pauses, thread, t0, t1, usual);
	for (uint32_t i = 0; i < n; t0 = part[i++].t1)
		if (part[i].cause == usual)
			tfh_charge_gap(a->open, t0, part[i].t1, hidden,
				       code ? TFH_GAP_CODE : TFH_GAP_ANY);
		else
			tfh_charge(a->open, t0, part[i].t1, part[i].cause, hidden, true);
}

/* Charges [t0, t1), in which no driving thread was in a call. Ranges of an imported trace may show
 * what it was. */
static void charge_no_call(struct tfh_host_line *a, int64_t t0, int64_t t1, bool hidden)
{
	struct tfh_accounts *accounts = a->accounts;
	enum tfh_covered by = TFH_COVERED_NOT;
	uint32_t thread = 0;

	for (uint32_t i = 0; i < accounts->facts->feed->n_threads && accounts->cover && !by; i++)
		if (accounts->facts->thread[i].drives)
			by = tfh_covered_by(accounts->cover, thread = i, t0, t1);
	if (by == TFH_COVERED_LAUNCH) {
		tfh_charge(a->open, t0, t1, TFH_CAUSE_HOST_LAUNCH, hidden, true);
	} else if (by == TFH_COVERED_EXCHANGE) {
		tfh_charge(a->open, t0, t1, TFH_CAUSE_COMMUNICATION_TRANSFER, false, true);
	} else {
		charge_covered(a, t0, t1, hidden, thread, by);
	}
}

/* The part of a pause with exchanges that the thread spent waiting for them, by its samples. */
static double waiting_part(const struct tfh_accounts *accounts, int64_t t0, int64_t t1,
			   int64_t exchanges)
{
	double share[TFH_CAUSE_COUNT], waits = 0;

	if (!tfh_pause_causes(accounts, TFH_ANY_THREAD, t0, t1, false, TFH_CAUSE_HOST_UNKNOWN,
			      share))
		return 1;
	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		waits += tfh_may_exchange(c) ? share[c] : 0;
	return fmin(1, waits * (double)(t1 - t0) / (double)exchanges);
}

/* Charges a pause in which the process exchanged data with other ranks. */
static void charge_exchanges(struct tfh_host_line *a, int64_t t0, int64_t t1, int64_t exchanges)
{
	double part = waiting_part(a->accounts, t0, t1, exchanges);
	int64_t until, own;

	for (; t0 < t1; t0 = until) {
		enum tfh_cause cause = tfh_exposed_at(a->accounts->exposed, t0, t1, &until);
		own = cause == TFH_CAUSE_NONE ? t0 : t0 + (int64_t)(part * (double)(until - t0));
		tfh_charge(a->open, t0, own, cause, false, true);
		tfh_charge_gap(a->open, own, until, false, TFH_GAP_OWN);
	}
}

/* Charges an executed call of a job on the CPU. */
static void charge_exec(struct tfh_host_line *a, int64_t t0, int64_t t1, uint32_t thread)
{
	int64_t until, computes = t0 + tfh_compiles_in(a->accounts, thread, t0, t1);

	if (computes > t0)
		tfh_charge(a->open, t0, computes, TFH_CAUSE_HOST_COMPILE, false, true);
	for (t0 = computes; t0 < t1; t0 = until) {
		enum tfh_cause cause = tfh_exposed_at(a->accounts->exposed, t0, t1, &until);
		tfh_charge(a->open, t0, until, cause, false, true);
	}
}

/* Charges a pause in which other threads may have computed or communicated meanwhile: without a
 * device, that is the job's work. */
static void charge_pause(struct tfh_host_line *a, int64_t t0, int64_t t1, bool hidden)
{
	enum tfh_covered by;
	int64_t until, exchanges = tfh_exposed_ns(a->accounts->exposed, t0, t1);

	if (exchanges) {
		charge_exchanges(a, t0, t1, exchanges);
		return;
	}
	for (; t0 < t1; t0 = until) {
		by = tfh_covered_line(a->accounts->cover, t0, t1, &until);
		if (by == TFH_COVERED_NOT)
			charge_no_call(a, t0, until, hidden);
		else
			tfh_charge(a->open, t0, until,
				   by == TFH_COVERED_EXCHANGE ? TFH_CAUSE_COMMUNICATION_TRANSFER
							      : TFH_CAUSE_NONE,
				   false, true);
	}
}

/* Charges a short pause. */
static void charge_brief(struct tfh_host_line *a, int64_t t0, int64_t t1, bool hidden)
{
	struct tfh_share_end part[TFH_CAUSE_COUNT] = {{t1, TFH_CAUSE_HOST_LAUNCH}};
	uint32_t n = a->brief ? tfh_divide(t0, t1, a->brief, part) : 1;

	for (uint32_t i = 0; i < n; t0 = part[i++].t1)
		tfh_charge(a->open, t0, part[i].t1, part[i].cause, hidden, true);
}

/* Charges one span of the merged line. */
static void charge_span(void *arg, int64_t t0, int64_t t1, const struct tfh_piece *p)
{
	struct tfh_host_line *a = arg;
	struct tfh_open_accounts *l = a->open;
	bool hidden = a->device.since != 0;
	enum tfh_cause cause;

	switch (p ? p->activity : TFH_ACTIVITY_GAP) {
	case TFH_ACTIVITY_GAP:
		if (t1 - t0 < TFH_GAP_NS)
			charge_brief(a, t0, t1, hidden);
		else
			charge_pause(a, t0, t1, hidden);
		return;
	case TFH_ACTIVITY_EXEC:
		cause = tfh_exec_cause(a->accounts, p->saves, p->makes, p->logs);
		if (cause == TFH_CAUSE_HOST_LAUNCH && a->accounts->facts->cpu_only)
			charge_exec(a, t0, t1, p->thread);
		else
			tfh_charge(l, t0, t1, cause, hidden, true);
		break;
	case TFH_ACTIVITY_INPUT:
		tfh_charge(l, t0, t1, TFH_CAUSE_INPUT_UNKNOWN, hidden, true);
		return;
	case TFH_ACTIVITY_OTHER:
		if (p->family == TFH_FAM_EVENT && p->handle)
			tfh_inferred_recorded(&a->device, p->handle);
		tfh_charge(l, t0, t1, tfh_other_cause(p->family, t1 - t0), hidden, true);
		return;
	case TFH_ACTIVITY_LAUNCH:
		charge_launch(a, t0, t1, p);
		break;
	case TFH_ACTIVITY_ALLOC:
		tfh_charge(l, t0, t1, TFH_CAUSE_HOST_ALLOC, hidden, true);
		return;
	case TFH_ACTIVITY_MODULE:
		tfh_charge(l, t0, t1, TFH_CAUSE_HOST_COMPILE, hidden, true);
		if (p->family == TFH_FAM_LAUNCH)
			submitted(&a->device, t1, p);
		return;
	case TFH_ACTIVITY_COPY:
		charge_copy(a, t0, t1, p);
		break;
	case TFH_ACTIVITY_SYNC:
		charge_sync(a, t0, t1, p);
		break;
	}
	if (t1 == p->t1)
		tfh_note_work(l, t1, t1 - t0);
}

#ifndef TFH_VARY
_Static_assert(TFH_GAP_NS < TFH_LONG_FIRST_NS, "calls known from the first pass are in no row");
#endif

/* Whether an outermost launch continues the row, which has come to `to`. */
static inline bool in_row(const struct tfh_host_line *a, int64_t to, int64_t t0, int64_t t1,
			  uint32_t thread)
{
	return t1 <= a->row.until && t0 >= to && t0 - to < TFH_GAP_NS && thread == a->row.thread &&
	       t1 > t0 && t1 - t0 <= TFH_GAP_NS;
}

/* Adds work of the current window to its sum. */
static inline void add_work(struct tfh_host_line *a, int64_t *work, int64_t t1, int64_t ns)
{
	*work += ns;
	if (__builtin_expect(ns * TFH_ACCOUNT_MAIN_PART < *work, 1))
		return;
	*a->row.work = *work;
	tfh_note_large(a->open, t1, ns);
}

/* Counts n launches of the row that differ only in their times. */
static int count_in_row(struct tfh_host_line *a, const struct tfh_event *ev, uint32_t n)
{
	struct tfh_inferred *d = &a->device;

	d->slow_launches = n < 64 ? d->slow_launches << n : 0;
	d->launches += n;
	*tfh_inferred_last(d, ev->stream) = d->launches;
	return a->row.use ? tfh_count_launches_of(a->accounts, a->row.use, ev, n) : 0;
}

/* After a launch that was handled like any call: starts a row for the launches that follow. Not
 * while the device is idle, because the first launch then has no device work that could hide it. */
static void begin_row(struct tfh_host_line *a, uint32_t thread)
{
	int64_t at, until = tfh_flat_passable(a->flat, &at), upto;
	bool charged;

	if (until == INT64_MIN || !a->device.since)
		return;
	a->row.thread = thread;
	a->row.from = a->row.to = at;
	a->row.until = tfh_open_accounts_until(a->open, at, &charged);
	a->row.work = charged ? tfh_open_accounts_work(a->open) : NULL;
	a->row.use = tfh_count_window(a->accounts, at, &upto);
	upto = upto < until ? upto : until;
	a->row.until = upto < a->row.until ? upto : a->row.until;
}

static inline void end_row(struct tfh_host_line *a)
{
	if (a->row.to > a->row.from) {
		tfh_charge(a->open, a->row.from, a->row.to, TFH_CAUSE_HOST_LAUNCH, true, true);
		tfh_flat_pass(a->flat, a->row.to);
		a->last[a->row.thread] =
			(struct last_call){.end = a->row.to, .marks = a->last[a->row.thread].marks};
	}
	a->row.from = a->row.to;
	a->row.until = INT64_MIN;
}

static int add_launch(struct tfh_host_line *a, const struct tfh_event *ev)
{
	struct tfh_accounts *accounts = a->accounts;
	struct tfh_piece p;
	int rc = tfh_count_launch(accounts, ev);

	if (rc || ev->t1 - ev->t0 >= accounts->facts->long_ns ||
	    !accounts->facts->thread[ev->thread].drives)
		return rc;
	tfh_piece_of(ev, &p);
	if (!accounts->facts->one_line)
		return tfh_flat_add(a->flat, &p);
	rc = tfh_flat_next(a->flat, &p);
	begin_row(a, ev->thread);
	return rc;
}

static int add_event(struct tfh_host_line *a, const struct tfh_event *ev)
{
	struct tfh_accounts *accounts = a->accounts;
	struct tfh_piece p;

	if (!tfh_piece_of(ev, &p))
		return 0;
	if (tfh_count_event(accounts, ev, &p))
		return -ENOMEM;
	if (ev->t1 - ev->t0 >= accounts->facts->long_ns)
		return 0; /* known from the first pass */
	if (!tfh_exec_piece(accounts->facts, ev, &p) || !tfh_line_piece(accounts->facts, &p))
		return 0;
	return accounts->facts->one_line && !ev->depth ? tfh_flat_next(a->flat, &p)
						       : tfh_flat_add(a->flat, &p);
}

struct tfh_host_line *tfh_host_line_new(struct tfh_accounts *accounts)
{
	struct tfh_host_line *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->accounts = accounts;
	tfh_inferred_init(&a->device, accounts->facts);
	a->flattened = a->row.until = INT64_MIN;
	a->brief = tfh_brief_shares(accounts, TFH_ANY_THREAD);
	a->open = tfh_open_accounts_new(accounts);
	a->flat = tfh_flat_new(accounts, charge_span, a);
	a->last = calloc(accounts->facts->feed->n_threads + 1, sizeof(*a->last));
	if (a->open && a->flat && a->last)
		return a;
	tfh_host_line_free(a);
	return NULL;
}

/* A reading of a thread's CPU clock marks the end of a pause, which began with the end of the call
 * before; or the end of a long call, which is the next event then. */
static void add_pause(struct tfh_host_line *a, const struct tfh_event *ev)
{
	struct last_call *last = &a->last[ev->thread];
	struct tfh_event pause = *ev;

	pause.t0 = last->end;
	if (!pause.t0 || last->paused || !a->accounts->facts->thread[ev->thread].drives)
		return;
	last->paused = ev->t1;
	last->pause_stack = ev->stack;
	if (ev->stack)
		tfh_count_pause(a->accounts, &pause);
}

/* A call has ended. After a pause the calls within it end first. */
static void add_last(struct tfh_host_line *a, const struct tfh_event *ev)
{
	struct last_call *last = &a->last[ev->thread];
	bool paused = last->paused && last->paused <= ev->t0;
	const struct tfh_bounded_pause pause = {
		.t0 = last->end,
		.t1 = paused ? last->paused : ev->t0,
		.t2 = ev->t1,
		.brief = !paused,
		.from = last->call,
		.to = {last->marks ? NULL : ev->fn, last->pause_stack}};

	if (ev->depth && last->paused)
		return;
	if (!ev->depth && last->end && a->accounts->facts->thread[ev->thread].drives)
		tfh_count_bounds(a->accounts, &pause);
	*last = (struct last_call){.end = ev->t1,
				   .call = {ev->fn, ev->kind == TFT_CALL ? ev->stack : 0},
				   .marks = last->marks};
}

static __attribute__((noinline)) int take_any(struct tfh_host_line *a, const struct tfh_event *ev,
					      bool plain)
{
	int64_t known = ev->t1 - a->accounts->facts->long_ns;

	end_row(a);
	int rc = plain ? add_launch(a, ev) : add_event(a, ev);
	if (ev->kind == TFT_CPUTIME)
		add_pause(a, ev);
	else if (ev->kind == TFT_CALL || ev->kind == TFT_ALLOC || ev->kind == TFT_AGG)
		add_last(a, ev);
	else if (ev->kind == TFT_MARK || ev->kind == TFT_RANGE)
		a->last[ev->thread].marks = true;

	if (known > a->flattened + TFH_ACCOUNT_FLAT_NS) {
		a->flattened = known;
		tfh_flat_until(a->flat, known);
	}
	return rc;
}

static inline int take(struct tfh_host_line *a, const struct tfh_event *ev)
{
	bool plain = tfh_is_plain_launch(ev);

	if (!plain || !in_row(a, a->row.to, ev->t0, ev->t1, ev->thread))
		return take_any(a, ev, plain);
	a->row.to = ev->t1;
	if (a->row.work)
		add_work(a, a->row.work, ev->t1, ev->t1 - ev->t0);
	return count_in_row(a, ev, 1);
}

/* Takes the available launches that continue the row. */
static int take_row(struct tfh_host_line *a)
{
	const struct tfh_feed *f = a->accounts->facts->feed;
	int64_t to = a->row.to, work = a->row.work ? *a->row.work : INT64_MAX / 2;
	uint32_t n, k = 0, same = 0; /* same: the first of those with the same fields */
	const struct tfh_entry *x = tfh_feed_peek(f, &n);
	int rc = 0;

	for (; k < n && x[k].launch && in_row(a, to, x[k].t0, x[k].t1, x[k].thread); k++) {
		to = x[k].t1;
		add_work(a, &work, to, to - x[k].t0);
		if (x[k].ev == x[same].ev)
			continue;
		rc |= count_in_row(a, x[same].ev, k - same);
		same = k;
	}
	if (k > same)
		rc |= count_in_row(a, x[same].ev, k - same);
	if (a->row.work)
		*a->row.work = work;
	a->row.to = to;
	tfh_feed_advance(f, k);
	return rc;
}

/* Takes whole rows of launches that continue the row: none is long enough to be main work. */
static int take_rows(struct tfh_host_line *a)
{
	const struct tfh_feed *f = a->accounts->facts->feed;
	const struct tfh_launch_row *r;
	int rc = 0;

	while (!rc && (r = tfh_feed_row(f)) && in_row(a, a->row.to, r->t0, r->first, r->thread) &&
	       r->t1 <= a->row.until && r->apart < TFH_GAP_NS) {
		if (a->row.work && r->longest * TFH_ACCOUNT_MAIN_PART >= *a->row.work)
			break;
		if (a->row.work)
			*a->row.work += r->ns;
		a->row.to = r->t1;
		for (uint32_t i = 0; i < r->parts; i++)
			rc |= count_in_row(a, r->part[i].ev, r->part[i].n);
		f->take_row(f->arg);
	}
	return rc;
}

int tfh_host_line_add(struct tfh_host_line *a, const struct tfh_event *ev)
{
	return take(a, ev);
}

int tfh_host_line_read(struct tfh_host_line *a)
{
	const struct tfh_feed *f = a->accounts->facts->feed;
	const struct tfh_event *ev;
	struct tfh_event room;
	size_t n = 0;
	int rc = 0;

	while (!rc && (ev = tfh_feed_borrow(f, &room))) {
		tfh_big_pass(++n);
		rc = ev->thread < f->n_threads ? take(a, ev) : 0;
		if (!rc && a->row.until != INT64_MIN)
			rc = take_row(a);
		if (!rc && a->row.until != INT64_MIN)
			rc = take_rows(a);
	}
	return rc;
}

int tfh_host_line_end(struct tfh_host_line *a)
{
	end_row(a);
	tfh_flat_until(a->flat, INT64_MAX);
	if (!a->accounts->timed)
		tfh_pauses_settle(a->accounts->pauses, true);
	return tfh_open_accounts_end(a->open);
}

void tfh_host_line_free(struct tfh_host_line *a)
{
	if (!a)
		return;
	tfh_flat_free(a->flat);
	tfh_open_accounts_free(a->open);
	free(a->last);
	free(a);
}
