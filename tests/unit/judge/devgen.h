/*
 * A small discrete-event GPU simulation for synthetic jobs: host threads with their own clocks,
 * streams, events, copies, graphs. A job is written as the calls that its threads make; their
 * durations follow from the simulation, never from the code under test. The cost of a defect is
 * found by running the same job without it.
 */
#ifndef TFH_TEST_DEVGEN_H
#define TFH_TEST_DEVGEN_H

#include "analyze_gen.h"

#define DG_STREAMS 16
#define DG_EVENTS 64
#define US 0.001
#define DG_CALL (4 * US)    /* what an asynchronous call takes */
#define DG_LATENCY (6 * US) /* from its begin to the start on an idle stream */
#define DG_NEXT (1 * US)    /* from op to op of a stream */
#define DG_WAKE (5 * US)    /* from an op's end to the return of the call that waits for it */

struct dg {
	struct gen *g;
	double now[GEN_THREADS]; /* ms */
	double end[DG_STREAMS];	 /* of the last op of the stream */
	double wait[DG_STREAMS]; /* the next op waits for this */
	double event[DG_EVENTS]; /* end of what was recorded */
	uint32_t device[DG_STREAMS];
	struct tfh_op *op;
	size_t n, cap, at;
	uint32_t correlation;
	struct tfh_gpu_span span[4];
	struct tfh_gpu_info gpu;
	double queue[4096]; /* ends of the last ops, for a queue of limited depth */
	size_t queued, depth;
};

static inline int dg_rewind(void *arg, uint32_t p, struct tfh_err *err)
{
	return gen_rewind(((struct dg *)arg)->g, p, err);
}

static inline bool dg_next(void *arg, struct tfh_event *ev)
{
	return gen_next(((struct dg *)arg)->g, ev);
}

static inline const struct tfh_entry *dg_peek(void *arg, uint32_t *n)
{
	return gen_peek(((struct dg *)arg)->g, n);
}

static inline void dg_advance(void *arg, uint32_t n)
{
	gen_advance(((struct dg *)arg)->g, n);
}

static inline const char *dg_name(void *arg, uint32_t p, enum tft_name kind, uint32_t id,
				  uint64_t *handle, uint64_t *extra)
{
	return gen_name(((struct dg *)arg)->g, p, kind, id, handle, extra);
}

static inline int dg_rewind_ops(void *arg, uint32_t p, struct tfh_err *err)
{
	(void)p;
	(void)err;
	((struct dg *)arg)->at = 0;
	return 0;
}

static inline bool dg_next_op(void *arg, struct tfh_op *op)
{
	struct dg *d = arg;

	if (d->at == d->n)
		return false;
	*op = d->op[d->at++];
	return true;
}

static inline void dg_gpu(void *arg, uint32_t p, struct tfh_gpu_info *out)
{
	(void)p;
	*out = ((struct dg *)arg)->gpu;
}

static inline struct dg *dg_new(void)
{
	struct dg *d = calloc(1, sizeof(*d));

	d->g = gen_new();
	for (int i = 0; i < GEN_THREADS; i++)
		d->now[i] = 100;
	d->gpu = (struct tfh_gpu_info){
		.source = TFH_GPU_CUPTI, .dependencies = true, .processors = 80, .why = ""};
	d->depth = 1024;
	return d;
}

static inline struct tfh_event *dg_call(struct dg *d, uint32_t thread, enum tfh_fn fn, double ms)
{
	double t = d->now[thread];

	d->now[thread] = t + ms;
	return gen_call(d->g, thread, fn, t, t + ms);
}

/* The thread's own code between calls. */
static inline void dg_code(struct dg *d, uint32_t thread, double ms)
{
	d->now[thread] += ms;
}

static inline void dg_code_until(struct dg *d, uint32_t thread, double t)
{
	if (t > d->now[thread])
		d->now[thread] = t;
}

/* An op issued by a call that begins at `issue`; its start and end follow. */
static inline struct tfh_op *dg_op(struct dg *d, uint32_t stream, double issue, double latency,
				   double ms)
{
	double t = issue + latency;

	if (d->n == d->cap) {
		d->cap = d->cap ? 2 * d->cap : 4096;
		d->op = realloc(d->op, d->cap * sizeof(*d->op));
		assert_non_null(d->op);
	}
	t = fmax(t, d->end[stream] > 0 ? d->end[stream] + DG_NEXT : 0);
	t = fmax(t, d->wait[stream] > 0 ? d->wait[stream] + DG_NEXT : 0);
	d->wait[stream] = 0;
	d->end[stream] = t + ms;
	d->queue[d->queued++ % 4096] = t + ms;
	struct tfh_op *op = &d->op[d->n++];
	*op = (struct tfh_op){.t0 = gen_ns(t),
			      .t1 = gen_ns(t + ms),
			      .device = d->device[stream],
			      .ctx = 1 + d->device[stream],
			      .stream = 10 + stream,
			      .kind = TFH_OP_KERNEL,
			      .name = "gemm",
			      .grid = 1000 | 1ull << 32 | 1ull << 48,
			      .block = 256,
			      .correlation = ++d->correlation,
			      .call = UINT64_MAX};
	return op;
}

static inline void dg_issued(struct tfh_op *op, const struct tfh_event *ev)
{
	op->issue0 = ev->t0;
	op->issue1 = ev->t1;
	op->thread = ev->thread;
	op->call = ev->number;
}

/* Launches a kernel of that duration. A full queue holds the caller up. */
static inline struct tfh_op *dg_launch(struct dg *d, uint32_t thread, uint32_t stream, double ms)
{
	double t = d->now[thread], room = 0, took = DG_CALL;

	if (d->queued >= d->depth)
		room = d->queue[(d->queued - d->depth) % 4096];
	if (room > t + DG_CALL)
		took = room - t;
	struct tfh_op *op = dg_op(d, stream, t + took - DG_CALL, DG_LATENCY, ms);
	struct tfh_event *ev = dg_call(d, thread, TFH_FN_cuLaunchKernel, took);
	ev->stream = stream;
	ev->w[0] = 1;
	dg_issued(op, ev);
	return op;
}

static inline struct tfh_op *dg_collective(struct dg *d, uint32_t thread, uint32_t stream,
					   double ms)
{
	struct tfh_op *op = dg_launch(d, thread, stream, ms);

	op->communication = true;
	op->name = "ncclDevKernel_AllReduce";
	return op;
}

static inline void dg_copy_op(struct tfh_op *op, enum tfh_dir dir, uint64_t bytes, bool pageable)
{
	op->kind = TFH_OP_COPY;
	op->dir = (uint8_t)dir;
	op->bytes = bytes;
	op->pageable = pageable;
	op->name = "";
	op->grid = op->block = 0;
}

/* Queues a copy of pinned memory. */
static inline void dg_copy(struct dg *d, uint32_t thread, uint32_t stream, enum tfh_dir dir,
			   uint64_t bytes, double ms)
{
	struct tfh_op *op = dg_op(d, stream, d->now[thread], DG_LATENCY, ms);
	struct tfh_event *ev = dg_call(d, thread,
				       dir == TFH_DIR_D2H ? TFH_FN_cuMemcpyDtoHAsync_v2
							  : TFH_FN_cuMemcpyHtoDAsync_v2,
				       DG_CALL);

	ev->stream = stream;
	ev->w[0] = bytes;
	dg_copy_op(op, dir, bytes, false);
	dg_issued(op, ev);
}

/* A copy that blocks the caller until it is done. */
static inline void dg_copy_blocking(struct dg *d, uint32_t thread, uint32_t stream,
				    enum tfh_dir dir, uint64_t bytes, double ms)
{
	struct tfh_op *op = dg_op(d, stream, d->now[thread], DG_LATENCY, ms);
	double took = d->end[stream] + DG_WAKE - d->now[thread];
	struct tfh_event *ev =
		dg_call(d, thread,
			dir == TFH_DIR_D2H ? TFH_FN_cuMemcpyDtoH_v2 : TFH_FN_cuMemcpyHtoD_v2, took);

	ev->stream = stream;
	ev->w[0] = bytes;
	ev->pageable = true;
	dg_copy_op(op, dir, bytes, true);
	dg_issued(op, ev);
}

static inline void dg_sync(struct dg *d, uint32_t thread, uint32_t stream)
{
	double end = fmax(d->end[stream], d->wait[stream]);
	double took = fmax(2 * US, end + DG_WAKE - d->now[thread]);

	dg_call(d, thread, TFH_FN_cuStreamSynchronize, took)->stream = stream;
}

static inline void dg_sync_all(struct dg *d, uint32_t thread)
{
	double end = 0;

	for (int s = 0; s < DG_STREAMS; s++)
		end = fmax(end, d->end[s]);
	dg_call(d, thread, TFH_FN_cuCtxSynchronize, fmax(2 * US, end + DG_WAKE - d->now[thread]));
}

static inline void dg_record(struct dg *d, uint32_t thread, uint32_t event, uint32_t stream)
{
	struct tfh_event *ev = dg_call(d, thread, TFH_FN_cuEventRecord, 1 * US);

	ev->stream = stream;
	ev->w[0] = 0x1000 + 8 * event;
	d->event[event] = fmax(d->end[stream], d->wait[stream]);
}

static inline void dg_wait(struct dg *d, uint32_t thread, uint32_t stream, uint32_t event)
{
	struct tfh_event *ev = dg_call(d, thread, TFH_FN_cuStreamWaitEvent, 1 * US);

	ev->stream = stream;
	ev->w[0] = 0x1000 + 8 * event;
	d->wait[stream] = fmax(d->wait[stream], d->event[event]);
}

static inline void dg_sync_event(struct dg *d, uint32_t thread, uint32_t event)
{
	double took = fmax(2 * US, d->event[event] + DG_WAKE - d->now[thread]);

	dg_call(d, thread, TFH_FN_cuEventSynchronize, took)->w[0] = 0x1000 + 8 * event;
}

/* A graph of n kernels, each of that duration, `gap` apart; one call. */
static inline void dg_graph(struct dg *d, uint32_t thread, uint32_t stream, int n, double ms,
			    double gap)
{
	double issue = d->now[thread];
	struct tfh_event *ev = dg_call(d, thread, TFH_FN_cuGraphLaunch, 10 * US);
	struct tfh_event copy = *ev;

	ev->stream = stream;
	for (int i = 0; i < n; i++) {
		if (i)
			d->end[stream] += gap - DG_NEXT;
		struct tfh_op *op = dg_op(d, stream, issue, DG_LATENCY, ms);
		dg_issued(op, &copy);
		op->graph = 1;
		op->node = (uint64_t)i + 1;
		op->correlation = (uint32_t)copy.number + 1000000;
	}
}

/* The training loop's batch. */
static inline void dg_get(struct dg *d, uint32_t thread, double ms)
{
	struct tfh_event *ev = dg_call(d, thread, TFH_FN_tf_getnext_op, ms);

	ev->w[0] = 1;
	ev->depth = 1;
}

static inline void dg_get_until(struct dg *d, uint32_t thread, double t)
{
	dg_get(d, thread, fmax(3 * US, t - d->now[thread]));
}

static inline int dg_order(const void *a, const void *b)
{
	const struct tfh_op *x = a, *y = b;

	if (x->t0 != y->t0)
		return x->t0 < y->t0 ? -1 : 1;
	return x->correlation < y->correlation ? -1 : x->correlation > y->correlation;
}

/* Sorts and connects; the feed may then be judged. */
static inline struct tfh_feed *dg_feed(struct dg *d)
{
	struct gen *g = d->g;

	qsort(g->ev, g->n, sizeof(*g->ev), gen_order);
	if (d->n)
		qsort(d->op, d->n, sizeof(*d->op), dg_order);
	g->feed.arg = d;
	g->feed.rewind = dg_rewind;
	g->feed.next = dg_next;
	g->feed.peek = dg_peek;
	g->feed.advance = dg_advance;
	g->feed.row = NULL;
	g->feed.name = dg_name;
	g->feed.rewind_ops = dg_rewind_ops;
	g->feed.next_op = dg_next_op;
	g->feed.ops_error = gen_error;
	g->feed.gpu = dg_gpu;
	g->feed.n_holes = g->n_hole;
	g->feed.holes = g->hole;
	g->feed.wall_ns = g->ev[g->n - 1].t1;
	if (!d->gpu.n_span) {
		d->gpu.n_span = 1;
		d->span[0] = (struct tfh_gpu_span){0, INT64_MAX, true};
	}
	d->gpu.span = d->span;
	for (size_t i = 0; i < d->n; i++) {
		d->op[i].number = i;
		if (d->op[i].t1 > g->feed.wall_ns)
			g->feed.wall_ns = d->op[i].t1;
	}
	return &g->feed;
}

static inline void dg_free(struct dg *d)
{
	gen_free(d->g);
	free(d->op);
	free(d);
}

static inline struct tfh_result *dg_judge(struct dg *d)
{
	struct tfh_result *r = NULL;
	struct tfh_err err = {0};

	if (tfh_analyze_feed(dg_feed(d), &r, &err))
		print_error("%s\n", err.text);
	dg_free(d);
	assert_non_null(r);
	return r;
}

static inline const struct tfh_whatif *dg_whatif(const struct tfh_result *r, enum tfh_remove what)
{
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (r->whatif[i].remove == what)
			return &r->whatif[i];
	return NULL;
}

static inline double dg_step_ms(const struct tfh_result *r)
{
	double step = 0;

	for (int p = 0; p < TFH_PART_COUNT; p++)
		step += r->breakdown[p].s_per_step * 1e3;
	return step;
}

/* The what-if has a point, exact to 1 % of the truth, and its interval holds it. */
static inline void dg_predicts(const struct tfh_result *r, enum tfh_remove what, double ms)
{
	const struct tfh_whatif *w = dg_whatif(r, what);

	assert_non_null(w);
	if (!(fabs(w->step_s * 1e3 - ms) <= 0.01 * ms) || w->low_s * 1e3 > ms * 1.001 ||
	    w->high_s * 1e3 < ms * 0.999)
		print_message("without %s: %.4f ms (%.4f to %.4f), truth %.4f\n",
			      tfh_remove_name(what), w->step_s * 1e3, w->low_s * 1e3,
			      w->high_s * 1e3, ms);
	assert_true(fabs(w->step_s * 1e3 - ms) <= 0.01 * ms);
	assert_true(w->low_s * 1e3 <= ms * 1.001 && w->high_s * 1e3 >= ms * 0.999);
}

/* Tier A, closed accounts, and this class. */
static inline void dg_check(const struct tfh_result *r, enum tfh_class cls)
{
	gen_closed(r);
	assert_int_equal(r->verdict.tier, 'A');
	if (r->verdict.cls != cls)
		for (int p = 0; p < TFH_PART_COUNT; p++)
			print_message("%s %.4f ms\n", tfh_part_name(p),
				      r->breakdown[p].s_per_step * 1e3);
	assert_string_equal(tfh_class_name(r->verdict.cls), tfh_class_name(cls));
}

/* n kernels of one thread. */
static inline void dg_launches(struct dg *d, uint32_t stream, int n, double ms)
{
	for (int i = 0; i < n; i++)
		dg_launch(d, 0, stream, ms);
}

#endif
