/* Several ranks, and several devices of one process, that share collectives: each is judged by
 * itself, waiting for a late one is called jitter, the late one comes first with its own cause, and
 * a predicted gain is limited by the slowest of all. */
#include "../devgen.h"

#define MOST 4

struct world {
	struct dg *d[MOST];
	struct tfh_process process[MOST];
	struct tfh_thread_info thread[MOST * GEN_THREADS];
	struct tfh_feed feed;
	uint32_t n, current;
};

static int w_rewind(void *arg, uint32_t p, struct tfh_err *err)
{
	struct world *w = arg;

	w->current = p;
	return dg_rewind(w->d[p], 0, err);
}

static bool w_next(void *arg, struct tfh_event *ev)
{
	struct world *w = arg;

	if (!dg_next(w->d[w->current], ev))
		return false;
	ev->process = w->current;
	ev->thread += w->current * GEN_THREADS;
	return true;
}

static const char *w_name(void *arg, uint32_t p, enum tft_name kind, uint32_t id, uint64_t *handle,
			  uint64_t *extra)
{
	return dg_name(((struct world *)arg)->d[p], 0, kind, id, handle, extra);
}

static int w_rewind_ops(void *arg, uint32_t p, struct tfh_err *err)
{
	struct world *w = arg;

	w->current = p;
	return dg_rewind_ops(w->d[p], 0, err);
}

static bool w_next_op(void *arg, struct tfh_op *op)
{
	struct world *w = arg;

	if (!dg_next_op(w->d[w->current], op))
		return false;
	op->process = w->current;
	if (op->thread != UINT32_MAX)
		op->thread += w->current * GEN_THREADS;
	return true;
}

static int no_error(void *arg, struct tfh_err *err)
{
	(void)arg;
	(void)err;
	return 0;
}

static void w_gpu(void *arg, uint32_t p, struct tfh_gpu_info *out)
{
	*out = ((struct world *)arg)->d[p]->gpu;
}

/* `ranks`: whether a launcher numbers the processes. */
static struct tfh_result *judge_some(struct world *w, bool ranks)
{
	struct tfh_result *r = NULL;
	struct tfh_err err = {0};

	for (uint32_t i = 0; i < w->n; i++) {
		struct tfh_feed *f = dg_feed(w->d[i]);
		w->process[i] = f->processes[0];
		w->process[i].rank = ranks ? (int32_t)i : -1;
		w->process[i].pid = GEN_PID + 1000 * i;
		for (uint32_t t = 0; t < GEN_THREADS; t++) {
			w->thread[i * GEN_THREADS + t] = f->threads[t];
			w->thread[i * GEN_THREADS + t].process = i;
		}
		if (f->wall_ns > w->feed.wall_ns)
			w->feed.wall_ns = f->wall_ns;
	}
	w->feed.arg = w;
	w->feed.rewind = w_rewind;
	w->feed.next = w_next;
	w->feed.error = w->feed.ops_error = no_error;
	w->feed.name = w_name;
	w->feed.rewind_ops = w_rewind_ops;
	w->feed.next_op = w_next_op;
	w->feed.gpu = w_gpu;
	w->feed.processes = w->process;
	w->feed.n_processes = w->n;
	w->feed.threads = w->thread;
	w->feed.n_threads = w->n * GEN_THREADS;
	if (tfh_analyze_feed(&w->feed, &r, &err))
		print_error("%s\n", err.text);
	for (uint32_t i = 0; i < w->n; i++)
		dg_free(w->d[i]);
	assert_non_null(r);
	return r;
}

static struct tfh_result *judge_all(struct world *w)
{
	return judge_some(w, true);
}

/* Collectives queued last on `stream` of each rank or device run from the last one's start on. */
static void meet(struct dg *const *d, const uint32_t *stream, uint32_t n, double ms)
{
	double last = 0;

	for (uint32_t i = 0; i < n; i++)
		last = fmax(last, d[i]->end[stream[i]] - US);
	for (uint32_t i = 0; i < n; i++) {
		d[i]->end[stream[i]] = last + ms;
		for (size_t k = d[i]->n; k-- > 0;)
			if (d[i]->op[k].stream == 10 + stream[i]) {
				d[i]->op[k].t1 = gen_ns(last + ms);
				break;
			}
	}
}

/* Ranks that take a batch, compute 10 ms, exchange for 2 ms and update. */
static struct tfh_result *job(uint32_t n, uint32_t late, double get, double compute_late)
{
	struct world w = {.n = n};
	uint32_t stream[MOST] = {1, 1, 1, 1};

	for (uint32_t i = 0; i < n; i++)
		w.d[i] = dg_new();
	for (int s = 0; s < 60; s++) {
		for (uint32_t i = 0; i < n; i++) {
			dg_get(w.d[i], 0, i == late ? get : 0.05);
			for (int k = 0; k < 10; k++)
				dg_launch(w.d[i], 0, 1, i == late ? compute_late : 1);
			dg_collective(w.d[i], 0, 1, US);
		}
		meet(w.d, stream, n, 2);
		for (uint32_t i = 0; i < n; i++) {
			dg_launch(w.d[i], 0, 1, 0.5);
			dg_sync(w.d[i], 0, 1);
		}
	}
	return judge_all(&w);
}

/* One rank waits for its input, all others for it. */
static void test_late_rank(void **state)
{
	(void)state;
	struct tfh_result *r = job(4, 2, 8, 1), *even = job(4, 2, 0.05, 1);

	gen_closed(r);
	assert_int_equal(r->verdict.tier, 'A');
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	assert_int_equal(r->process, 2);
	gen_part(r, TFH_PART_INPUT, 8);
	gen_part(r, TFH_PART_COMMUNICATION, 2);
	assert_int_equal(r->n_rank, 4);
	for (uint32_t i = 0; i < 4; i++) {
		const struct tfh_rank *k = &r->rank[i];
		assert_int_equal(k->rank, i);
		assert_int_equal(k->straggler, i == 2);
		assert_true(fabs(k->jitter_s * 1e3 - (i == 2 ? 0 : 7.95)) < 0.2);
		if (i != 2)
			assert_int_equal(k->cause, TFH_CAUSE_COMMUNICATION_JITTER);
	}
	assert_non_null(gen_says(r, "this is rank 2 of 4"));
	dg_predicts(r, TFH_REMOVE_INPUT, even->steps.median_s * 1e3);
	tfh_result_free(r);
	tfh_result_free(even);
}

/* Nobody is late. */
static void test_even_ranks(void **state)
{
	(void)state;
	struct tfh_result *r = job(3, 0, 0.05, 1);

	assert_string_equal(tfh_class_name(r->verdict.cls), "communication-bound");
	assert_int_equal(r->verdict.cause, TFH_CAUSE_COMMUNICATION_TRANSFER);
	gen_part(r, TFH_PART_COMMUNICATION, 2);
	for (uint32_t i = 0; i < 3; i++)
		assert_false(r->rank[i].straggler);
	tfh_result_free(r);
}

/* The call of NCCL that launched the op issued last. */
static void called(struct dg *d, uint64_t communicator, uint32_t number)
{
	int64_t issued = d->op[d->n - 1].issue0;
	struct tfh_event *ev = dg_call(d, 0, TFH_FN_ncclAllReduce, US);

	ev->t0 = issued;
	ev->w[0] = 1 << 20;
	ev->w[1] = communicator;
	ev->w[2] = number | 0xffffffffull << 32;
}

/* Two pairs of ranks that exchange among themselves, side by side: only the calls tell who waits
 * for whom. */
static void test_two_communicators(void **state)
{
	(void)state;
	struct world w = {.n = 4};
	uint32_t stream[2] = {1, 1};

	for (uint32_t i = 0; i < 4; i++)
		w.d[i] = dg_new();
	for (uint32_t s = 0; s < 60; s++) {
		for (uint32_t i = 0; i < 4; i++) {
			dg_get(w.d[i], 0, i == 1 ? 6 : 0.05);
			for (int k = 0; k < 10; k++)
				dg_launch(w.d[i], 0, 1, i < 2 ? 1 : 1.59);
			dg_collective(w.d[i], 0, 1, US);
			called(w.d[i], i < 2 ? 77 : 88, s + 1);
		}
		meet(w.d, stream, 2, 2);
		meet(w.d + 2, stream, 2, 2);
		for (uint32_t i = 0; i < 4; i++)
			dg_sync(w.d[i], 0, 1);
	}
	struct tfh_result *r = judge_all(&w);
	assert_int_equal(r->n_rank, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(fabs(r->rank[i].jitter_s * 1e3 - (i ? 0 : 5.95)) < 0.2);
	assert_true(r->rank[1].straggler);
	assert_true(fabs(r->rank[3].late_s) < 1e-4);
	tfh_result_free(r);
}

/* A rank that waits for its input beside one that computes longer: its gain ends where the other
 * one's need begins. */
static void test_limited_gain(void **state)
{
	(void)state;
	struct world w = {.n = 2};
	uint32_t stream[2] = {1, 1};

	for (uint32_t i = 0; i < 2; i++)
		w.d[i] = dg_new();
	for (int s = 0; s < 60; s++) {
		for (uint32_t i = 0; i < 2; i++) {
			dg_get(w.d[i], 0, i ? 0.05 : 8);
			for (int k = 0; k < 10; k++)
				dg_launch(w.d[i], 0, 1, i ? 1.5 : 1);
			dg_collective(w.d[i], 0, 1, US);
		}
		meet(w.d, stream, 2, 1);
		for (uint32_t i = 0; i < 2; i++)
			dg_sync(w.d[i], 0, 1);
	}
	struct tfh_result *r = judge_all(&w);
	assert_int_equal(r->process, 0);
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	dg_predicts(r, TFH_REMOVE_INPUT, 16.08);
	tfh_result_free(r);
}

/* `ms` of computing of a rank in a step, before the exchange. */
typedef double (*computing)(uint32_t rank, int step);

static struct tfh_result *compute_and_meet(uint32_t n, computing ms)
{
	struct world w = {.n = n};
	uint32_t stream[MOST] = {1, 1, 1, 1};

	for (uint32_t i = 0; i < n; i++)
		w.d[i] = dg_new();
	for (int s = 0; s < 60; s++) {
		for (uint32_t i = 0; i < n; i++) {
			dg_get(w.d[i], 0, 0.05);
			dg_launch(w.d[i], 0, 1, ms(i, s));
			dg_collective(w.d[i], 0, 1, US);
		}
		meet(w.d, stream, n, 1);
		for (uint32_t i = 0; i < n; i++)
			dg_sync(w.d[i], 0, 1);
	}
	return judge_all(&w);
}

static double in_turn(uint32_t rank, int step)
{
	return rank == (uint32_t)step % 2 ? 10 : 6;
}

/* Two ranks that are late in turn wait for each other: none of them is a straggler. */
static void test_late_in_turn(void **state)
{
	(void)state;
	struct tfh_result *r = compute_and_meet(2, in_turn);

	assert_true(r->rank[0].late_s > 1e-3 && r->rank[1].late_s > 1e-3);
	assert_false(r->rank[0].straggler || r->rank[1].straggler);
	assert_null(gen_says(r, "all others wait"));
	tfh_result_free(r);
}

static double late_start(uint32_t rank, int step)
{
	return rank == 0 && step == 0 ? 1000 : 6;
}

/* A rank that only started later is late for nothing after that. */
static void test_late_start(void **state)
{
	(void)state;
	struct tfh_result *r = compute_and_meet(2, late_start);

	for (uint32_t i = 0; i < 2; i++) {
		assert_true(r->rank[i].late_s < 0.1e-3);
		assert_false(r->rank[i].straggler);
	}
	tfh_result_free(r);
}

static double uneven(uint32_t rank, int step)
{
	(void)step;
	return rank == 0 ? 5 : rank == 1 ? 8 : 12;
}

/* Three ranks with three amounts of work: all wait for the one with most, and it is said that it
 * computes longer. A median of three says nothing of that. */
static void test_uneven_work(void **state)
{
	(void)state;
	struct tfh_result *r = compute_and_meet(3, uneven);

	assert_int_equal(r->process, 2);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(r->rank[i].straggler, i == 2);
	assert_true(fabs(r->rank[2].held_s * 1e3 - 4) < 0.1);
	assert_non_null(gen_says(r, "computes 12 ms of every step, the others 6.5 ms"));
	tfh_result_free(r);
}

/* Processes that nobody numbers: one is judged, and the report says that there is another one. */
static void test_no_ranks(void **state)
{
	(void)state;
	struct world w = {.n = 2};

	for (uint32_t i = 0; i < 2; i++) {
		w.d[i] = dg_new();
		for (int s = 0; s < 40; s++) {
			dg_get(w.d[i], 0, 0.05);
			dg_launch(w.d[i], 0, 1, 5);
			dg_sync(w.d[i], 0, 1);
		}
	}
	struct tfh_result *r = judge_some(&w, false);
	assert_int_equal(r->n_rank, 0);
	assert_non_null(gen_remark(r, "1 more made about as many calls and is not judged"));
	tfh_result_free(r);
}

/* Two devices of one process, one of which is slower: the other one's waiting in the collective is
 * jitter, and the step is the slow one's. */
static void late_device(uint32_t devices, bool collectives)
{
	struct dg *d = dg_new();
	struct dg *both[2] = {d, d};
	uint32_t stream[2] = {1, 2};

	d->device[2] = 1;
	d->gpu.devices = devices;
	d->gpu.collectives = collectives;
	for (int s = 0; s < 60; s++) {
		dg_get(d, 0, 0.05);
		for (int k = 0; k < 10; k++) {
			dg_launch(d, 0, 1, 1);
			dg_launch(d, 0, 2, 1.5);
		}
		dg_collective(d, 0, 1, US);
		dg_collective(d, 0, 2, US);
		meet(both, stream, 2, 0.2);
		dg_launch(d, 0, 1, 0.1);
		dg_launch(d, 0, 2, 0.1);
		dg_sync_all(d, 0);
	}
	struct tfh_result *r = dg_judge(d);
	gen_closed(r);
	assert_string_equal(tfh_class_name(r->verdict.cls), "compute-bound");
	gen_part(r, TFH_PART_COMPUTE, 15.1);
	gen_part(r, TFH_PART_COMMUNICATION, 0.2);
	tfh_result_free(r);
}

static void test_late_device(void **state)
{
	(void)state;
	late_device(0, false); /* nobody has counted the devices */
	late_device(2, true);
}

/* ---- ranks on the CPU, which exchange on threads of their own (PyTorch's names of gloo's) ---- */

enum { BACKWARD = 1, ALL_REDUCE = 1, SEND = 2 };

static void exchange(struct dg *d, uint32_t thread, uint32_t name, double t0, double t1)
{
	struct tfh_event *ev = gen_call(d->g, thread, TFH_FN_mark_range, t0, t1);

	ev->kind = TFT_RANGE;
	ev->w[0] = name;
	ev->w[1] = TFT_RANGE_EXCHANGE;
}

static struct dg *on_cpu(void)
{
	struct dg *d = dg_new();

	d->g->name[TFT_NAME_OP][BACKWARD] = "__inference_backward_1";
	d->g->name[TFT_NAME_STRING][ALL_REDUCE] = "gloo:all_reduce";
	d->g->name[TFT_NAME_STRING][SEND] = "gloo:send";
	d->g->process.torch = "recorded";
	d->gpu = (struct tfh_gpu_info){.source = TFH_GPU_NONE};
	return d;
}

/*
 * Each step of a rank: its batch, a backward pass whose last gradients are there after 5 ms, and the exchange of two
 * buckets, the first of which (2 ms) is hidden behind computing. The last takes 6 ms from when all ranks have come.
 */
static struct tfh_result *on_cpus(uint32_t n, uint32_t late, double get, bool ranks)
{
	struct world w = {.n = n};
	double t = 100;

	for (uint32_t i = 0; i < n; i++)
		w.d[i] = on_cpu();
	for (int s = 0; s < 60; s++) {
		double met = t + fmax(get, 0.1) + 5;
		for (uint32_t i = 0; i < n; i++) {
			double own = t + (i == late ? get : 0.1);
			gen_get(w.d[i]->g, 0, 1, 0, t, own)->depth = 0;
			gen_exec(w.d[i]->g, BACKWARD, own, met + 7);
			exchange(w.d[i], 1, ALL_REDUCE, own + 1, met - 2);
			exchange(w.d[i], 2, ALL_REDUCE, own + 5, met + 6);
		}
		t = met + 7.02;
	}
	return judge_some(&w, ranks);
}

/* What the backward pass waits for is communication; what it computes meanwhile is not. */
static void test_exposed_exchange(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 2; n++) {
		struct tfh_result *r = on_cpus(n, 0, 0.1, true);
		gen_closed(r);
		gen_expect(r, TFH_CLASS_COMMUNICATION_BOUND, TFH_CAUSE_COMMUNICATION_TRANSFER);
		gen_part(r, TFH_PART_COMMUNICATION, 6);
		gen_part(r, TFH_PART_COMPUTE, 6);
		assert_true(r->jitter_s == 0);
		tfh_result_free(r);
	}
}

/* The rank whose loader is slow leads, with its own cause; the other one's wait for it is distinguished from the transfer of both buckets. */
static void test_late_on_cpu(void **state)
{
	(void)state;
	struct tfh_result *r = on_cpus(2, 1, 15, true);

	gen_closed(r);
	gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
	assert_int_equal(r->process, 1);
	assert_true(r->rank[1].straggler && !r->rank[0].straggler);
	assert_int_equal(r->rank[0].cause, TFH_CAUSE_COMMUNICATION_JITTER);
	assert_true(fabs(r->rank[0].jitter_s * 1e3 - 12.9) < 0.2);
	tfh_result_free(r);
	for (uint32_t late = 0; late < 2; late++) { /* so it is if nobody numbers them */
		r = on_cpus(2, late, 15, false);
		gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_UNKNOWN);
		assert_int_equal(r->process, late);
		assert_int_equal(r->n_rank, 2);
		assert_true(r->rank[late].straggler && r->rank[late].rank == (int32_t)late);
		assert_non_null(gen_remark(r, "no launcher numbers the ranks"));
		tfh_result_free(r);
	}
}

/* Two jobs that exchange, each for itself, are no ranks of one, although their exchanges overlap. */
static void test_two_jobs(void **state)
{
	(void)state;
	struct world w = {.n = 2};

	for (uint32_t i = 0; i < 2; i++) {
		double t = 100 + 3 * i, step = i ? 10.3 : 10;
		w.d[i] = on_cpu();
		for (int s = 0; s < 60; s++, t += step) {
			gen_get(w.d[i]->g, 0, 1, 0, t, t + 0.1)->depth = 0;
			gen_exec(w.d[i]->g, BACKWARD, t + 0.1, t + step);
			exchange(w.d[i], 1, ALL_REDUCE, t + 3, t + 9.9);
		}
	}
	struct tfh_result *r = judge_some(&w, false);
	assert_int_equal(r->n_rank, 0);
	assert_non_null(gen_remark(r, "1 more made about as many calls and is not judged"));
	tfh_result_free(r);
}

/* One of two ranks has longer batches: it is said what its step would be if both had equally long ones. */
static void test_uneven_on_cpu(void **state)
{
	(void)state;
	struct world w = {.n = 3};
	const double compute[] = {4, 4, 10};

	for (uint32_t i = 0; i < w.n; i++)
		w.d[i] = on_cpu();
	for (int s = 0; s < 60; s++)
		for (uint32_t i = 0; i < w.n; i++) {
			double t = 100 + 12 * s;
			gen_get(w.d[i]->g, 0, 1, 0, t, t + 0.1)->depth = 0;
			gen_exec(w.d[i]->g, BACKWARD, t + 0.1, t + 11.9);
			exchange(w.d[i], 1, ALL_REDUCE, t + 0.1 + compute[i], t + 11.5);
		}
	struct tfh_result *r = judge_some(&w, false);
	assert_int_equal(r->n_rank, 3);
	assert_int_equal(r->process, 2);
	assert_true(r->rank[2].straggler);
	assert_non_null(gen_says(r, "computes 10.4 ms of every step, the others 4.4 ms"));
	tfh_result_free(r);
}

enum { AT_LOOP = 1, AT_VALIDATION, TRAINS = 1, VALIDATES, FORWARD = 3 };

static uint32_t places(void *arg, uint32_t process, uint32_t place, struct tfh_model_line *frame,
		       uint32_t most)
{
	uint32_t n = 0;

	(void)arg;
	(void)process;
	if (!place || most < 4)
		return 0;
	frame[n++] = (struct tfh_model_line){"/job/model.py", "forward", 7, false};
	if (place == AT_VALIDATION) {
		frame[n++] = (struct tfh_model_line){"/job/train.py", "validate", 11, false};
		frame[n++] = (struct tfh_model_line){"/lib/torch/decorate.py", "decorate", 1, true};
	}
	frame[n++] = (struct tfh_model_line){"/job/train.py", "main",
					     place == AT_VALIDATION ? 23 : 21, false};
	return n;
}

/* One of two ranks evaluates every fourth step, and the other waits for it: it is that one that is named, with the line
 * at which it is meanwhile, and a step is predicted with what it takes without. */
static void test_late_evaluation(void **state)
{
	(void)state;
	struct world w = {.n = 2};
	double t = 100;

	for (uint32_t i = 0; i < w.n; i++)
		w.d[i] = on_cpu();
	w.feed.place = w.feed.lines = places;
	for (int s = 0; s < 80; s++, t += 11) {
		for (uint32_t i = 0; i < w.n; i++) {
			gen_get(w.d[i]->g, 0, TRAINS, 0, t, t + 0.1)->depth = 0;
			gen_sample(w.d[i]->g, 0, t + 0.4, TFT_STATE_RUNNING, AT_LOOP, 5);
			gen_exec(w.d[i]->g, BACKWARD, t + 1, t + 10);
			exchange(w.d[i], 1, ALL_REDUCE, t + 9 + 0.1 * i, t + 9.9);
		}
		if (s % 4 != 3)
			continue;
		double met = t + 11 + 50;
		for (int e = 0; e < 5; e++) {
			double at = t + 11 + 10 * e;
			gen_get(w.d[0]->g, 0, VALIDATES, 0, at, at + 0.1)->depth = 0;
			gen_sample(w.d[0]->g, 0, at + 1, TFT_STATE_RUNNING, AT_VALIDATION, 5);
			gen_exec(w.d[0]->g, FORWARD, at + 2, at + 9.9);
		}
		gen_exec(w.d[1]->g, FORWARD, t + 11, met + 0.5);
		exchange(w.d[0], 1, ALL_REDUCE, met, met + 0.5);
		exchange(w.d[1], 1, ALL_REDUCE, t + 11, met + 0.5);
		t = met + 0.5;
	}
	for (uint32_t i = 0; i < w.n; i++) {
		w.d[i]->g->name[TFT_NAME_OP][FORWARD] = "__inference_forward_2";
		w.d[i]->g->process.has_gpu = false; /* samples are calls of no library */
	}
	struct tfh_result *r = judge_some(&w, true);
	gen_expect(r, TFH_CLASS_COMMUNICATION_BOUND, TFH_CAUSE_COMMUNICATION_JITTER);
	assert_int_equal(r->process, 1);
	assert_true(r->rank[0].straggler && !r->rank[1].straggler);
	assert_string_equal(r->found.line.function, "main");
	assert_int_equal(r->found.line.line, 23);
	assert_string_equal(r->found.line.callee, "validate");
	assert_non_null(gen_says(r, "rank 0 of 2 makes all others wait"));
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (r->whatif[i].remove == TFH_REMOVE_COMMUNICATION)
			assert_true(r->whatif[i].about_s > 10e-3 && r->whatif[i].about_s < 14e-3 &&
				    r->whatif[i].high_s > r->whatif[i].about_s &&
				    r->whatif[i].high_s < 20e-3);
	tfh_result_free(r);
}

/* Messages between two ranks, on which the others wait for nobody, are transferred all the time. */
static void test_messages(void **state)
{
	(void)state;
	struct world w = {.n = 2};

	for (uint32_t i = 0; i < 2; i++)
		w.d[i] = on_cpu();
	for (int s = 0; s < 60; s++)
		for (uint32_t i = 0; i < 2; i++) {
			double t = 100 + 10 * s;
			gen_get(w.d[i]->g, 0, 1, 0, t, t + 0.1)->depth = 0;
			gen_exec(w.d[i]->g, BACKWARD, t + 0.1, t + 4);
			exchange(w.d[i], 1, SEND, t + 4, t + 9.9 - i);
		}
	struct tfh_result *r = judge_all(&w);
	gen_closed(r);
	gen_expect(r, TFH_CLASS_COMMUNICATION_BOUND, TFH_CAUSE_COMMUNICATION_TRANSFER);
	assert_true(r->jitter_s == 0);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_rank),	  cmocka_unit_test(test_even_ranks),
		cmocka_unit_test(test_two_communicators), cmocka_unit_test(test_limited_gain),
		cmocka_unit_test(test_late_device),	  cmocka_unit_test(test_late_in_turn),
		cmocka_unit_test(test_uneven_work),	  cmocka_unit_test(test_no_ranks),
		cmocka_unit_test(test_late_start),	  cmocka_unit_test(test_exposed_exchange),
		cmocka_unit_test(test_late_on_cpu),	  cmocka_unit_test(test_messages),
		cmocka_unit_test(test_two_jobs),	  cmocka_unit_test(test_uneven_on_cpu),
		cmocka_unit_test(test_late_evaluation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
