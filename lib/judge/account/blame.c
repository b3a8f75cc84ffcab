/*
 * Charges every moment of a window in which its critical device does not compute to what caused the
 * end of that moment. From the op that computes next, follows the binding constraint back: to
 * another op, which is charged by its kind while it ran and whose own delay is followed next, or to
 * the host, whose thread is walked back call by call. Compute, causes and the unattributed rest add
 * up to the window exactly. (Binding constraints: the launch-starved, blocking and
 * dependency-stalled gaps of NVIDIA's Megatron-Bridge guide; queue-aware launches: HTA; walking the
 * host's time back: blame shifting of HPCToolkit, made causal.)
 */
#include "judge/account/blame.h"

static void explain(struct tfh_blame *b, uint32_t k, int64_t lo, int64_t hi);

/* The op whose end delayed k longest; TFH_NO: k's launch delayed it longest. */
static uint32_t binding(const struct tfh_slice *sl, const struct tfh_device_op *k, int64_t *end)
{
	uint32_t x = k->prev;
	int64_t issue = k->inner ? INT64_MIN : k->issue0 + sl->device->floor;

	*end = x == TFH_NO ? sl->lane.v[k->lane].past_end : sl->op.v[x].t1;
	if (k->dep != TFH_NO && sl->op.v[k->dep].t1 >= *end) {
		x = k->dep;
		*end = sl->op.v[x].t1;
	}
	/* A long call, such as the first launch of a graph, submits the op at its end. */
	if (!k->inner && k->issue1 - k->issue0 > tfh_max_ns(sl->device->slow, sl->device->tau) &&
	    k->t0 + sl->device->floor >= k->issue1)
		issue = tfh_max_ns(issue, k->issue1);
	if (k->issue0 > INT64_MIN && issue > *end) {
		*end = INT64_MIN;
		return TFH_NO;
	}
	return x;
}

/* The participant of collective o on another device of this process that started last, if its start
 * is when the waiting ended. TFH_NO: it is in another process, or was not found. */
static uint32_t last_to_come(const struct tfh_slice *sl, const struct tfh_device_op *o,
			     int64_t turn)
{
	int64_t near = sl->device->slow + TFH_GAP_NS;

	for (uint32_t i = (uint32_t)(o - sl->op.v) + 1; i < sl->op.n; i++) {
		const struct tfh_device_op *x = &sl->op.v[i];
		if (x->t0 > turn + near)
			break;
		if (x->work == TFH_W_COMM && x->device != o->device && x->t0 >= turn - near &&
		    x->t1 <= o->t1 + near && x->t1 >= o->t1 - near)
			return i;
	}
	return TFH_NO;
}

/* When the device stopped computing before op o; if not in memory, before these windows. */
static int64_t idle_since(const struct tfh_blame *b, const struct tfh_device_op *o)
{
	const struct tfh_slice *sl = b->sl;
	uint32_t i = (uint32_t)(o - sl->op.v),
		 last = i > TFH_ACCOUNT_NEARBY ? i - TFH_ACCOUNT_NEARBY : 0;

	while (i-- > last)
		if (sl->op.v[i].device == o->device && sl->op.v[i].work == TFH_W_COMPUTE)
			return sl->op.v[i].t1;
	return sl->device->win.v[b->window ? b->window - 1 : 0].from;
}

/*
 * Charges [t0, t1), in which another device computes (op k) while the critical one waits for it.
 * This time is computing of the job. But if k had begun earlier, both devices would have computed
 * side by side. So for as long as k's device was idle before, the time is charged to what delayed
 * k: to computing if k had to wait for the critical device (stages of a pipeline), and to the wait
 * if only k's thread waited for that device before it launched k (takes_turns()).
 */
static void charge_elsewhere(struct tfh_blame *b, uint32_t k, int64_t t0, int64_t t1)
{
	const struct tfh_device_op *o = &b->sl->op.v[k];
	int64_t since = idle_since(b, o), late = 0;

	if (since < o->t0 && b->depth <= TFH_ACCOUNT_CHAIN)
		late = tfh_min_ns(t1 - t0, o->t0 - since);
	tfh_blame_cause(b, t0, t1 - late, TFH_CAUSE_NONE, !o->inferred);
	uint32_t before = b->other_op;
	bool turns = b->turns;
	b->other_op = k;
	b->turns = false;
	b->depth++;
	explain(b, k, o->t0 - late, o->t0);
	b->depth--;
	b->other_op = before;
	b->turns = turns;
}

/*
 * Whether the devices take turns because of wait s: the thread that launched op `late` on another
 * device than it waited for did so after the wait, and in between sent that device nothing that the
 * wait could have been needed for.
 */
static bool takes_turns(const struct tfh_slice *sl, uint32_t late, const struct tfh_host_span *s)
{
	const struct tfh_device_op *k = late == TFH_NO ? NULL : &sl->op.v[late];
	uint32_t i = late > TFH_ACCOUNT_NEARBY ? late - TFH_ACCOUNT_NEARBY : 0;

	if (!k || k->thread != s->thread || k->issue0 < s->t1 ||
	    k->device == sl->op.v[s->op].device)
		return false;
	for (; i < late; i++) {
		const struct tfh_device_op *x = &sl->op.v[i];
		bool inside =
			x->work == TFH_W_COMPUTE || x->work == TFH_W_D2H || x->work == TFH_W_D2D;
		if (x->device == k->device && x->issue0 >= s->t1 && !inside)
			return false;
	}
	return true;
}

/* Charges [t0, t1), in which a collective waited for its last participant: to that wait or, if the
 * participant is in this process, to what delayed it. */
static void charge_meeting(struct tfh_blame *b, const struct tfh_device_op *o, int64_t t0,
			   int64_t t1, int64_t turn)
{
	uint32_t x =
		t1 > t0 && b->depth <= TFH_ACCOUNT_CHAIN ? last_to_come(b->sl, o, turn) : TFH_NO;

	if (x == TFH_NO) {
		tfh_blame_cause(b, t0, t1, TFH_CAUSE_COMMUNICATION_JITTER, true);
		return;
	}
	int64_t came = tfh_max_ns(t0, tfh_min_ns(t1, b->sl->op.v[x].t0));
	tfh_blame_cause(b, came, t1, TFH_CAUSE_COMMUNICATION_JITTER, true);
	b->depth++;
	explain(b, x, t0, came);
	b->depth--;
}

/* Whether a copy began when the kernels of another stream had ended, only because its stream waits
 * for an event after them: it had been issued before. */
static bool is_held(const struct tfh_slice *sl, const struct tfh_device_op *o)
{
	const struct tfh_device_op *d = o->dep == TFH_NO || o->inferred ? NULL : &sl->op.v[o->dep];

	return d && d->work == TFH_W_COMPUTE && d->lane != o->lane && o->issue1 < d->t1 &&
	       o->ready <= d->t1;
}

/* Charges [t0, t1), in which op o ran. The time by which a collective exceeds its shortest
 * participant comes first and is a wait for the last one. */
static void charge_op(struct tfh_blame *b, const struct tfh_device_op *o, int64_t t0, int64_t t1)
{
	if (t1 <= t0)
		return;
	if (o->work == TFH_W_COMPUTE && o->device != b->sl->device->critical && !b->turns) {
		charge_elsewhere(b, (uint32_t)(o - b->sl->op.v), t0, t1);
		return;
	}
	if (o->work == TFH_W_COMM && o->shared >= 0) {
		int64_t turn = tfh_max_ns(o->t0, o->t1 - o->shared);
		charge_meeting(b, o, t0, tfh_min_ns(t1, turn), turn);
		t0 = tfh_max_ns(t0, turn);
	}
	bool fallback = o->span != TFH_NO && b->sl->span.v[o->span].fallback;
	enum tfh_cause cause = fallback ? TFH_CAUSE_TRANSFER_FALLBACK : tfh_cause_of_work(o);
	if (cause == TFH_CAUSE_NONE && b->turns) {
		cause = TFH_CAUSE_HOST_SYNC;
		b->sl->turns += t1 - t0;
	}
	if (cause == TFH_CAUSE_TRANSFER_H2D_PINNED && is_held(b->sl, o))
		b->sl->held += t1 - t0;
	tfh_blame_cause(b, t0, t1, cause, !o->inferred);
}

/* Charges [t0, t1), from the end of an op until the thread that waited for it continues. A wake-up
 * takes a moment; after that the thread is ready and, on a crowded machine, waits for a CPU. */
static void charge_late(struct tfh_blame *b, int64_t ended, int64_t t0, int64_t t1)
{
	int64_t ready = b->sl->accounts->facts->crowded ? ended + TFH_WOKEN_NS : t1;

	if (t1 <= t0)
		return;
	ready = tfh_max_ns(t0, tfh_min_ns(t1, ready));
	tfh_blame_cause(b, t0, ready, TFH_CAUSE_HOST_SYNC, true);
	tfh_blame_cause(b, ready, t1, TFH_CAUSE_HOST_CONTENTION, true);
}

/* Charges the part of [t0, t1) before the end of the op that s waited for: to that op, or to what
 * delayed it. */
static void charge_waited(struct tfh_blame *b, const struct tfh_host_span *s, int64_t t0,
			  int64_t t1)
{
	const struct tfh_device_op *o = &b->sl->op.v[s->op];
	bool turns = b->turns;
	uint32_t other_op = b->other_op;

	b->turns = turns || takes_turns(b->sl, b->other_op, s) || takes_turns(b->sl, b->late_op, s);
	charge_op(b, o, tfh_max_ns(t0, o->t0), tfh_min_ns(t1, o->t1));
	b->depth++;
	explain(b, s->op, t0, tfh_max_ns(t0, tfh_min_ns(t1, o->t0)));
	b->depth--;
	b->turns = turns;
	b->other_op = other_op;
}

/* Charges [t0, t1) of a wait on an idle device. Until the op it waited for ended, the time is
 * charged to that op, or to what delayed it; after that, to the wake-up of the thread. */
static void charge_wait(struct tfh_blame *b, const struct tfh_host_span *s, int64_t t0, int64_t t1)
{
	const struct tfh_device_op *o = s->op == TFH_NO ? NULL : &b->sl->op.v[s->op];

	uint32_t f = tfh_function_before(b->sl, s->t1);
	if (f != TFH_NO && (!o || b->sl->function.v[f].t0 >= o->t1))
		t1 = tfh_blame_function(b, f, t0, t1);
	bool alone = !o || (o->t1 > s->t1 && !s->spin) || b->depth > TFH_ACCOUNT_CHAIN;
	tfh_pauses_count(b->sl->pauses, s->thread, alone ? t0 : tfh_max_ns(t0, o->t1), t1,
			 TFH_CAUSE_HOST_SYNC);
	if (alone) {
		tfh_blame_cause(b, t0, t1, TFH_CAUSE_HOST_SYNC, true);
		return;
	}
	if (s->spin) /* the thread sleeps between two polls */
		tfh_blame_cause(b, tfh_max_ns(t0, o->t1), t1, TFH_CAUSE_HOST_SYNC, true);
	else
		charge_late(b, tfh_max_ns(o->t1, s->t0), tfh_max_ns(t0, o->t1), t1);
	if (o->t1 > t0)
		charge_waited(b, s, t0, t1);
}

/* Charges [t0, t1) of a copying call on a device that does not compute. While its own op had to
 * wait for another op, the time is charged to that one, or to what delayed it. */
static void charge_copy(struct tfh_blame *b, const struct tfh_host_span *s, int64_t t0, int64_t t1)
{
	const struct tfh_slice *sl = b->sl;
	int64_t end = INT64_MIN;
	uint32_t x = TFH_NO;

	int64_t done = tfh_woken_from(sl, s);
	if (done < INT64_MAX) {
		charge_late(b, done, tfh_max_ns(t0, done), t1);
		tfh_pauses_count(b->sl->pauses, s->thread, tfh_max_ns(t0, done), t1,
				 TFH_CAUSE_HOST_SYNC);
		t1 = tfh_max_ns(t0, tfh_min_ns(t1, done));
	}
	if (s->op != TFH_NO && b->depth <= TFH_ACCOUNT_CHAIN)
		x = binding(sl, &sl->op.v[s->op], &end);
	if (x == TFH_NO || end <= t0) {
		tfh_blame_cause(b, t0, t1, tfh_cause_of_copy(s), true);
		return;
	}
	tfh_blame_cause(b, tfh_max_ns(t0, end), t1, tfh_cause_of_copy(s), true);
	charge_op(b, &sl->op.v[x], tfh_max_ns(t0, sl->op.v[x].t0), tfh_min_ns(t1, end));
	b->depth++;
	explain(b, x, t0, tfh_min_ns(t1, sl->op.v[x].t0));
	b->depth--;
}

static enum tfh_cause call_cause(const struct tfh_blame *b, const struct tfh_host_span *s)
{
	switch (s->activity) {
	case TFH_ACTIVITY_EXEC:
		return tfh_exec_cause(b->sl->accounts, s->saves, s->makes, s->logs);
	case TFH_ACTIVITY_INPUT:
		return TFH_CAUSE_INPUT_UNKNOWN;
	case TFH_ACTIVITY_LAUNCH: /* coalesced copies would need fewer calls */
		return s->family == TFH_FAM_COPY ? tfh_cause_of_copy(s) : TFH_CAUSE_HOST_LAUNCH;
	case TFH_ACTIVITY_ALLOC:
		return TFH_CAUSE_HOST_ALLOC;
	case TFH_ACTIVITY_MODULE:
		return TFH_CAUSE_HOST_COMPILE;
	default:
		return tfh_other_cause(s->family, s->t1 - s->t0);
	}
}

static void charge_gap(struct tfh_blame *b, const struct tfh_host_span *s, int64_t t0, int64_t t1)
{
	if (s->spin)
		charge_wait(b, s, t0, t1);
	else if (s->copying)
		tfh_blame_cause(b, t0, t1, tfh_cause_of_copy(s - 1), true);
	else if (s->launching)
		tfh_blame_cause(b, t0, t1, TFH_CAUSE_HOST_LAUNCH, true);
	else
		tfh_blame_pause(b, s->thread, s->t0, t0, t1, s->t1, false);
}

static void charge_span(struct tfh_blame *b, const struct tfh_host_span *s, int64_t t0, int64_t t1)
{
	/* Time that the recorder itself takes between two calls stays unattributed. */
	if (s->activity == TFH_ACTIVITY_GAP)
		t0 = tfh_max_ns(t0, tfh_min_ns(t1, s->t0 + b->sl->device->own));
	if (s->fallback) {
		tfh_blame_cause(b, t0, t1, TFH_CAUSE_TRANSFER_FALLBACK, true);
	} else if (s->activity == TFH_ACTIVITY_GAP) {
		charge_gap(b, s, t0, t1);
	} else if (s->activity == TFH_ACTIVITY_COPY) {
		charge_copy(b, s, t0, t1);
	} else if (s->activity == TFH_ACTIVITY_SYNC ||
		   (s->activity == TFH_ACTIVITY_LAUNCH && s->full)) {
		charge_wait(b, s, t0, t1);
	} else {
		enum tfh_cause cause = call_cause(b, s);
		tfh_blame_cause(b, t0, t1, cause, true);
		if (s->activity == TFH_ACTIVITY_INPUT || s->activity == TFH_ACTIVITY_ALLOC)
			tfh_pauses_count(b->sl->pauses, s->thread, t0, t1, cause);
	}
}

/* If the thread waited, up to hi, for an op that was already running when the wait began, the op
 * delayed the host, whatever the thread did meanwhile. Charges all of [lo, hi) in that case and
 * returns true. */
static bool held_by(struct tfh_blame *b, const struct tfh_host_span *s, int64_t lo, int64_t hi)
{
	const struct tfh_device_op *o = s->op == TFH_NO ? NULL : &b->sl->op.v[s->op];

	if (s->activity != TFH_ACTIVITY_SYNC || s->spin || !o || b->depth > TFH_ACCOUNT_CHAIN ||
	    s->t0 <= lo || o->t0 >= s->t0 || o->t1 > hi || o->t1 - s->t0 < TFH_GAP_NS ||
	    tfh_function_before(b->sl, s->t1) != TFH_NO)
		return false;
	charge_late(b, o->t1, o->t1, hi);
	charge_waited(b, s, lo, o->t1);
	return true;
}

/* Charges [t0, t1) of span s, the part after the call that its thread waited for. */
static void charge_after(struct tfh_blame *b, const struct tfh_host_span *s, int64_t t0, int64_t t1)
{
	if (t1 <= t0)
		return;
	if (s->library != TFH_CAUSE_NONE)
		tfh_blame_cause(b, t0, t1, s->library, true);
	else if (s->activity == TFH_ACTIVITY_EXEC)
		charge_span(b, s, t0, t1);
	else
		tfh_blame_pause(b, s->thread, b->sl->span.v[s->from].t1, t0, t1, s->t1, true);
}

/* The host was late at hi: charges what its thread did, back to lo; before a hand-over, what the
 * thread that it waited for did. */
static void walk_back(struct tfh_blame *b, uint32_t thread, int64_t lo, int64_t hi)
{
	const struct tfh_slice *sl = b->sl;
	uint32_t at = tfh_span_at(sl, thread, hi);
	/* Visits each call at most twice: in a malformed trace, calls of zero length at the same
	 * time on several threads could form a cycle. */
	size_t left = 2 * sl->span.n + 2;

	for (; hi > lo && left; left--) {
		if (at == TFH_NO) { /* before this thread's first call */
			at = tfh_last_call(sl, hi, thread);
			int64_t t = at == TFH_NO ? lo : tfh_max_ns(lo, sl->span.v[at].t1);
			tfh_blame_pause(b, thread, t, t, hi, hi, false);
			if (at == TFH_NO || t == lo)
				return;
			thread = sl->span.v[at].thread;
			hi = t;
			continue;
		}
		const struct tfh_host_span *s = &sl->span.v[at];
		if (s->asked != TFH_NO) {
			at = s->asked;
			thread = sl->span.v[at].thread;
			continue;
		}
		if (s->from != TFH_NO) {
			const struct tfh_host_span *q = &sl->span.v[s->from];
			int64_t t = tfh_max_ns(lo, q->t1);
			charge_after(b, s, t, hi);
			hi = tfh_min_ns(hi, t);
			thread = q->thread;
			at = s->from;
			if (q->t1 > hi) /* lo is after the hand-over */
				return;
			continue;
		}
		/* After this thread's last call. */
		if (s->t1 < hi)
			tfh_blame_pause(b, thread, s->t1, tfh_max_ns(lo, s->t1), hi, hi, false);
		hi = tfh_min_ns(hi, s->t1);
		if (held_by(b, s, lo, hi))
			return;
		charge_span(b, s, tfh_max_ns(lo, s->t0), hi);
		hi = tfh_min_ns(hi, s->t0);
		at = at > sl->thread_span[thread] ? at - 1 : TFH_NO;
	}
	if (hi > lo)
		tfh_blame_cause(b, lo, hi, TFH_CAUSE_HOST_UNKNOWN, false);
}

/* Charges [lo, hi), in which op k could have run, to other processes that use its device, except
 * while ops of this process ran there. */
static void charge_contention(struct tfh_blame *b, uint32_t k, int64_t lo, int64_t hi)
{
	const struct tfh_slice *sl = b->sl;
	uint32_t i = k > TFH_ACCOUNT_NEARBY ? k - TFH_ACCOUNT_NEARBY : 0;

	if (!sl->device->contended || hi - lo < TFH_ACCOUNT_HELD_NS)
		return;
	for (; i < k && lo < hi; i++) {
		const struct tfh_device_op *o = &sl->op.v[i];
		if (o->device != sl->op.v[k].device || o->t1 <= lo)
			continue;
		if (o->t0 > lo)
			tfh_blame_cause(b, lo, tfh_min_ns(o->t0, hi), TFH_CAUSE_COMPUTE_CONTENTION,
					false);
		lo = o->t1;
	}
	if (hi > lo)
		tfh_blame_cause(b, lo, hi, TFH_CAUSE_COMPUTE_CONTENTION, false);
}

/* Charges [lo, hi), in which op k could have run, but nothing known shows why it did not. */
static void unexplained(struct tfh_blame *b, uint32_t k, int64_t lo, int64_t hi)
{
	uint32_t thread;

	if (b->depth <= TFH_ACCOUNT_CHAIN && !b->sl->device->contended) {
		int64_t hidden = tfh_hidden_stall(b->sl, k, lo, hi, &thread);
		b->depth++;
		walk_back(b, thread, hi - hidden, hi);
		b->depth--;
		hi -= hidden;
	}
	charge_contention(b, k, lo, hi);
}

/* Charges [lo, hi): the late launch of op k delayed its start until hi. */
static void late_launch(struct tfh_blame *b, const struct tfh_device_op *k, int64_t lo, int64_t hi)
{
	const struct tfh_slice *sl = b->sl;
	int64_t usual =
		tfh_max_ns(k->issue1, k->issue0 + tfh_max_ns(sl->device->slow, sl->device->tau));

	/* If the op started later than usual after its call, something else delayed it. */
	int64_t from = tfh_max_ns(lo, tfh_min_ns(hi, usual));
	if (hi - from > sl->device->tau) {
		if (k->outside)
			tfh_blame_cause(b, from, hi, TFH_CAUSE_HOST_UNKNOWN, false);
		else
			unexplained(b, (uint32_t)(k - sl->op.v), from, hi);
		hi = from;
	}
	/* For consecutive launches, the pause before the call, and the recorder's own time in it,
	 * precede [lo, hi). */
	int64_t own = lo > k->issue0 ? tfh_min_ns(sl->device->own, hi - lo) : 0;
	tfh_blame_cause(b, tfh_max_ns(lo, k->issue0) + own, hi, tfh_cause_of_launch(sl, k), true);
	uint32_t before = b->late_op;
	b->late_op = k->work == TFH_W_COMPUTE ? (uint32_t)(k - sl->op.v) : TFH_NO;
	walk_back(b, k->thread, lo, tfh_min_ns(hi, k->issue0));
	b->late_op = before;
}

/* Tier B, where dependencies are unknown: charges copies and collectives while they run, the last
 * one first, and otherwise what the threads did at that time. */
static void exposed(struct tfh_blame *b, uint32_t k, int64_t lo, int64_t hi)
{
	struct tfh_slice *sl = b->sl;
	uint32_t n = tfh_op_ended(sl, hi);

	for (; n > 0 && hi > lo; n--) {
		const struct tfh_device_op *o = &sl->op.v[sl->op_ends.v[n - 1]];
		if (o->t1 <= lo)
			break;
		if (o->t0 >= hi || sl->op_ends.v[n - 1] == k)
			continue;
		if (o->t1 < hi)
			walk_back(b, sl->op.v[k].thread, o->t1, hi);
		charge_op(b, o, tfh_max_ns(lo, o->t0), tfh_min_ns(hi, o->t1));
		hi = tfh_min_ns(hi, o->t0);
	}
	if (hi > lo)
		walk_back(b, sl->op.v[k].thread, lo, hi);
}

/* Charges the time between the end of the op that k followed and k's own start. */
static void device_gap(struct tfh_blame *b, const struct tfh_device_op *k, int64_t lo, int64_t hi)
{
	if (k->inner)
		tfh_blame_cause(b, lo, hi, TFH_CAUSE_NONE, true); /* a running graph computes */
	else if (k->inferred || hi - tfh_max_ns(lo, tfh_min_ns(hi, k->issue1)) <=
					tfh_max_ns(b->sl->device->tau, TFH_ACCOUNT_SHORT_GAP_NS))
		tfh_blame_cause(b, lo, hi, tfh_cause_of_launch(b->sl, k),
				true); /* its call still ran */
	else if (k->outside)
		tfh_blame_cause(b, lo, hi, TFH_CAUSE_HOST_UNKNOWN, false);
	else if (k->function != TFH_NO) /* the driver's thread woke up late for it */
		tfh_blame_cause(b, lo, hi, TFH_CAUSE_HOST_CALLBACK, false);
	else
		unexplained(b, (uint32_t)(k - b->sl->op.v), lo, hi);
}

/* Charges [lo, hi), which ended when op k started at hi. */
static void explain(struct tfh_blame *b, uint32_t k, int64_t lo, int64_t hi)
{
	const struct tfh_slice *sl = b->sl;

	while (hi > lo) {
		const struct tfh_device_op *o = &sl->op.v[k];
		int64_t end;
		bool follows = o->prev != TFH_NO && hi - sl->op.v[o->prev].t1 <= sl->device->tau;
		if (o->issue0 == INT64_MIN && !follows) {
			exposed(b, k, lo, hi);
			return;
		}
		if (o->function != TFH_NO) {
			hi = tfh_blame_function(b, o->function, lo, hi);
			if (hi <= lo)
				return;
		}
		uint32_t x = binding(sl, o, &end);
		if (end == INT64_MIN) {
			late_launch(b, o, lo, hi);
			return;
		}
		device_gap(b, o, tfh_max_ns(lo, tfh_min_ns(end, hi)), hi);
		if (x == TFH_NO)
			return;
		hi = tfh_min_ns(hi, end);
		charge_op(b, &sl->op.v[x], tfh_max_ns(lo, sl->op.v[x].t0), hi);
		hi = tfh_min_ns(hi, sl->op.v[x].t0);
		if (sl->op.v[x].device == sl->device->critical)
			b->other_op = TFH_NO; /* what is explained needs that device's result */
		k = x;
	}
}

static bool computes(const struct tfh_device_op *o, uint8_t device)
{
	return o->work == TFH_W_COMPUTE && o->device == device;
}

/* The thread whose call ended last before t. */
static uint32_t last_thread(const struct tfh_slice *sl, int64_t t)
{
	uint32_t at = tfh_last_call(sl, t, TFH_NO);

	return at == TFH_NO ? 0 : sl->span.v[at].thread;
}

void tfh_blame_window(struct tfh_slice *sl, size_t window, struct tfh_account *a)
{
	const struct tfh_device_window *w = &sl->device->win.v[window];
	struct tfh_blame b = {
		.sl = sl, .a = a, .window = window, .other_op = TFH_NO, .late_op = TFH_NO};
	int64_t t = w->from;

	/* Windows come in order: ops that ended before this one also ended before the next. */
	while (sl->first_op < sl->op.n && sl->op.v[sl->first_op].t1 <= t)
		sl->first_op++;
	for (uint32_t i = (uint32_t)sl->first_op; i < sl->op.n && t < w->to; i++) {
		const struct tfh_device_op *o = &sl->op.v[i];
		if (!computes(o, sl->device->critical) || o->t1 <= t)
			continue;
		if (o->t0 >= w->to)
			break;
		if (o->t0 > t) {
			if (sl->accounts->use[window].tier == 'A')
				explain(&b, i, t, o->t0);
			else
				exposed(&b, i, t, o->t0);
			t = o->t0;
		}
		tfh_blame_cause(&b, t, tfh_min_ns(o->t1, w->to), TFH_CAUSE_NONE, true);
		t = tfh_min_ns(o->t1, w->to);
	}
	if (t < w->to) { /* the window ends with an op that does not compute */
		uint32_t n = tfh_op_ended(sl, w->to), x = n ? sl->op_ends.v[n - 1] : TFH_NO;
		if (n && sl->op.v[x].t1 == w->to) {
			charge_op(&b, &sl->op.v[x], tfh_max_ns(t, sl->op.v[x].t0), w->to);
			explain(&b, x, t, tfh_min_ns(w->to, sl->op.v[x].t0));
		} else {
			walk_back(&b, last_thread(sl, w->to), t, w->to);
		}
	}
}
