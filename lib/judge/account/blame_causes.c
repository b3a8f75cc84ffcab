/*
 * What a moment is charged to once it is known which op, call or pause held up the device: the
 * cause of each, and the account's entry.
 */
#include <stdlib.h>

#include "judge/account/blame.h"
#include "judge/chain.h"
#include "judge/copy_causes.h"

void tfh_blame_cause(struct tfh_blame *b, int64_t t0, int64_t t1, enum tfh_cause cause, bool direct)
{
	const struct tfh_facts *facts = b->sl->accounts->facts;

	tfh_account_charge(b->a, tfh_chain_of(facts->feed, facts->process, b->window), t0, t1,
			   cause, direct);
}

enum tfh_cause tfh_cause_of_work(const struct tfh_device_op *o)
{
	switch (o->work) {
	case TFH_W_H2D:
		return o->pageable ? TFH_CAUSE_TRANSFER_H2D_PAGEABLE
				   : TFH_CAUSE_TRANSFER_H2D_PINNED;
	case TFH_W_D2H:
		return TFH_CAUSE_TRANSFER_D2H;
	case TFH_W_D2D:
		return TFH_CAUSE_TRANSFER_D2D;
	case TFH_W_P2P:
		return TFH_CAUSE_TRANSFER_P2P;
	case TFH_W_MANAGED:
		return TFH_CAUSE_TRANSFER_MANAGED;
	case TFH_W_COMM:
		return TFH_CAUSE_COMMUNICATION_TRANSFER;
	default:
		return TFH_CAUSE_NONE; /* another device computes, so the job computes */
	}
}

/* Cause of the time that submitting an op takes. */
enum tfh_cause tfh_cause_of_launch(const struct tfh_slice *sl, const struct tfh_device_op *o)
{
	if (o->span != TFH_NO && sl->span.v[o->span].activity == TFH_ACTIVITY_MODULE)
		return TFH_CAUSE_HOST_COMPILE; /* its first launch loaded it */
	return o->copy ? tfh_cause_of_work(o) : TFH_CAUSE_HOST_LAUNCH;
}

enum tfh_cause tfh_cause_of_copy(const struct tfh_host_span *s)
{
	return tfh_copy_cause(s->dir, s->pageable);
}

/* Whether the main work of the host's window at t had been issued by then. */
static bool after_work(const struct tfh_slice *sl, int64_t t, size_t hint)
{
	size_t w = tfh_window_of(sl->accounts->loops, t, hint), first = sl->w0 ? sl->w0 - 1 : 0;

	return w != SIZE_MAX && w >= first && w < sl->w1 && t >= sl->issued.v[w - first];
}

/* Charges a pause by samples of the thread. */
static void charge_seen(struct tfh_blame *b, int64_t t0, int64_t t1,
			const double share[TFH_CAUSE_COUNT])
{
	struct tfh_share_end part[TFH_CAUSE_COUNT];
	uint32_t n = tfh_divide(t0, t1, share, part);

	for (uint32_t i = 0; i < n; t0 = part[i++].t1)
		tfh_blame_cause(b, t0, part[i].t1, part[i].cause, true);
}

/* Charges [t0, t1) of a thread's pause that began at `from`: the program's own code between calls.
 * `handed`: the part in which it waited for another thread was charged to that thread. */
void tfh_blame_pause(struct tfh_blame *b, uint32_t thread, int64_t from, int64_t t0, int64_t t1,
		     int64_t end, bool handed)
{
	const struct tfh_accounts *accounts = b->sl->accounts;
	enum tfh_cause cause = TFH_CAUSE_HOST_UNKNOWN;
	enum tfh_covered by = TFH_COVERED_NOT;
	const double *brief = end - from < TFH_GAP_NS ? tfh_brief_shares(accounts, thread) : NULL;
	double share[TFH_CAUSE_COUNT];

	if (t1 <= t0)
		return;
	if (brief) {
		charge_seen(b, t0, t1, brief);
		return;
	}
	if (end - from >= TFH_GAP_NS) {
		thread = tfh_cover_thread(accounts->cover, thread, from, end);
		by = tfh_covered_by(accounts->cover, thread, from, end);
	}
	if (end - from < TFH_GAP_NS || by == TFH_COVERED_LAUNCH)
		cause = TFH_CAUSE_HOST_LAUNCH;
	else if (by == TFH_COVERED_EXCHANGE)
		cause = TFH_CAUSE_COMMUNICATION_TRANSFER;
	else if (accounts->facts->consumers && after_work(b->sl, t0, b->window))
		cause = TFH_CAUSE_HOST_CALLBACK;
	else if (by == TFH_COVERED_CODE)
		cause = tfh_cover_code(accounts->cover);
	else if (by == TFH_COVERED_NOT && accounts->facts->consumers &&
		 tfh_pauses_run(accounts->facts))
		cause = TFH_CAUSE_HOST_PYTHON;
	if (cause != TFH_CAUSE_HOST_LAUNCH &&
	    (tfh_cover_causes(accounts, by, thread, from, end, cause, share) ||
	     (by == TFH_COVERED_NOT &&
	      tfh_pause_causes(accounts, thread, t0, t1, handed, cause, share))))
		charge_seen(b, t0, t1, share);
	else
		tfh_blame_cause(b, t0, t1, cause, true);
	if (cause != TFH_CAUSE_HOST_LAUNCH)
		tfh_pauses_count(b->sl->pauses, thread, t0, t1, cause);
}

/* Charges the end of [t0, t1) to host function f, which something may have waited for, back to the
 * function's begin. Returns the end of the remaining time before it. */
int64_t tfh_blame_function(struct tfh_blame *b, uint32_t f, int64_t t0, int64_t t1)
{
	const struct tfh_run_of_function *x = &b->sl->function.v[f];
	int64_t from = tfh_max_ns(t0, x->t0);

	tfh_blame_cause(b, from, t1, TFH_CAUSE_HOST_CALLBACK, true);
	b->sl->called += tfh_max_ns(0, t1 - from);
	return tfh_max_ns(t0, tfh_min_ns(from, t1));
}

/* Finds when the main work of each window had been issued: all ops but those shorter than 1/50 of
 * the largest. What the program does between that and the next get-next are callbacks. */
int tfh_blame_start(struct tfh_slice *sl)
{
	size_t first = sl->w0 ? sl->w0 - 1 : 0;
	int64_t *largest = calloc(sl->w1 - first, sizeof(*largest));
	int rc = largest ? 0 : -ENOMEM;

	sl->issued.n = 0;
	sl->first_op = 0;
	while (!rc && sl->issued.n < sl->w1 - first)
		rc = TFH_PUSH(sl->issued, INT64_MAX);
	for (int turn = 0; turn < 2 && !rc; turn++) {
		for (size_t i = 0; i < sl->op.n; i++) {
			const struct tfh_device_op *o = &sl->op.v[i];
			if (o->work != TFH_W_COMPUTE || o->window < first || o->window >= sl->w1)
				continue;
			int64_t *l = &largest[o->window - first],
				*t = &sl->issued.v[o->window - first];
			if (!turn)
				*l = tfh_max_ns(*l, o->t1 - o->t0);
			else if ((o->t1 - o->t0) * TFH_ACCOUNT_CALLBACK_PART >= *l)
				*t = *t == INT64_MAX ? o->issue1 : tfh_max_ns(*t, o->issue1);
		}
	}
	free(largest);
	return rc;
}
