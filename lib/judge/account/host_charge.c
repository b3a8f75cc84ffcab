/*
 * Assigns causes to what the driving threads did, moment by moment. Without device times (tier C)
 * the device is seen only through the calls that wait for it:
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
#include <math.h>

#include "judge/account/host_charge.h"
#include "judge/copy_causes.h"

/* Charges [t0, t1), a wait for the device to complete launches up to `upto`. */
static void waited(struct tfh_host_charge *a, int64_t t0, int64_t t1, uint64_t upto)
{
	struct tfh_inferred *d = &a->device;
	struct tfh_waited w = tfh_inferred_wait(d, t0, t1, upto);

	if (!w.kernels && !w.copies) {
		tfh_charge(a->open, t0, t1, TFH_CAUSE_HOST_SYNC, TFH_CERTAIN);
	} else if (!w.kernels) {
		tfh_charge(a->open, t0, t1, d->copied, TFH_CERTAIN);
		tfh_settle(a->open, w.busy, d->copied);
	} else {
		tfh_settle(a->open, w.busy, TFH_CAUSE_NONE);
		tfh_charge(a->open, t0, t0 + w.copy_ns, d->copied, TFH_INFERRED);
		tfh_charge(a->open, t0 + w.copy_ns, t1, TFH_CAUSE_NONE,
			   w.direct ? TFH_CERTAIN : TFH_INFERRED);
		a->accounts->mixed_bytes += d->copy_bytes;
	}
	tfh_inferred_complete(d, upto);
}

/* A blocking copy whose direction is not known, as in an export without copies: one inside the
 * device would not block. It fetches results if there are any, else it sends data; the runtime's
 * function for that is mostly given pageable memory. */
static enum tfh_cause copy_cause(struct tfh_host_charge *a, const struct tfh_piece *p)
{
	bool results = a->device.launches > a->fetched;

	a->fetched = a->device.launches;
	return p->dir == TFH_DIR_ANY ? tfh_copy_cause(results ? TFH_DIR_D2H : TFH_DIR_H2D, true)
				     : tfh_copy_cause(p->dir, p->pageable);
}

static void charge_copy(struct tfh_host_charge *a, int64_t t0, int64_t t1,
			const struct tfh_piece *p)
{
	struct tfh_inferred *d = &a->device;
	int64_t take = tfh_inferred_copy_ns(d, p), from = t0;

	if ((tfh_inferred_outstanding(d) || d->copy_ns) && t1 - t0 > take)
		from = t1 - take;
	if (from > t0 || tfh_inferred_outstanding(d))
		waited(a, t0, from, d->launches);
	tfh_charge(a->open, from, t1, copy_cause(a, p), TFH_CERTAIN);
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

static void charge_launch(struct tfh_host_charge *a, int64_t t0, int64_t t1,
			  const struct tfh_piece *p)
{
	struct tfh_inferred *d = &a->device;
	bool launch = tfh_family_launches(p->family);
	bool slow = t1 - t0 > TFH_GAP_NS;

	if (launch)
		d->slow_launches = d->slow_launches << 1 | slow;
	if (launch && slow && tfh_inferred_queue_full(d)) {
		tfh_settle(a->open, true, TFH_CAUSE_NONE);
		tfh_charge(a->open, t0, t1, TFH_CAUSE_NONE, TFH_INFERRED);
		d->since = t1;
	} else {
		tfh_charge(a->open, t0, t1, TFH_CAUSE_HOST_LAUNCH,
			   d->since ? TFH_TENTATIVE : TFH_CERTAIN);
	}
	submitted(d, t1, p);
}

static void charge_sync(struct tfh_host_charge *a, int64_t t0, int64_t t1,
			const struct tfh_piece *p)
{
	struct tfh_inferred *d = &a->device;
	uint64_t upto = tfh_inferred_covered(d, p);

	if (p->family == TFH_FAM_SYNC) {
		waited(a, t0, t1, upto);
	} else if (p->failed && tfh_inferred_outstanding(d)) {
		/* A poll that returns "not ready" shows that the device is busy, and has been since
		 * it got work. */
		tfh_settle(a->open, true, TFH_CAUSE_NONE);
		tfh_charge(a->open, t0, t1, TFH_CAUSE_NONE, TFH_CERTAIN);
	} else {
		tfh_charge(a->open, t0, t1, TFH_CAUSE_HOST_SYNC,
			   d->since ? TFH_TENTATIVE : TFH_CERTAIN);
		if (p->failed || upto < d->launches)
			return;
		tfh_settle(a->open, false, TFH_CAUSE_NONE);
		tfh_inferred_complete(d, upto);
	}
}

/* Charges a pause that is covered `by` what a thread did. */
static void charge_covered(struct tfh_host_charge *a, int64_t t0, int64_t t1,
			   enum tfh_certainty sure, uint32_t thread, enum tfh_covered by)
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
			tfh_charge_gap(a->open, t0, part[i].t1, sure,
				       code ? TFH_GAP_CODE : TFH_GAP_ANY);
		else
			tfh_charge(a->open, t0, part[i].t1, part[i].cause, sure);
}

/* What ranges of an imported trace show of [t0, t1): those of a driving thread, or else of the only
 * other one that ran the program's code, as where XLA computes on threads of its own. */
static enum tfh_covered find_covered(const struct tfh_accounts *accounts, int64_t t0, int64_t t1,
				     uint32_t *thread)
{
	enum tfh_covered by = TFH_COVERED_NOT;

	for (uint32_t i = 0; i < accounts->facts->feed->n_threads && accounts->cover && !by; i++)
		if (accounts->facts->thread[i].drives)
			by = tfh_covered_by(accounts->cover, *thread = i, t0, t1);
	if (by || !accounts->cover)
		return by;
	*thread = tfh_cover_thread(accounts->cover, *thread, t0, t1);
	return tfh_covered_by(accounts->cover, *thread, t0, t1);
}

/* Charges [t0, t1), in which no driving thread was in a call. */
static void charge_no_call(struct tfh_host_charge *a, int64_t t0, int64_t t1,
			   enum tfh_certainty sure)
{
	uint32_t thread = 0;
	enum tfh_covered by = find_covered(a->accounts, t0, t1, &thread);

	if (by == TFH_COVERED_LAUNCH) {
		tfh_charge(a->open, t0, t1, TFH_CAUSE_HOST_LAUNCH, sure);
	} else if (by == TFH_COVERED_EXCHANGE) {
		tfh_charge(a->open, t0, t1, TFH_CAUSE_COMMUNICATION_TRANSFER, TFH_CERTAIN);
	} else {
		charge_covered(a, t0, t1, sure, thread, by);
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
static void charge_exchanges(struct tfh_host_charge *a, int64_t t0, int64_t t1, int64_t exchanges)
{
	double part = waiting_part(a->accounts, t0, t1, exchanges);
	int64_t until, own;

	for (; t0 < t1; t0 = until) {
		enum tfh_cause cause = tfh_exposed_at(a->accounts->exposed, t0, t1, &until);
		own = cause == TFH_CAUSE_NONE ? t0 : t0 + (int64_t)(part * (double)(until - t0));
		tfh_charge(a->open, t0, own, cause, TFH_CERTAIN);
		tfh_charge_gap(a->open, own, until, TFH_CERTAIN, TFH_GAP_OWN);
	}
}

/* Charges an executed call of a job on the CPU. */
static void charge_exec(struct tfh_host_charge *a, int64_t t0, int64_t t1, uint32_t thread)
{
	int64_t until, computes = t0 + tfh_compiles_in(a->accounts, thread, t0, t1);

	if (computes > t0)
		tfh_charge(a->open, t0, computes, TFH_CAUSE_HOST_COMPILE, TFH_CERTAIN);
	for (t0 = computes; t0 < t1; t0 = until) {
		enum tfh_cause cause = tfh_exposed_at(a->accounts->exposed, t0, t1, &until);
		tfh_charge(a->open, t0, until, cause, TFH_CERTAIN);
	}
}

/* Charges a pause in which other threads may have computed or communicated meanwhile: without a
 * device, that is the job's work. */
static void charge_pause(struct tfh_host_charge *a, int64_t t0, int64_t t1, enum tfh_certainty sure)
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
			charge_no_call(a, t0, until, sure);
		else
			tfh_charge(a->open, t0, until,
				   by == TFH_COVERED_EXCHANGE ? TFH_CAUSE_COMMUNICATION_TRANSFER
							      : TFH_CAUSE_NONE,
				   TFH_CERTAIN);
	}
}

/* Charges a short pause. */
static void charge_brief(struct tfh_host_charge *a, int64_t t0, int64_t t1, enum tfh_certainty sure)
{
	struct tfh_share_end part[TFH_CAUSE_COUNT] = {{t1, TFH_CAUSE_HOST_LAUNCH}};
	uint32_t n = a->brief ? tfh_divide(t0, t1, a->brief, part) : 1;

	for (uint32_t i = 0; i < n; t0 = part[i++].t1)
		tfh_charge(a->open, t0, part[i].t1, part[i].cause, sure);
}

void tfh_host_charge_span(void *arg, int64_t t0, int64_t t1, const struct tfh_piece *p)
{
	struct tfh_host_charge *a = arg;
	struct tfh_open_accounts *l = a->open;
	enum tfh_certainty sure = a->device.since ? TFH_TENTATIVE : TFH_CERTAIN;
	enum tfh_cause cause;

	switch (p ? p->activity : TFH_ACTIVITY_GAP) {
	case TFH_ACTIVITY_GAP:
		if (t1 - t0 < TFH_GAP_NS)
			charge_brief(a, t0, t1, sure);
		else
			charge_pause(a, t0, t1, sure);
		return;
	case TFH_ACTIVITY_EXEC:
		cause = tfh_exec_cause(a->accounts, p->saves, p->makes, p->logs);
		if (cause == TFH_CAUSE_HOST_LAUNCH && a->accounts->facts->cpu_only)
			charge_exec(a, t0, t1, p->thread);
		else
			tfh_charge(l, t0, t1, cause, sure);
		break;
	case TFH_ACTIVITY_INPUT:
		tfh_charge(l, t0, t1, TFH_CAUSE_INPUT_UNKNOWN, sure);
		return;
	case TFH_ACTIVITY_OTHER:
		if (p->family == TFH_FAM_EVENT && p->handle)
			tfh_inferred_recorded(&a->device, p->handle);
		tfh_charge(l, t0, t1, tfh_other_cause(p->family, t1 - t0), sure);
		return;
	case TFH_ACTIVITY_LAUNCH:
		charge_launch(a, t0, t1, p);
		break;
	case TFH_ACTIVITY_ALLOC:
		tfh_charge(l, t0, t1, TFH_CAUSE_HOST_ALLOC, sure);
		return;
	case TFH_ACTIVITY_MODULE:
		tfh_charge(l, t0, t1, TFH_CAUSE_HOST_COMPILE, sure);
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
