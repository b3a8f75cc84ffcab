/*
 * Replays: computes the times of the recorded windows without a class of costs. The graph is the
 * recorded one: the order of calls in each thread, hand-overs between threads, the order in each
 * stream, events, and waits that end with the op they waited for. Everything that is not removed
 * keeps its duration, and every start keeps its delay after what it waited for. (The idea: Holistic
 * Trace Analysis' critical path graph, and what-if replays of recorded training graphs as in
 * Daydream, USENIX ATC 2020.)
 *
 * All edges lead forward in recorded time, so one pass in that order suffices.
 */
#include <stdlib.h>

#include "judge/predict/predict.h"

struct heap_node {
	int64_t key;
	uint32_t index;
	bool op;
};

struct replay {
	const struct tfh_slice *sl;
	enum tfh_remove what;		    /* what is removed; TFH_REMOVE_COUNT: nothing */
	uint32_t gone;			    /* one bit for each part that it removes */
	bool fetches;			    /* waits that fetch a result are kept */
	bool uncrowded;			    /* no thread waits for a CPU when it is woken up */
	double host;			    /* factor on the host's own work */
	const struct tfh_code_place *place; /* removed from pauses; NULL: nothing */
	int64_t *span_end, *op0, *op1; /* new times: end of each span; start and end of each op */
	int64_t *lane;		       /* by lane: end of the ops before the windows */
	uint8_t *part;		       /* part of each span, enum tfh_part */
	uint32_t parts;		       /* bit mask of the parts of all spans and ops */
	int64_t *same; /* completions of the replay that removed nothing, once computed */
	bool has_same;
	uint64_t same_woken;
	/* Usual time from an op's end to the return of the call that waited for it. */
	int64_t wake;
	int64_t prompt;	 /* usual time to wake up of a thread that does not wait for a CPU */
	bool slept;	 /* that time was measured on threads that slept */
	uint64_t woken;	 /* waits that sleep only in the replay, if it was not */
	int64_t waited;	 /* new end of the last get-next that waited for another thread */
	int64_t batches; /* get-nexts since then */
};

static enum tfh_part part_of(const struct tfh_host_span *s)
{
	int64_t ns = s->t1 - s->t0;

	if (s->fallback)
		return TFH_PART_TRANSFER;
	switch (s->activity) {
	case TFH_ACTIVITY_GAP:
		if (s->library != TFH_CAUSE_NONE)
			return tfh_cause_part(s->library);
		if (s->copying)
			return TFH_PART_TRANSFER;
		return ns < TFH_GAP_NS || s->launching ? TFH_PART_LAUNCH : TFH_PART_HOST;
	case TFH_ACTIVITY_INPUT:
		return TFH_PART_INPUT;
	case TFH_ACTIVITY_COPY: /* fetching a value is a wait, like a synchronising call */
		return s->value ? TFH_PART_SYNC : TFH_PART_TRANSFER;
	case TFH_ACTIVITY_SYNC:
		return TFH_PART_SYNC;
	case TFH_ACTIVITY_ALLOC:
	case TFH_ACTIVITY_MODULE:
		return TFH_PART_HOST;
	case TFH_ACTIVITY_EXEC:
		return s->makes ? TFH_PART_HOST : TFH_PART_LAUNCH;
	case TFH_ACTIVITY_OTHER:
		if (s->family == TFH_FAM_MANAGED)
			return TFH_PART_TRANSFER;
		return ns < TFH_GAP_NS ? TFH_PART_LAUNCH : TFH_PART_HOST;
	default:
		return s->family == TFH_FAM_COPY ? TFH_PART_TRANSFER : TFH_PART_LAUNCH;
	}
}

static uint32_t parts_of(enum tfh_remove what)
{
	if (what == TFH_REMOVE_COUNT)
		return 0;
	return what == TFH_REMOVE_EVERYTHING_BUT_COMPUTE ? ~(1u << TFH_PART_COMPUTE)
							 : 1u << tfh_remove_part(what);
}

static bool removed(const struct replay *r, enum tfh_part part)
{
	return r->gone >> part & 1;
}

static enum tfh_part part_of_op(const struct tfh_device_op *o)
{
	return o->work == TFH_W_COMPUTE ? TFH_PART_COMPUTE
	       : o->work == TFH_W_COMM	? TFH_PART_COMMUNICATION
					: TFH_PART_TRANSFER;
}

static bool op_removed(const struct replay *r, const struct tfh_device_op *o)
{
	return o->work != TFH_W_COMPUTE && removed(r, part_of_op(o));
}

/* New end of the span before span i on its thread; i's recorded begin if there is none. */
static int64_t begins(const struct replay *r, uint32_t i)
{
	const struct tfh_slice *sl = r->sl;
	const struct tfh_host_span *s = &sl->span.v[i];

	if (i > sl->thread_span[s->thread])
		return r->span_end[i - 1];
	uint32_t q = tfh_last_call(sl, s->t0, s->thread);
	return q == TFH_NO || r->span_end[q] == INT64_MIN
		       ? s->t0
		       : r->span_end[q] + s->t0 - sl->span.v[q].t1;
}

/* The part of a pause that is spent at the removed place. */
static int64_t at_place(const struct replay *r, const struct tfh_host_span *s)
{
	if (!r->place || s->activity != TFH_ACTIVITY_GAP || s->spin || s->t1 - s->t0 < TFH_GAP_NS)
		return 0;
	return (int64_t)((double)(s->t1 - s->t0) *
			 tfh_sample_part_of(r->place->part, s->thread, s->t0, s->t1));
}

/* How much of a pause remains that samples divide into parts; -1: they do not. */
static int64_t left_of(const struct replay *r, const struct tfh_host_span *s, int64_t ns)
{
	int64_t all = 0, gone = 0;

	if (s->activity != TFH_ACTIVITY_GAP || ns < TFH_GAP_NS)
		return -1;
	for (int p = 0; p < TFH_PART_COUNT; p++) {
		all += s->divided[p];
		gone += removed(r, (enum tfh_part)p) ? s->divided[p] : 0;
	}
	return all ? ns - ns * gone / all : -1;
}

static int64_t scaled(const struct replay *r, int64_t ns)
{
	return (int64_t)((double)ns * r->host);
}

/* The rest of a delay `late` that ended at t if the program's host functions take no time. */
static int64_t without_function(const struct tfh_slice *sl, uint32_t f, int64_t late)
{
	int64_t took = f == TFH_NO ? 0 : sl->function.v[f].t1 - sl->function.v[f].t0;

	return took < late ? late - took : 0;
}

/* When a thread began to poll for the op that s found complete. */
static int64_t polled_since(const struct tfh_slice *sl, const struct tfh_host_span *s)
{
	uint32_t thread = s->thread;

	while (s > sl->span.v && s[-1].spin && s[-1].thread == thread)
		s--;
	return s->t0;
}

/* The time `after` an op until its waiting thread continued, with the usual prompt wake-up instead
 * of the thread's wait for a CPU. */
static int64_t promptly(const struct replay *r, const struct tfh_host_span *s, int64_t after)
{
	int64_t from = tfh_woken_from(r->sl, s);

	return from < s->t1 && s->t1 - from > TFH_WOKEN_NS ? after - (s->t1 - from) + r->prompt
							   : after;
}

/* New end of a call that waits for op o: its time before the op's end and its wake-up are kept. If
 * the call had found the op complete, or nearly, and must sleep in the replay, the usual wake-up is
 * added. */
static int64_t wait_end(struct replay *r, const struct tfh_host_span *s, int64_t begin, bool gone)
{
	const struct tfh_device_op *o = &r->sl->op.v[s->op];
	int64_t end = r->op1[s->op], since = polled_since(r->sl, s);
	int64_t after = s->t1 - tfh_max_ns(o->t1, since);

	if (end == INT64_MIN)
		end = op_removed(r, o) ? begin : o->t1;
	if (after > TFH_GAP_NS && removed(r, TFH_PART_HOST))
		after = without_function(r->sl, tfh_function_before(r->sl, s->t1), after);
	if (s->family == TFH_FAM_SYNC && o->t1 - s->t0 < TFH_GAP_NS && end - begin >= TFH_GAP_NS) {
		after = r->wake;
		r->woken += !r->slept;
	}
	if (r->uncrowded)
		after = promptly(r, s, after);
	/* Without its bytes, a blocking copy still waits for earlier work. */
	if (gone)
		after = s->activity == TFH_ACTIVITY_COPY && end - begin >= TFH_GAP_NS
				? tfh_min_ns(after, r->slept ? r->wake : TFH_GAP_NS)
				: 0;
	return tfh_max_ns(begin, end) + (after > 0 ? after : 0);
}

/* Whether a wait's result is the program's own: what it fetched from the device. */
static bool fetches(const struct tfh_slice *sl, const struct tfh_host_span *s)
{
	return s->value || (s->activity == TFH_ACTIVITY_SYNC && s->op != TFH_NO &&
			    sl->op.v[s->op].work == TFH_W_D2H);
}

/* New end of a get-next that other threads feed. If it waited, the batch is available when it was:
 * a faster consumer does not speed up its makers. But if they could make all batches since the last
 * such wait sooner, they had stopped in front of a full buffer, and this get-next was only late to
 * be woken up: then it takes as long as it did. */
static int64_t batch_end(struct replay *r, const struct tfh_host_span *s, int64_t begin)
{
	int64_t made = r->sl->device->made, ns = s->t1 - s->t0, end = begin + ns;
	int64_t usual = r->sl->accounts->loops->median / TFH_PREDICT_STARVED_PART;
	bool first = r->waited == INT64_MIN;

	r->batches++;
	if (ns > tfh_max_ns(TFH_GAP_NS, usual)) {
		int64_t ready = tfh_max_ns(begin, s->t1);
		bool known = made < INT64_MAX && !first;
		end = known ? tfh_min_ns(ready, tfh_max_ns(end, r->waited + r->batches * made))
			    : ready;
	} else if (!first) {
		return end;
	}
	r->waited = end;
	r->batches = 0;
	return end;
}

static int64_t end_of_span(struct replay *r, uint32_t i)
{
	const struct tfh_slice *sl = r->sl;
	const struct tfh_host_span *s = &sl->span.v[i];
	int64_t begin = begins(r, i), ns = s->t1 - s->t0, left = left_of(r, s, ns);
	enum tfh_part part = r->part[i];
	bool gone = removed(r, part) && left < 0 && !(r->fetches && fetches(sl, s));

	if (s->from != TFH_NO) {
		int64_t q = r->span_end[s->from], own = s->t1 - sl->span.v[s->from].t1;
		if (q == INT64_MIN)
			return begin + ns;
		if (s->library == TFH_CAUSE_NONE)
			part = own < TFH_GAP_NS || s->launching ||
					       (s->activity == TFH_ACTIVITY_EXEC && !s->makes)
				       ? TFH_PART_LAUNCH
				       : TFH_PART_HOST;
		own = tfh_max_ns(0, own - at_place(r, s));
		return tfh_max_ns(begin, q) + (removed(r, part) ? 0 : scaled(r, own));
	}
	if (s->spin)
		return begin;
	if ((s->activity == TFH_ACTIVITY_SYNC || s->activity == TFH_ACTIVITY_ALLOC || s->value) &&
	    gone)
		return begin;
	if (s->op != TFH_NO && (s->activity != TFH_ACTIVITY_LAUNCH || s->full))
		return wait_end(r, s, begin, gone);
	if (gone)
		return begin;
	if (s->activity == TFH_ACTIVITY_INPUT && s->async)
		return batch_end(r, s, begin);
	ns = left < 0 ? ns : left;
	/* The predicted job runs without the recorder, whose own time is left out. */
	if (s->activity == TFH_ACTIVITY_GAP && r->what != TFH_REMOVE_COUNT)
		ns = tfh_max_ns(0, ns - sl->device->own);
	ns = tfh_max_ns(0, ns - at_place(r, s));
	return begin + scaled(r, ns);
}

/* The rest of an op's delay if launching takes no time: removes the time of its own call and the
 * usual time from the call to the start, which blame.c charges to launching. */
static int64_t without_launch(const struct tfh_slice *sl, const struct tfh_device_op *o,
			      int64_t late)
{
	int64_t usual = tfh_max_ns(sl->device->tau, sl->device->slow),
		left = o->t0 - tfh_max_ns(o->issue1, o->issue0 + usual);

	if (late <= usual || o->inner || o->issue0 == INT64_MIN)
		return late <= usual ? 0 : late;
	return left <= sl->device->tau ? 0 : left < late ? left : late;
}

static void time_op(struct replay *r, uint32_t i)
{
	const struct tfh_slice *sl = r->sl;
	const struct tfh_device_op *o = &sl->op.v[i];
	int64_t t = r->lane[o->lane], ns = o->t1 - o->t0, late = o->t0 - o->ready;

	if (o->prev != TFH_NO && r->op1[o->prev] > INT64_MIN)
		t = r->op1[o->prev];
	if (t > INT64_MIN && !o->inner && !op_removed(r, o))
		t += sl->device->next;
	if (o->dep != TFH_NO && r->op1[o->dep] > INT64_MIN)
		t = tfh_max_ns(t, r->op1[o->dep]);
	/* the dependency that remains if dep is a copy that is removed */
	if (o->depc != TFH_NO && r->op1[o->depc] > INT64_MIN)
		t = tfh_max_ns(t, r->op1[o->depc]);
	/* A removed op passes its constraints on to the ops that follow it. */
	if (op_removed(r, o)) {
		r->op0[i] = r->op1[i] = t;
		return;
	}
	if (!o->inner && o->span != TFH_NO && sl->span.v[o->span].t0 <= o->issue0)
		t = tfh_max_ns(t, begins(r, o->span) + sl->device->floor);
	else if (!o->inner && o->issue0 > INT64_MIN)
		t = tfh_max_ns(t, o->issue0 + sl->device->floor);
	if (t == INT64_MIN)
		t = o->t0;
	if (removed(r, TFH_PART_LAUNCH))
		late = without_launch(sl, o, late);
	if (o->outside && removed(r, TFH_PART_HOST))
		late = tfh_min_ns(late, tfh_max_ns(sl->device->tau, sl->device->slow));
	if (o->function != TFH_NO && removed(r, TFH_PART_HOST))
		late = without_function(sl, o->function, late);
	r->op0[i] = t + late;
	/* Other ranks are assumed to come as early as this one: counts what this rank needs by
	 * itself. */
	if (o->shared >= 0 && r->what != TFH_REMOVE_COUNT && o->shared < ns)
		ns = o->shared;
	r->op1[i] = r->op0[i] + ns;
}

/* All participants of a collective end together. Those on devices of this process end no earlier
 * than the last one starts. The earlier participants were computed as if alone; corrected here,
 * before anything that waits for them is computed. */
static void leave_together(struct replay *r, uint32_t i)
{
	const struct tfh_slice *sl = r->sl;
	const struct tfh_device_op *x = &sl->op.v[i];
	int64_t near = sl->device->slow + TFH_GAP_NS;

	if (sl->device->n_device < 2 || r->what == TFH_REMOVE_COUNT || x->work != TFH_W_COMM ||
	    x->shared < 0 || op_removed(r, x))
		return;
	for (uint32_t k = i; k-- > 0 && i - k <= TFH_PREDICT_NEARBY;) {
		const struct tfh_device_op *o = &sl->op.v[k];
		if (o->work != TFH_W_COMM || o->device == x->device || o->t1 <= x->t0 ||
		    o->t1 < x->t1 - near || o->t1 > x->t1 + near)
			continue;
		r->op1[i] = tfh_max_ns(r->op1[i], r->op0[k] + x->shared);
		r->op1[k] = tfh_max_ns(r->op1[k], r->op1[i]);
	}
}

static int by_span_end(const void *a, const void *b, void *arg)
{
	const struct heap_node *x = a, *y = b;

	(void)arg;
	return x->key != y->key ? (x->key < y->key ? -1 : 1)
				: (x->index < y->index ? -1 : x->index > y->index);
}

/* Spans by end and ops by start, merged; at equal times spans first. */
static struct heap_node *order(const struct tfh_slice *sl)
{
	size_t n = sl->span.n, m = sl->op.n, at = 0, i = 0, k = 0;
	struct heap_node *span = malloc((n + 1) * sizeof(*span)),
			 *v = malloc((n + m + 1) * sizeof(*v));

	for (; span && i < n; i++)
		span[i] = (struct heap_node){sl->span.v[i].t1, (uint32_t)i, false};
	if (span && v) {
		tfh_sort(span, n, sizeof(*span), by_span_end, NULL);
		for (i = 0; i < n || k < m;)
			if (k == m || (i < n && span[i].key <= sl->op.v[k].t0))
				v[at++] = span[i++];
			else
				v[at++] = (struct heap_node){sl->op.v[k].t0, (uint32_t)k, true},
				k++;
	} else {
		free(v);
		v = NULL;
	}
	free(span);
	return v;
}

static void run(struct replay *r, const struct heap_node *v)
{
	const struct tfh_slice *sl = r->sl;
	size_t n = sl->span.n + sl->op.n;

	r->waited = INT64_MIN;
	r->batches = 0;
	for (size_t i = 0; i < sl->span.n; i++)
		r->span_end[i] = INT64_MIN;
	for (size_t i = 0; i < sl->op.n; i++)
		r->op0[i] = r->op1[i] = INT64_MIN;
	for (size_t i = 0; i < sl->lane.n; i++)
		r->lane[i] = sl->lane.v[i].past_end;
	for (size_t i = 0; i < n; i++)
		if (v[i].op) {
			time_op(r, v[i].index);
			leave_together(r, v[i].index);
		} else {
			r->span_end[v[i].index] = end_of_span(r, v[i].index);
		}
}

/* New completion times of the windows in memory. `c` begins with that of w0 - 1. */
static void completions(const struct replay *r, int64_t *c)
{
	const struct tfh_slice *sl = r->sl;
	size_t first = sl->w0 ? sl->w0 - 1 : 0;

	for (size_t i = 0; i < sl->w1 - first; i++)
		c[i] = INT64_MIN;
	for (size_t i = 0; i < sl->op.n; i++) {
		const struct tfh_device_op *o = &sl->op.v[i];
		if (o->window < first || o->window >= sl->w1 ||
		    o->t1 > sl->device->win.v[o->window].done)
			continue;
		/* Only ops that defined the recorded completion. */
		if (o->work == TFH_W_COMPUTE || o->work == TFH_W_COMM ||
		    o->t1 == sl->device->win.v[o->window].done)
			c[o->window - first] = tfh_max_ns(c[o->window - first], r->op1[i]);
	}
	for (size_t i = 1; i < sl->w1 - first; i++)
		c[i] = tfh_max_ns(c[i], c[i - 1]);
}

static bool steady(const struct tfh_slice *sl, size_t w)
{
	const struct tfh_slice_window *x = &sl->window.v[w - sl->w0];

	return x->counts && x->known && sl->device->win.v[w].from == sl->device->win.v[w - 1].to &&
	       sl->device->win.v[w].to == sl->device->win.v[w].done;
}

/* Number of windows at the beginning in which the change has not settled: the host first has to get
 * ahead or fall back. */
static size_t first_measured(const struct tfh_slice *sl)
{
	size_t skip = (sl->w1 - sl->w0) / TFH_PREDICT_SKIP_PART + 1;

	return sl->w0 + (skip < TFH_PREDICT_SKIP_MOST ? skip : TFH_PREDICT_SKIP_MOST);
}

static int add_up(const struct tfh_slice *sl, const int64_t *c, struct tfh_replays *s)
{
	size_t first = sl->w0 ? sl->w0 - 1 : 0;
	int rc = 0;

	for (size_t w = first_measured(sl); w < sl->w1 && !rc; w++) {
		uint32_t k = sl->accounts->loops->window.v[w].steps;
		if (!steady(sl, w) || c[w - 1 - first] == INT64_MIN)
			continue;
		struct tfh_replayed x = {
			.s = (double)(c[w - first] - c[w - 1 - first]) / 1e9 / k,
			.was = (double)(sl->device->win.v[w].to - sl->device->win.v[w].from) / 1e9 /
			       k,
			.steps = k};
		rc = TFH_PUSH(s->of, x);
	}
	return rc;
}

static void find_parts(struct replay *r)
{
	const struct tfh_slice *sl = r->sl;

	for (size_t i = 0; i < sl->span.n; i++) {
		r->part[i] = (uint8_t)part_of(&sl->span.v[i]);
		r->parts |= 1u << r->part[i];
		for (int p = 0; p < TFH_PART_COUNT; p++)
			r->parts |= (uint32_t)(sl->span.v[i].divided[p] > 0) << p;
	}
	for (size_t i = 0; i < sl->op.n; i++)
		r->parts |= 1u << part_of_op(&sl->op.v[i]);
}

/* Whether nothing in memory belongs to the removed class: such replays are all equal. For launching
 * and the program's own code, other places count, too. */
static bool removes_nothing(const struct replay *r)
{
	if (r->what == TFH_REMOVE_COUNT || r->what == TFH_REMOVE_EVERYTHING_BUT_COMPUTE ||
	    r->host != 1)
		return false;
	enum tfh_part part = tfh_remove_part(r->what);
	return part != TFH_PART_LAUNCH && part != TFH_PART_HOST && !(r->parts >> part & 1);
}

/* Computes new completion times of the windows in memory. */
static const int64_t *time_anew(struct replay *r, const struct heap_node *v, int64_t *c)
{
	bool nothing = removes_nothing(r);

	if (nothing && r->has_same) {
		r->woken = r->same_woken;
		return r->same;
	}
	r->woken = 0;
	run(r, v);
	completions(r, nothing ? r->same : c);
	if (nothing)
		r->same_woken = r->woken;
	r->has_same |= nothing;
	return nothing ? r->same : c;
}

/* Removes one kind of cost, or nothing but in another way. */
static void remove_cost(struct replay *r, int what)
{
	r->uncrowded = what == TFH_REPLAY_UNCROWDED;
	r->what = what == TFH_REPLAY_CROWDED	? TFH_REMOVE_INPUT
		  : what == TFH_REPLAY_FETCHING ? TFH_REMOVE_SYNC
		  : r->uncrowded		? TFH_REMOVE_COUNT
						: what;
	r->gone = parts_of(r->what);
	r->host = what == TFH_REPLAY_CROWDED ? TFH_PREDICT_CROWDING : 1;
	r->fetches = what == TFH_REPLAY_FETCHING;
}

static int replay_costs(struct replay *r, const struct heap_node *v, int64_t *c,
			struct tfh_samples *all)
{
	const struct tfh_slice *sl = r->sl;
	int rc = 0;

	for (int what = 0; what < TFH_REPLAY_COUNT && !rc; what++) {
		if (what == TFH_REPLAY_UNCROWDED && !sl->accounts->facts->crowded)
			continue;
		remove_cost(r, what);
		const int64_t *done = time_anew(r, v, c);
		all->replay[what].woken += r->woken;
		all->replay[what].windows += sl->w1 - (sl->w0 ? sl->w0 - 1 : 0);
		rc = add_up(sl, done, &all->replay[what]);
	}
	return rc;
}

/* Removes what is done at one place of the program. */
static int replay_places(struct replay *r, const struct heap_node *v, int64_t *c,
			 struct tfh_samples *all)
{
	int rc = 0;

	r->what = TFH_REMOVE_NONE;
	r->gone = 0;
	r->fetches = r->uncrowded = false;
	for (uint32_t i = 0; i < all->n_place && !rc; i++) {
		r->place = &all->place[i];
		run(r, v);
		completions(r, c);
		rc = add_up(r->sl, c, &all->without[i]);
	}
	return rc;
}

int tfh_replay(struct tfh_samples *all, const struct tfh_slice *sl)
{
	struct replay r = {.sl = sl, .slept = sl->wake.n >= TFH_PREDICT_WAKES};
	struct heap_node *v = order(sl);
	int64_t *c = malloc(2 * (sl->w1 - sl->w0 + 2) * sizeof(*c));
	int rc = -ENOMEM;

	r.wake = (int64_t)tfh_hist_quantile(r.slept ? &sl->wake : &sl->after, 0.5);
	r.wake = r.slept ? r.wake : tfh_min_ns(r.wake, TFH_WOKEN_NS);
	r.prompt = sl->prompt.n ? (int64_t)tfh_hist_quantile(&sl->prompt, 0.5) : TFH_WOKEN_NS;
	r.span_end = malloc((sl->span.n + 1) * sizeof(*r.span_end));
	r.op0 = malloc((sl->op.n + 1) * sizeof(*r.op0));
	r.op1 = malloc((sl->op.n + 1) * sizeof(*r.op1));
	r.lane = malloc((sl->lane.n + 1) * sizeof(*r.lane));
	r.part = malloc(sl->span.n + 1);
	if (v && c && r.span_end && r.op0 && r.op1 && r.lane && r.part) {
		r.same = c + (sl->w1 - sl->w0 + 2);
		find_parts(&r);
		rc = replay_costs(&r, v, c, all);
		if (!rc)
			rc = replay_places(&r, v, c, all);
	}
	free(v);
	free(c);
	free(r.span_end);
	free(r.op0);
	free(r.op1);
	free(r.lane);
	free(r.part);
	return rc;
}
