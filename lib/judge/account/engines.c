/*
 * The first pass over device ops: when the work of each window was complete, which windows have
 * device times, and how long the device takes from one op to the next. Windows from completion to
 * completion are those of the Kineto TensorBoard plugin (device-adjusted ProfilerStep#);
 * attribution by the issuing call is HTA's.
 */

#include "judge/account/device.h"
#include "base/hash.h"

static uint8_t device_of(struct tfh_device *d, uint32_t id)
{
	uint32_t i = 0;

	while (i < d->n_device && d->id[i] != id)
		i++;
	if (i == d->n_device && i < TFH_ACCOUNT_DEVICES)
		d->id[d->n_device++] = id;
	return (uint8_t)(i < TFH_ACCOUNT_DEVICES ? i : TFH_ACCOUNT_DEVICES - 1);
}

uint32_t tfh_lane_of(struct tfh_device *d, const struct tfh_op *op)
{
	uint8_t device = device_of(d, op->device);
	uint64_t key = tfh_hash_add(tfh_hash_add(op->ctx, op->stream), device);
	uint64_t *at = tfh_map_put(&d->lane_at, key, NULL);
	struct tfh_lane l = {.ctx = op->ctx,
			     .stream = op->stream,
			     .device = device,
			     .past_end = INT64_MIN,
			     .end = INT64_MIN,
			     .last = TFH_NO,
			     .wait = TFH_NO};

	if (!at || (!*at && TFH_PUSH(d->lane, l)))
		return TFH_NO;
	if (!*at)
		*at = d->lane.n;
	return (uint32_t)*at - 1;
}

/* For an op on an idle stream: counts how long after the begin and the end of its call it
 * started. */
static void count_start(struct tfh_device *d, const struct tfh_op *op)
{
	tfh_hist_add(&d->latency, op->t0 - op->issue0);
	tfh_hist_add(&d->start, op->t0 > op->issue1 ? op->t0 - op->issue1 : 0);
}

static void count_latency(struct tfh_device *d, struct tfh_lane *l, const struct tfh_op *op)
{
	if (op->issue1 > INT64_MIN && l->end > INT64_MIN) {
		if (op->issue1 <= l->end && op->t0 >= l->end)
			tfh_hist_add(&d->gap, op->t0 - l->end);
		else if (op->issue0 > l->end && op->t0 >= op->issue0)
			count_start(d, op);
	}
	if (op->t1 > l->end)
		l->end = op->t1;
}

/* How long the device was idle before an op that nothing delayed, as far as its stream and its call
 * show. A device without other users starts such an op within microseconds. */
static int64_t held_back(struct tfh_device *d, uint8_t device, const struct tfh_op *op)
{
	int64_t *until = &d->ran_until[device], since = tfh_max_ns(op->issue1, *until), ns;

	ns = op->issue1 > INT64_MIN ? op->t0 - since : 0;
	*until = tfh_max_ns(*until, op->t1);
	return ns >= TFH_ACCOUNT_HELD_NS ? ns : 0;
}

/* Completion times while ops are read: of each device's computing, of communication, of any op. */
struct ends {
	int64_t *compute[TFH_ACCOUNT_DEVICES], *comm, *any; /* [window] */
	int64_t results; /* of computing and of the copies that follow it at once */
	int64_t computing[TFH_ACCOUNT_DEVICES]; /* computing in training windows, ns */
	/* end of the computing counted so far */
	int64_t until[TFH_ACCOUNT_DEVICES];
	float fetched; /* bytes since the last computing in window `at` */
	size_t at;
};

/* Saving a model fetches all of it in a row; an agent that plays fetches an action at a time. */
static void count_fetched(struct tfh_device_window *w, struct ends *e, const struct tfh_op *op,
			  uint8_t work)
{
	if (work == TFH_W_COMPUTE)
		e->fetched = 0;
	if (op->kind != TFH_OP_COPY || op->dir != TFH_DIR_D2H)
		return;
	e->fetched += (float)op->bytes;
	w->fetched = e->fetched > w->fetched ? e->fetched : w->fetched;
}

static void count_computing(struct ends *e, uint8_t device, const struct tfh_op *op)
{
	int64_t from = op->t0 > e->until[device] ? op->t0 : e->until[device];

	if (op->t1 > from) {
		e->computing[device] += op->t1 - from;
		e->until[device] = op->t1;
	}
}

static int64_t *new_ends(size_t n)
{
	int64_t *v = tfh_big_array(n, sizeof(*v));

	TFH_EACH (i, v ? n : 0)
		v[i] = INT64_MIN;
	return v;
}

/* Counts ops without a call, each of which hides a dependency. Ops that a stream ran before the
 * first op with a recorded call do not count: they had been queued when the recording began. */
static void count_unissued(struct tfh_device *d, struct tfh_lane *l, const struct tfh_op *op,
			   uint8_t work)
{
	if (op->issue0 > INT64_MIN)
		l->issued = true;
	else if (work != TFH_W_MANAGED && l->issued)
		d->unissued++;
	else
		l->early += work != TFH_W_MANAGED;
}

static int survey_op(struct tfh_device *d, struct ends *e, const struct tfh_op *op)
{
	struct tfh_accounts *accounts = d->accounts;
	uint8_t work = tfh_work_of(op);
	uint32_t lane = tfh_lane_of(d, op);
	int64_t issued = op->issue0 > INT64_MIN ? op->issue0 : op->t0;
	size_t w;

	if (lane == TFH_NO)
		return -ENOMEM;
	if (work == TFH_W_COUNT)
		return 0;
	d->ops++;
	count_unissued(d, &d->lane.v[lane], op, work);
	count_latency(d, &d->lane.v[lane], op);
	uint8_t device = d->lane.v[lane].device;
	int64_t held = held_back(d, device, op);
	w = tfh_window_of(accounts->loops, issued, e->at);
	if (w == SIZE_MAX)
		return 0;
	if (w != e->at)
		e->fetched = 0;
	e->at = w;
	d->last = op->t0;
	d->win.v[w].ops++;
	count_fetched(&d->win.v[w], e, op, work);
	if (op->t1 > e->any[w])
		e->any[w] = op->t1;
	if (work == TFH_W_COMPUTE ||
	    (op->kind == TFH_OP_COPY && op->issue0 > INT64_MIN && e->results > INT64_MIN &&
	     op->t0 - e->results <= op->t1 - op->t0))
		e->results = tfh_max_ns(e->results, op->t1);
	if (work == TFH_W_COMPUTE && !e->compute[device] &&
	    !(e->compute[device] = new_ends(accounts->loops->window.n)))
		return -ENOMEM;
	int64_t *end = work == TFH_W_COMPUTE ? &e->compute[device][w]
		       : work == TFH_W_COMM  ? &e->comm[w]
					     : &e->any[w];
	if (op->t1 > *end)
		*end = op->t1;
	if (accounts->use[w].segment != TFH_SEGMENT_TRAIN)
		return 0;
	d->held_ns += tfh_min_ns(held, accounts->loops->median);
	if (work == TFH_W_COMPUTE)
		count_computing(e, device, op);
	return 0;
}

/* The device that computes most is the one that delays the others; one of many that is idle does
 * not matter. */
static uint8_t critical_device(const struct tfh_device *d, const struct ends *e)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < d->n_device; i++)
		if (e->computing[i] > e->computing[best])
			best = i;
	return (uint8_t)best;
}

/* End of what window i issued: of computing on the critical device, else on any device, else of
 * communication, else of any op. Copies for the next step may run longer and end no window. */
static int64_t end_of(const struct tfh_device *d, const struct ends *e, size_t i)
{
	int64_t t = e->compute[d->critical] ? e->compute[d->critical][i] : INT64_MIN;

	for (uint32_t k = 0; k < d->n_device && t == INT64_MIN; k++)
		if (e->compute[k] && e->compute[k][i] > t)
			t = e->compute[k][i];
	if (t == INT64_MIN)
		t = e->comm[i];
	return t == INT64_MIN ? e->any[i] : t;
}

static bool adjacent(const struct tfh_accounts *accounts, size_t i)
{
	return i && accounts->loops->window.v[i - 1].t1 == accounts->loops->window.v[i].t0;
}

/* Sets when the work of each window was complete, and with it the begin of the next one. */
static void complete(struct tfh_device *d, const struct ends *e)
{
	const struct tfh_accounts *accounts = d->accounts;
	int64_t c = INT64_MIN;

	d->critical = critical_device(d, e);
	TFH_EACH (i, accounts->loops->window.n) {
		const struct tfh_window *w = &accounts->loops->window.v[i];
		struct tfh_device_window *x = &d->win.v[i];
		bool next = adjacent(accounts, i) && c > INT64_MIN;
		x->from = next || c > w->t0 ? c : w->t0 + (i ? 0 : accounts->loops->lead_in);
		x->done = end_of(d, e, i);
		if (x->done == INT64_MIN)
			x->done = w->t1;
		/* What the host does after the last op of an only step delays no other step, but is
		 * part of it. */
		if (accounts->loops->window.n == 1 && accounts->loops->clock == TFH_STEP_CLOCK_MARK)
			x->done = tfh_max_ns(x->done, w->t1);
		/* Nor do its last copies belong to another step. */
		if (TFH_DETECT_LAST_COPIES && accounts->loops->window.n == 1 &&
		    accounts->loops->clock == TFH_STEP_CLOCK_NONE)
			x->done = tfh_max_ns(x->done, e->results);
		if (x->done < x->from)
			x->done = x->from;
		c = x->to = x->done;
	}
}

static bool launches(const struct tfh_accounts *accounts, size_t i)
{
	const struct tfh_window *w = &accounts->loops->window.v[i];

	return tfh_launched_in(accounts->facts, w->t0, w->t1);
}

/* Whether all ops of a window are known: they were issued and ran while device times were
 * recorded. */
static bool complete_ops(const struct tfh_device *d, size_t i)
{
	const struct tfh_window *w = &d->accounts->loops->window.v[i];
	const struct tfh_device_window *x = &d->win.v[i];

	return (x->ops || !launches(d->accounts, i)) && !w->hole &&
	       tfh_gpu_timed(&d->gpu, x->from < w->t0 ? x->from : w->t0, x->done);
}

/* Sets the tier of each window. If its neighbours' ops were not recorded, its own first or last ops
 * may be missing. */
static void give_tiers(struct tfh_device *d)
{
	struct tfh_accounts *accounts = d->accounts;

	/* A context was created and never used: the job computes on the CPU. */
	if (accounts->facts->cpu_only && !d->ops)
		return;
	for (size_t i = 0; i < d->lane.n; i++)
		d->unissued += d->lane.v[i].issued ? 0 : d->lane.v[i].early;
	/* If too few ops have a known call, their causes are unknown: tier B. */
	char tier =
		d->gpu.dependencies && d->unissued * TFH_ACCOUNT_JOINED_PART <= d->ops ? 'A' : 'B';

	TFH_EACH (i, d->win.n) {
		bool known = complete_ops(d, i) && tfh_chunk_fits(d, i, i + 1);
		if (adjacent(accounts, i))
			known &= complete_ops(d, i - 1);
		if (i + 1 < d->win.n && adjacent(accounts, i + 1))
			known &= d->win.v[i + 1].ops || !launches(accounts, i + 1);
		accounts->use[i].tier = known ? tier : 'C';
	}
}

/* Where device times begin or end, a window and its neighbour share the host's cut. A window in
 * which, up to the cut, only ops of earlier windows ran is judged without device times, too. */
static void share_cuts(struct tfh_device *d)
{
	const struct tfh_window *w = d->accounts->loops->window.v;

	for (size_t i = d->win.n; i-- > 1; tfh_big_pass(i)) {
		struct tfh_device_window *a = &d->win.v[i - 1], *b = &d->win.v[i];
		struct tfh_use *use = &d->accounts->use[i - 1];
		if (!adjacent(d->accounts, i) || (use[0].tier == 'C') == (use[1].tier == 'C'))
			continue;
		if (use[1].tier != 'C') {
			b->from = w[i].t0;
			b->to = b->to > b->from ? b->to : b->from;
		} else if (w[i].t0 > a->from) {
			a->to = w[i].t0;
		} else {
			use[0].tier = 'C';
		}
	}
}

/*
 * The device's own delays. Samples include ops that waited for something else; hence low quantiles,
 * and limits: a launch takes at least a few microseconds and, on a healthy system, at most 50 from
 * the call to the start.
 */
static void latencies(struct tfh_device *d)
{
	bool gaps = d->gap.n >= TFH_ACCOUNT_DELAY_SAMPLES,
	     launches = d->latency.n >= TFH_ACCOUNT_DELAY_SAMPLES;

	d->tau = gaps ? (int64_t)tfh_hist_quantile(&d->gap, TFH_ACCOUNT_DELAY_LONG)
		      : TFH_ACCOUNT_DELAY_NS;
	/* If no op was queued after another, the delay between queued ops is unknown. It is at
	 * most that of a launch on an idle device. */
	d->next = gaps	     ? (int64_t)tfh_hist_quantile(&d->gap, TFH_ACCOUNT_NEXT_SHORT)
		  : launches ? (int64_t)tfh_hist_quantile(&d->start, 0.5)
			     : TFH_ACCOUNT_NEXT_NS;
	d->floor = launches ? (int64_t)tfh_hist_quantile(&d->latency, TFH_ACCOUNT_DELAY_SHORT)
			    : TFH_ACCOUNT_DELAY_NS;
	d->slow = launches ? (int64_t)tfh_hist_quantile(&d->latency, TFH_ACCOUNT_DELAY_LONG)
			   : TFH_ACCOUNT_SLOW_NS;
	if (d->tau < TFH_ACCOUNT_DELAY_LEAST_NS || d->tau > TFH_ACCOUNT_DELAY_MOST_NS)
		d->tau = TFH_ACCOUNT_DELAY_NS;
	if (d->next > (gaps ? TFH_ACCOUNT_NEXT_MOST_NS : TFH_ACCOUNT_NEXT_NS))
		d->next = TFH_ACCOUNT_NEXT_NS;
	if (d->floor > TFH_ACCOUNT_FLOOR_MOST_NS)
		d->floor = TFH_ACCOUNT_DELAY_NS;
	if (d->slow > TFH_ACCOUNT_DELAY_MOST_NS)
		d->slow = TFH_ACCOUNT_DELAY_MOST_NS;
}

/* Whether the device was held back for so large a share of the training that other processes must
 * have used it. The share is that of steps of median length, so that a long pause does not hide it.
 * Another tool's trace may lack the calls that ops waited for, so it never counts. */
static bool is_contended(const struct tfh_device *d)
{
	double ns = 0;

	TFH_EACH (i, d->win.n)
		if (d->accounts->use[i].segment == TFH_SEGMENT_TRAIN)
			ns += (double)d->accounts->loops->median *
			      d->accounts->loops->window.v[i].steps;
	return TFH_DETECT_GPU_CONTENTION && !d->accounts->facts->feed->imported &&
	       (double)d->held_ns >= TFH_BLOCKING_SHARE * ns;
}

int tfh_device_survey(struct tfh_device *d, struct tfh_err *err)
{
	struct tfh_accounts *accounts = d->accounts;
	const struct tfh_feed *f = accounts->facts->feed;
	size_t n = accounts->loops->window.n;
	for (int i = 0; i < TFH_ACCOUNT_DEVICES; i++)
		d->ran_until[i] = INT64_MIN;
	struct ends e = {.comm = new_ends(n), .any = new_ends(n), .results = INT64_MIN};
	const struct tfh_op *op;
	struct tfh_op room;
	int rc = e.comm && e.any ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !rc; i++)
		rc = TFH_PUSH_BIG(d->win, (struct tfh_device_window){0});
	if (!rc)
		rc = tfh_feed_rewind_brief(f, accounts->facts->process, err);
	for (size_t i = 0; !rc && (op = tfh_feed_borrow_op(f, &room)); tfh_big_pass(++i))
		rc = survey_op(d, &e, op);
	if (!rc)
		rc = f->ops_error(f->arg, err);
	if (!rc)
		complete(d, &e);
	if (!rc)
		give_tiers(d);
	if (!rc)
		share_cuts(d);
	for (int i = 0; i < TFH_ACCOUNT_DEVICES; i++)
		tfh_big_free(e.compute[i]);
	tfh_big_free(e.comm);
	tfh_big_free(e.any);
	latencies(d);
	d->contended = !rc && is_contended(d);
	for (size_t i = 0; i < d->lane.n; i++)
		d->lane.v[i].end = INT64_MIN;
	return rc;
}
