/*
 * The host line: reads the calls of the driving threads. It counts them, merges them into one line
 * (flatten.c), of which host_charge.c charges each span, and charges rows of short launches at
 * once.
 */
#include <errno.h>
#include <stdlib.h>

#include "judge/account/host_charge.h"

struct tfh_host_line {
	struct tfh_host_charge charge;
	struct tfh_flat *flat;
	int64_t flattened; /* charged up to here */
	struct last_call {
		int64_t end;
		struct tfh_bound_call call;
		int64_t paused;	      /* end of the pause before the open call, 0: none */
		uint32_t pause_stack; /* read then; 0: unknown */
		bool marks;	      /* marks may have ended pauses, too */
	} * last;		      /* by thread */
	/* A row of consecutive short launches in one window, charged at once: all of [from, to) is
	 * launching. The next launch belongs to it if it ends at or before `until`. */
	struct {
		int64_t from, to, until;
		struct tfh_use *use; /* window in which they are counted, or NULL */
		int64_t *work;	     /* work of the window that they are charged to, or NULL */
		uint32_t thread;
	} row;
};

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
	tfh_note_large(a->charge.open, t1, ns);
}

/* Counts n launches of the row that differ only in their times. */
static int count_in_row(struct tfh_host_line *a, const struct tfh_event *ev, uint32_t n)
{
	struct tfh_inferred *d = &a->charge.device;

	d->slow_launches = n < 64 ? d->slow_launches << n : 0;
	d->launches += n;
	*tfh_inferred_last(d, ev->stream) = d->launches;
	return a->row.use ? tfh_count_launches_of(a->charge.accounts, a->row.use, ev, n) : 0;
}

/* After a launch that was handled like any call: starts a row for the launches that follow. Not
 * while the device is idle, because the first launch then has no device work that could hide it. */
static void begin_row(struct tfh_host_line *a, uint32_t thread)
{
	int64_t at, until = tfh_flat_passable(a->flat, &at), upto;
	bool charged;

	if (until == INT64_MIN || !a->charge.device.since)
		return;
	a->row.thread = thread;
	a->row.from = a->row.to = at;
	a->row.until = tfh_open_accounts_until(a->charge.open, at, &charged);
	a->row.work = charged ? tfh_open_accounts_work(a->charge.open) : NULL;
	a->row.use = tfh_count_window(a->charge.accounts, at, &upto);
	upto = upto < until ? upto : until;
	a->row.until = upto < a->row.until ? upto : a->row.until;
}

static inline void end_row(struct tfh_host_line *a)
{
	if (a->row.to > a->row.from) {
		tfh_charge(a->charge.open, a->row.from, a->row.to, TFH_CAUSE_HOST_LAUNCH,
			   TFH_TENTATIVE);
		tfh_flat_pass(a->flat, a->row.to);
		a->last[a->row.thread] =
			(struct last_call){.end = a->row.to, .marks = a->last[a->row.thread].marks};
	}
	a->row.from = a->row.to;
	a->row.until = INT64_MIN;
}

static int add_launch(struct tfh_host_line *a, const struct tfh_event *ev)
{
	struct tfh_accounts *accounts = a->charge.accounts;
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
	struct tfh_accounts *accounts = a->charge.accounts;
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
	a->charge.accounts = accounts;
	tfh_inferred_init(&a->charge.device, accounts->facts);
	a->flattened = a->row.until = INT64_MIN;
	a->charge.brief = tfh_brief_shares(accounts, TFH_ANY_THREAD);
	a->charge.open = tfh_open_accounts_new(accounts);
	a->flat = tfh_flat_new(accounts, tfh_host_charge_span, &a->charge);
	a->last = calloc(accounts->facts->feed->n_threads + 1, sizeof(*a->last));
	if (a->charge.open && a->flat && a->last)
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
	if (!pause.t0 || last->paused || !a->charge.accounts->facts->thread[ev->thread].drives)
		return;
	last->paused = ev->t1;
	last->pause_stack = ev->stack;
	if (ev->stack)
		tfh_count_pause(a->charge.accounts, &pause);
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
	if (!ev->depth && last->end && a->charge.accounts->facts->thread[ev->thread].drives)
		tfh_count_bounds(a->charge.accounts, &pause);
	*last = (struct last_call){.end = ev->t1,
				   .call = {ev->fn, ev->kind == TFT_CALL ? ev->stack : 0},
				   .marks = last->marks};
}

static __attribute__((noinline)) int take_any(struct tfh_host_line *a, const struct tfh_event *ev,
					      bool plain)
{
	int64_t known = ev->t1 - a->charge.accounts->facts->long_ns;

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
	const struct tfh_feed *f = a->charge.accounts->facts->feed;
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
	const struct tfh_feed *f = a->charge.accounts->facts->feed;
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
	const struct tfh_feed *f = a->charge.accounts->facts->feed;
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
	if (!a->charge.accounts->timed)
		tfh_pauses_settle(a->charge.accounts->pauses, true);
	return tfh_open_accounts_end(a->charge.open);
}

void tfh_host_line_free(struct tfh_host_line *a)
{
	if (!a)
		return;
	tfh_flat_free(a->flat);
	tfh_open_accounts_free(a->charge.open);
	free(a->last);
	free(a);
}
