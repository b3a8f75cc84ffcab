/*
 * Finds what each op had to wait for: the previous op in its stream, ops before the events that its
 * stream waits for, and the call that issued it. Event records and waits are paired in order of the
 * calls, as handles are reused (CUDA programming guide, events). If none of these explains an op's
 * start, looks among the ops that ended just before: the legacy default stream, memory frees of
 * allocators, and events that were not recorded act in that way.
 *
 * An op only ever depends on an op that started before it, with a lower index: otherwise ops that
 * take no time could wait for each other in a circle.
 */
#include <stdlib.h>

#include "base/bisect.h"
#include "base/hash.h"
#include "judge/account/device.h"

/* Calls that order streams, and issued ops, sorted by time. */
struct event_order {
	int64_t t;
	uint64_t handle; /* the event; DRAIN: lane of the stream that is waited for */
	uint32_t index;	 /* the op, the stream's lane, or the host's span */
	uint8_t what;	 /* enum */
};
enum { RECORD, WAIT, SYNC, DRAIN, ISSUE };

/* An event that was recorded while the ops in memory were issued. */
struct event {
	uint64_t handle;      /* 0: free slot */
	uint32_t op, compute; /* last op before the event; last one that computes */
};

struct pairing {
	struct tfh_slice *sl;
	TFH_VEC(struct event_order) order;
	size_t records;
	struct event *event; /* hash table, open addressing */
	size_t events;	     /* slots, a power of two */
};

/* Learns which device stream a host stream handle is, from an op that was issued into it. */
static int learn_stream(struct tfh_slice *sl, uint32_t host, uint32_t lane)
{
	const struct tfh_stream_name name = {host, lane, sl->lane.v[lane].device};

	return tfh_stream_known(sl->stream.v, sl->stream.n, &name) ? 0 : TFH_PUSH(sl->stream, name);
}

static uint32_t lane_named(const struct tfh_slice *sl, uint32_t host)
{
	for (size_t i = 0; i < sl->stream.n; i++)
		if (sl->stream.v[i].host == host)
			return sl->stream.v[i].lane;
	return TFH_NO;
}

static int by_op_end(const void *a, const void *b, void *ops)
{
	const struct tfh_device_op *o = ops, *x = &o[*(const uint32_t *)a],
				   *y = &o[*(const uint32_t *)b];

	return x->t1 != y->t1 ? (x->t1 < y->t1 ? -1 : 1) : (x < y ? -1 : x > y);
}

int tfh_find_issuers(struct tfh_slice *sl)
{
	int rc = 0;

	sl->op_ends.n = sl->stream.n = 0;
	for (uint32_t i = 0; i < sl->op.n && !rc; i++) {
		sl->op.v[i].prev = sl->op.v[i].dep = sl->op.v[i].span = TFH_NO;
		sl->op.v[i].depc = sl->op.v[i].function = TFH_NO;
		sl->op.v[i].inferred = sl->op.v[i].outside = false;
		rc = TFH_PUSH(sl->op_ends, i);
	}
	if (!rc)
		tfh_sort(sl->op_ends.v, sl->op_ends.n, sizeof(*sl->op_ends.v), by_op_end, sl->op.v);

	for (size_t i = 0; i < sl->op.n && !rc; i++) {
		struct tfh_device_op *o = &sl->op.v[i];
		if (o->issue0 == INT64_MIN)
			continue;
		o->span = tfh_span_at(sl, o->thread, o->issue0 + 1);
		if (o->span == TFH_NO)
			continue;
		const struct tfh_host_span *s = &sl->span.v[o->span];
		if (s->activity == TFH_ACTIVITY_GAP || s->t0 > o->issue0 || s->t1 <= o->issue0)
			o->span = TFH_NO;
		else if (!o->graph)
			rc = learn_stream(sl, s->stream, o->lane);
		/* Pages moved by a prefetch are not a copy that the program requested. */
		if (s->family == TFH_FAM_MANAGED && o->copy)
			o->work = TFH_W_MANAGED;
	}
	return rc;
}

static int by_time(const void *a, const void *b, void *arg)
{
	(void)arg;
	const struct event_order *x = a, *y = b;

	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int gather(struct pairing *p)
{
	const struct tfh_slice *sl = p->sl;
	int rc = 0;

	for (size_t i = 0; i < sl->call.n && !rc; i++) {
		const struct tfh_piece *c = &sl->call.v[i];
		struct event_order o = {.t = c->t0};
		bool record = tfh_piece_records(c);
		bool polled = c->family == TFH_FAM_QUERY && !c->failed;
		bool waits = c->family == TFH_FAM_SYNC || polled;
		bool sync = waits && c->handle && !c->stream, drain = waits && c->stream;
		bool wait = c->family == TFH_FAM_STREAM_WAIT && c->handle;
		if (!record && !sync && !drain && !wait)
			continue;
		p->records += record;
		o.what = record ? RECORD : sync ? SYNC : drain ? DRAIN : WAIT;
		o.index = sync || drain ? tfh_span_at(sl, c->thread, c->t0 + 1)
					: lane_named(sl, c->stream);
		o.handle = drain ? lane_named(sl, c->stream) : c->handle;
		if (o.index != TFH_NO && o.handle != TFH_NO)
			rc = TFH_PUSH(p->order, o);
	}
	for (uint32_t i = 0; i < sl->op.n && !rc; i++) {
		struct event_order o = {.t = sl->op.v[i].issue0, .index = i, .what = ISSUE};
		if (o.t > INT64_MIN)
			rc = TFH_PUSH(p->order, o);
	}
	tfh_sort(p->order.v, p->order.n, sizeof(*p->order.v), by_time, NULL);
	return rc;
}

static uint32_t later(const struct tfh_slice *sl, uint32_t a, uint32_t b)
{
	if (a == TFH_NO || b == TFH_NO)
		return a == TFH_NO ? b : a;
	return sl->op.v[a].t1 >= sl->op.v[b].t1 ? a : b;
}

static uint32_t computing(const struct tfh_slice *sl, uint32_t op)
{
	return op != TFH_NO && sl->op.v[op].work == TFH_W_COMPUTE ? op : TFH_NO;
}

static int make_events(struct pairing *p)
{
	for (p->events = 16; p->events < 2 * p->records;)
		p->events *= 2;
	p->event = calloc(p->events, sizeof(*p->event));
	return p->event ? 0 : -ENOMEM;
}

/* The slot of an event; a free slot if it was not recorded while these ops were issued. */
static struct event *event_of(const struct pairing *p, uint64_t handle)
{
	size_t at = tfh_hash_u64(handle) & (p->events - 1);

	while (p->event[at].handle && p->event[at].handle != handle)
		at = (at + 1) & (p->events - 1);
	return &p->event[at];
}

/* An op is issued into its stream, after what the stream waits for. */
static void pair_op(struct tfh_slice *sl, uint32_t op)
{
	struct tfh_device_op *o = &sl->op.v[op];
	struct tfh_lane *l = &sl->lane.v[o->lane];

	if (l->wait < op)
		o->dep = l->wait;
	if (l->waitc < op)
		o->depc = l->waitc;
	o->outside = l->outside;
	l->outside = false;
	l->wait = l->waitc = TFH_NO;
	l->last = op;
}

/* An event is recorded in a stream, or a stream waits for one. */
static void pair_event(struct pairing *p, const struct event_order *o)
{
	struct tfh_slice *sl = p->sl;
	struct tfh_lane *l = &sl->lane.v[o->index];
	struct event *e = event_of(p, o->handle);

	if (o->what == RECORD) {
		e->handle = o->handle;
		e->op = later(sl, l->last, l->wait);
		e->compute = later(sl, computing(sl, l->last), l->waitc);
		return;
	}
	if (e->handle) {
		l->wait = later(sl, l->wait, e->op);
		l->waitc = later(sl, l->waitc, e->compute);
	}
	l->outside |= !tfh_handles_has(&sl->accounts->facts->recorded, o->handle);
}

/* The host waits for an event, or for a stream. */
static void pair_wait(struct pairing *p, const struct event_order *o)
{
	struct tfh_slice *sl = p->sl;

	if (o->what == SYNC) {
		const struct event *e = event_of(p, o->handle);
		if (e->handle && e->op != TFH_NO)
			sl->span.v[o->index].op = e->op;
		return;
	}
	const struct tfh_lane *l = &sl->lane.v[o->handle];
	if (l->wait != TFH_NO)
		sl->span.v[o->index].op = later(sl, l->last, l->wait);
}

/* Pairs event records and waits, and finds for each op what its stream waited for.
 *
 * `outside`: the stream waits for something that this process did not record: a value written by
 * the host, a network card or another device (cuStreamWaitValue32), or an event of another process.
 * Whether that delayed anything shows at the next op. An event recorded before these ops were
 * issued has long completed.
 *
 * Waits that no op followed yet are inherited: whoever waits for the stream, or for an event
 * recorded in it, waits for the same. */
static void pair(struct pairing *p)
{
	struct tfh_slice *sl = p->sl;

	for (size_t i = 0; i < sl->lane.n; i++) {
		sl->lane.v[i].last = sl->lane.v[i].wait = sl->lane.v[i].waitc = TFH_NO;
		sl->lane.v[i].outside = false;
	}
	for (size_t i = 0; i < p->order.n; i++) {
		const struct event_order *o = &p->order.v[i];
		switch (o->what) {
		case RECORD:
		case WAIT:
			pair_event(p, o);
			break;
		case SYNC:
		case DRAIN:
			pair_wait(p, o);
			break;
		default:
			pair_op(sl, o->index);
		}
	}
}

/* Sets the previous op of op i in its stream. Stream order is the order of starts; a graph's nodes
 * follow the graph's launch. Ops come in order. */
static void chain(struct tfh_slice *sl, uint32_t i)
{
	struct tfh_device_op *o = &sl->op.v[i];
	struct tfh_lane *l = &sl->lane.v[o->lane];

	o->prev = l->last;
	if (o->prev != TFH_NO && sl->op.v[o->prev].t1 > o->t0 && !o->graph)
		o->prev =
			sl->op.v[o->prev].prev; /* they overlap, so it did not wait for that one */
	o->inner = o->graph && l->last != TFH_NO && sl->op.v[l->last].correlation == o->correlation;
	if (l->last == TFH_NO || sl->op.v[l->last].t1 <= o->t1)
		l->last = i;
}

/* Number of ops that ended at or before t. */
uint32_t tfh_op_ended(const struct tfh_slice *sl, int64_t t)
{
	return (uint32_t)TFH_BISECT(i, 0, sl->op_ends.n, sl->op.v[sl->op_ends.v[i]].t1 <= t);
}

static int64_t known_ready(const struct tfh_slice *sl, const struct tfh_device_op *o)
{
	int64_t t = sl->lane.v[o->lane].past_end;

	if (o->prev != TFH_NO)
		t = sl->op.v[o->prev].t1;
	if (t > INT64_MIN && !o->inner)
		t += sl->device->next;
	if (o->dep != TFH_NO && sl->op.v[o->dep].t1 > t)
		t = sl->op.v[o->dep].t1;
	if (!o->inner && o->issue0 > INT64_MIN && o->issue0 + sl->device->floor > t)
		t = o->issue0 + sl->device->floor;
	return t > INT64_MIN && t < o->t0 ? t : o->t0;
}

uint32_t tfh_function_before(const struct tfh_slice *sl, int64_t t)
{
	size_t lo = TFH_BISECT(i, 0, sl->function.n, sl->function.v[i].t1 <= t);

	return lo && t - sl->function.v[lo - 1].t1 <= TFH_ACCOUNT_FUNCTION_NS ? (uint32_t)(lo - 1)
									      : TFH_NO;
}

/* The host function that op o waited for: the last one before it in its stream or, however streams
 * depend on each other, one that ended just before it. On a crowded machine the driver's thread may
 * tell the device late that a function has ended. */
static uint32_t awaited_function(const struct tfh_slice *sl, const struct tfh_device_op *o)
{
	uint32_t f = tfh_function_before(sl, o->t0);
	size_t n = TFH_BISECT(i, 0, sl->function.n, sl->function.v[i].t1 <= o->t0);

	for (; f == TFH_NO && n-- && sl->function.v[n].t1 > o->ready;)
		if (lane_named(sl, sl->function.v[n].stream) == o->lane)
			f = (uint32_t)n;
	return f;
}

/* For an op that started long after all its known constraints were met: assumes that it waited for
 * the op that ended last before it began, if that was just before, and if it had been issued
 * earlier. A signal from another stream takes longer than the next op of the same one (17 us
 * against 3 on AMD's MI300), up to the latency of a launch from the host. */
static void infer(struct tfh_slice *sl, uint32_t i)
{
	struct tfh_device_op *o = &sl->op.v[i];
	int64_t far = TFH_ACCOUNT_INFER_TIMES * sl->device->tau,
		near = far > sl->device->slow ? far : sl->device->slow;
	uint32_t n;

	if (o->t0 - o->ready <= near || o->issue0 == INT64_MIN)
		return;
	o->function = awaited_function(sl, o);
	if (o->function != TFH_NO)
		return;
	n = tfh_op_ended(sl, o->t0);
	while (n-- > 0) {
		uint32_t x = sl->op_ends.v[n];
		const struct tfh_device_op *e = &sl->op.v[x];
		if (o->t0 - e->t1 > near)
			return;
		if (x >= i || e->issue0 >= o->issue0 || e->t1 <= o->ready)
			continue;
		o->dep = x;
		o->inferred = true;
		o->ready = e->t1;
		return;
	}
}

/* The op whose end a waiting call needs: the last op issued before the call, in its stream if the
 * call names one. A synchronising call has such an op even if the op was over before the call,
 * since the call would wait for it if the host came earlier. For other calls the op must have ended
 * during the wait. */
static uint32_t waited_op(const struct tfh_slice *sl, const struct tfh_host_span *s)
{
	uint32_t n = tfh_op_ended(sl, s->t1), lane = TFH_NO;
	int64_t since = s->t0;
	bool any = s->family == TFH_FAM_SYNC;

	/* Polling began with the first poll of a series. */
	for (const struct tfh_host_span *p = s;
	     p > sl->span.v && p[-1].spin && p[-1].thread == s->thread;)
		since = (--p)->t0;
	if (s->stream)
		lane = lane_named(sl, s->stream);
	for (uint32_t looked = 0; n-- > 0 && looked < TFH_ACCOUNT_LOOK_BACK; looked++) {
		uint32_t x = sl->op_ends.v[n];
		const struct tfh_device_op *o = &sl->op.v[x];
		if (o->t1 <= since && !any)
			return TFH_NO;
		if (o->issue0 <= since && (lane == TFH_NO || o->lane == lane))
			return x;
	}
	return TFH_NO;
}

static int by_number(const void *a, const void *b, void *arg)
{
	(void)arg;
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return x < y ? -1 : x > y;
}

/* Issue times of all ops, sorted; NULL when out of memory. The caller frees it. */
static int64_t *all_issues(const struct tfh_slice *sl)
{
	int64_t *issues = malloc((sl->op.n + 1) * sizeof(*issues));

	for (size_t i = 0; issues && i < sl->op.n; i++)
		issues[i] = sl->op.v[i].issue0;
	if (issues)
		tfh_sort(issues, sl->op.n, sizeof(*issues), by_number, NULL);
	return issues;
}

/* Number of ops that were issued before t and had not ended by then. */
static uint64_t outstanding(const struct tfh_slice *sl, const int64_t *issues, int64_t t)
{
	uint64_t issued = TFH_BISECT(i, 0, sl->op.n, issues[i] < t), done = tfh_op_ended(sl, t);

	return issued > done ? issued - done : 0;
}

/* Whether all ops issued before a call had ended when it returned. */
static bool drained(const struct tfh_slice *sl, const int64_t *issues,
		    const struct tfh_host_span *s)
{
	return tfh_op_ended(sl, s->t1) >= TFH_BISECT(i, 0, sl->op.n, issues[i] < s->t0);
}

/* Counts how long after the end of the op a waiting thread continues: separately for waits long
 * enough for the thread to sleep, and for short ones. */
static void count_wake(struct tfh_slice *sl, const struct tfh_host_span *s)
{
	const struct tfh_device_op *o = s->op == TFH_NO ? NULL : &sl->op.v[s->op];

	if (!o || s->family != TFH_FAM_SYNC || o->t1 > s->t1)
		return;
	if (o->t1 - s->t0 >= TFH_GAP_NS)
		tfh_hist_add(&sl->wake, s->t1 - o->t1);
	else
		tfh_hist_add(&sl->after, s->t1 - (o->t1 > s->t0 ? o->t1 : s->t0));
}

int64_t tfh_woken_from(const struct tfh_slice *sl, const struct tfh_host_span *s)
{
	const struct tfh_device_op *o = s->op == TFH_NO ? NULL : &sl->op.v[s->op];

	if (!o || o->t1 > s->t1 || s->spin)
		return INT64_MAX;
	if (s->activity != TFH_ACTIVITY_COPY)
		return tfh_max_ns(o->t1, s->t0);
	/* After the copy's op, its duration once more (the driver may copy on the host, too) or the
	 * usual duration of a call belongs to the copy. A call that waited for computing has spent
	 * its usual duration by then. The driver takes the bytes of a small copy to the device at
	 * once, so nothing wakes the thread: whatever its call takes is the copy's. */
	bool waits = s->dir != TFH_DIR_H2D || s->bytes >= TFH_ACCOUNT_SMALL_COPY;
	if (!TFH_DETECT_LATE_WAKES || !waits || !o->copy || o->span != (uint32_t)(s - sl->span.v))
		return INT64_MAX;
	int64_t usual = s->value ? 0 : tfh_max_ns(sl->device->slow, TFH_GAP_NS);
	return o->t1 + tfh_max_ns(o->t1 - o->t0, usual);
}

/* Counts how long a thread took to wake up that did not wait for a CPU meanwhile. */
static void count_prompt(struct tfh_slice *sl, const struct tfh_host_span *s)
{
	int64_t from = tfh_woken_from(sl, s);

	if (from < s->t1 && s->t1 - from <= TFH_WOKEN_NS)
		tfh_hist_add(&sl->prompt, s->t1 - from);
}

/* When the computing that op o had to wait for had ended. */
static int64_t computed_until(const struct tfh_slice *sl, const struct tfh_device_op *o)
{
	int64_t t = INT64_MIN;

	if (o->prev != TFH_NO && sl->op.v[o->prev].work == TFH_W_COMPUTE)
		t = sl->op.v[o->prev].t1;
	if (o->dep != TFH_NO && sl->op.v[o->dep].work == TFH_W_COMPUTE && sl->op.v[o->dep].t1 > t)
		t = sl->op.v[o->dep].t1;
	return t;
}

static int find_waits(struct tfh_slice *sl)
{
	int64_t *issues = NULL;

	for (size_t i = 0; i < sl->span.n; i++) {
		struct tfh_host_span *s = &sl->span.v[i];
		bool query = s->family == TFH_FAM_QUERY && !s->failed;
		if (s->activity == TFH_ACTIVITY_LAUNCH && s->t1 - s->t0 > TFH_GAP_NS) {
			if (!issues && !(issues = all_issues(sl)))
				return -ENOMEM;
			s->full = outstanding(sl, issues, s->t0) >= TFH_ACCOUNT_DEEP_QUEUE;
		}
		/* Freeing memory waits for the whole device: afterwards no earlier op is left. */
		bool frees = s->family == TFH_FAM_FREE && s->t1 - s->t0 >= TFH_GAP_NS;
		if (frees && !issues && !(issues = all_issues(sl)))
			return -ENOMEM;
		if (frees && drained(sl, issues, s))
			s->op = waited_op(sl, s);
		if (s->activity == TFH_ACTIVITY_COPY || s->full || query ||
		    (s->activity == TFH_ACTIVITY_SYNC && s->family == TFH_FAM_SYNC))
			s->op = s->op == TFH_NO ? waited_op(sl, s) : s->op;
	}
	/* All polls of a series wait for the op of the poll that succeeds. */
	for (size_t i = sl->families & 1ull << TFH_FAM_QUERY ? sl->span.n : 0; i-- > 1;) {
		struct tfh_host_span *s = &sl->span.v[i - 1], *next = &sl->span.v[i];
		if (s->spin && s->thread == next->thread &&
		    (next->spin || next->family == TFH_FAM_QUERY))
			s->op = next->op;
	}
	/* A blocking copy waits for its own op before anything else. */
	for (uint32_t i = 0; i < sl->op.n; i++) {
		const struct tfh_device_op *o = &sl->op.v[i];
		struct tfh_host_span *s = o->span == TFH_NO ? NULL : &sl->span.v[o->span];
		if (!s || s->activity != TFH_ACTIVITY_COPY || o->t1 > s->t1)
			continue;
		s->op = i;
		s->value = o->work == TFH_W_D2H && s->bytes < TFH_VALUE_BYTES &&
			   computed_until(sl, o) > s->t0;
	}
	for (size_t i = 0; i < sl->span.n && sl->families & 1ull << TFH_FAM_SYNC; i++)
		count_wake(sl, &sl->span.v[i]);
	for (size_t i = 0; i < sl->span.n && sl->accounts->facts->crowded; i++)
		count_prompt(sl, &sl->span.v[i]);
	free(issues);
	return 0;
}

int tfh_depend(struct tfh_slice *sl)
{
	struct pairing *p = calloc(1, sizeof(*p));
	int rc = p ? 0 : -ENOMEM;

	if (!rc) {
		p->sl = sl;
		rc = gather(p);
	}
	if (!rc)
		rc = make_events(p);
	if (!rc) {
		pair(p);
		for (size_t i = 0; i < sl->lane.n; i++)
			sl->lane.v[i].last = TFH_NO;
		for (uint32_t i = 0; i < sl->op.n; i++) {
			chain(sl, i);
			sl->op.v[i].ready = known_ready(sl, &sl->op.v[i]);
			infer(sl, i);
		}
		rc = find_waits(sl);
	}
	if (p) {
		free(p->order.v);
		free(p->event);
	}
	free(p);
	return rc;
}
