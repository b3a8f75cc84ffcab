/* Several ranks, and several devices of one process, that share collectives: each is judged by
 * itself, waiting for a late one is called jitter, the late one comes first with its own cause, and
 * a predicted gain is limited by the slowest of all. */
#include "../world.h"

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
	uint32_t stream[WORLD_MOST] = {1, 1, 1, 1};

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
	uint32_t stream[WORLD_MOST] = {1, 1, 1, 1};

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_rank),	  cmocka_unit_test(test_even_ranks),
		cmocka_unit_test(test_two_communicators), cmocka_unit_test(test_limited_gain),
		cmocka_unit_test(test_late_in_turn),	  cmocka_unit_test(test_late_start),
		cmocka_unit_test(test_uneven_work),	  cmocka_unit_test(test_no_ranks),
		cmocka_unit_test(test_late_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
