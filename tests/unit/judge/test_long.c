/*
 * Arrays that grow with a run keep their exact values after they move from memory to a file. Order
 * statistics of many numbers equal those of the sorted numbers, and finding them does not bring the whole
 * array into memory. A step of very many calls is charged like one of few.
 */
#include "analyze_gen.h"

#include "judge/account/device.h"

#define MANY 1500000

static uint64_t seed = 1;

static uint64_t number(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return seed >> 33;
}

/* 12 MB, pushed one by one, trimmed again and again. */
static void test_array_in_a_file(void **state)
{
	TFH_VEC(uint64_t) v = {0};
	uint64_t *other = tfh_big_array(MANY, sizeof(*other));

	(void)state;
	assert_non_null(other);
	for (uint64_t i = 0; i < MANY; i++) {
		assert_int_equal(TFH_PUSH_BIG(v, i * 3), 0);
		assert_int_equal(other[i], 0);
		other[i] = ~i;
		tfh_big_pass(i);
	}
	assert_true(tfh_big_filed() >= 2 * MANY * sizeof(*other) || !tfh_big_filed());
	tfh_big_trim();
	for (uint64_t i = 0; i < MANY; i++)
		if (v.v[i] != i * 3 || other[i] != ~i)
			fail_msg("element %lu", (unsigned long)i);
	tfh_big_free(v.v);
	tfh_big_free(other);
	assert_int_equal(tfh_big_filed(), 0);
}

/* Without room for files there is memory. */
static void test_no_file(void **state)
{
	TFH_VEC(uint64_t) v = {0};
	size_t had = tfh_big_filed();

	(void)state;
	/* More arrays than there may be files. */
	uint64_t *other[66];
	for (int i = 0; i < 66; i++)
		assert_non_null(other[i] = tfh_big_array(1100000, sizeof(uint64_t)));
	for (uint64_t i = 0; i < 2000000; i++)
		assert_int_equal(TFH_PUSH_BIG(v, i), 0);
	for (uint64_t i = 0; i < 2000000; i += 1000)
		assert_int_equal(v.v[i], i);
	for (int i = 0; i < 66; i++)
		tfh_big_free(other[i]);
	tfh_big_free(v.v);
	assert_int_equal(tfh_big_filed(), had);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static void test_order_statistics(void **state)
{
	double *v = malloc(MANY * sizeof(*v)), *sorted = malloc(MANY * sizeof(*v));

	(void)state;
	/* Of both signs, many of them equal. */
	for (size_t i = 0; i < MANY; i++)
		sorted[i] = v[i] = ((double)(number() % 100000) - 30000) / 7;
	qsort(sorted, MANY, sizeof(*sorted), by_value);
	for (size_t k = 0; k < MANY; k += 350001)
		assert_true(tfh_select(v, MANY, k) == sorted[k]);
	assert_true(tfh_select(v, MANY, MANY - 1) == sorted[MANY - 1]);
	for (double q = 0; q <= 1; q += 0.19) {
		double at = q * (MANY - 1);
		size_t i = (size_t)at;
		double want = sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
		assert_true(tfh_quantile(v, MANY, q) == want);
	}
	free(v);
	free(sorted);
}

/* The most memory that the process has had since the last call, in KiB; 0 if the kernel does not say. */
static long most_memory(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "VmHWM:", 6))
			kib = strtol(line + 6, NULL, 10);
	if (f)
		fclose(f);
	f = fopen("/proc/self/clear_refs", "w");
	if (!f || fputs("5", f) < 0)
		kib = 0;
	if (f)
		fclose(f);
	return kib;
}

/* Of 32 MB, in order and out of it. */
static void test_select_memory(void **state)
{
	size_t n = 4000000;
	double *v = tfh_big_array(n, sizeof(*v));

	(void)state;
	assert_non_null(v);
	for (int mixed = 0; mixed < 2; mixed++) {
		TFH_EACH (i, n)
			v[i] = mixed ? (double)number() : (double)i;
		tfh_big_trim();
		most_memory();
		long before = most_memory();
		double x = tfh_quantile(v, n, 0.3);
		long most = most_memory();
		if (tfh_big_filed() && before && most - before > 12 << 10)
			fail_msg("%ld KiB for the quantile %g of %zu", most - before, x, n);
	}
	tfh_big_free(v);
}

static int by_number(const void *a, const void *b, void *arg)
{
	uint64_t x = *(const uint64_t *)a >> 8, y = *(const uint64_t *)b >> 8;

	(void)arg;
	return x < y ? -1 : x > y;
}

/* Nearly in order, and not at all; equals keep their order. */
static void test_sort(void **state)
{
	uint64_t *v = malloc(MANY * sizeof(*v));

	(void)state;
	for (int far = 0; far < 2; far++) {
		for (uint64_t i = 0; i < MANY; i++)
			v[i] = (far ? number() : i / 4 + number() % 20) << 8;
		for (uint64_t i = 1; i < MANY; i++)
			v[i] |= v[i] >> 8 == v[i - 1] >> 8 ? (v[i - 1] + 1) & 0xff : 0;
		tfh_sort(v, MANY, sizeof(*v), by_number, NULL);
		for (uint64_t i = 1; i < MANY; i++)
			if (v[i] >> 8 < v[i - 1] >> 8)
				fail_msg("out of order at %lu", (unsigned long)i);
	}
	free(v);
}

/* Three steps, each of `ops` short ops with pauses between them around one that is most of it. */
static struct tfh_result *steps_of(uint32_t ops, double op, double pause)
{
	struct gen *g = gen_new();
	double t = 0;

	g->name[TFT_NAME_OP][1] = "MatMul";
	for (int i = 0; i < 6; i++) {
		gen_get(g, 0, 1, 0, t, t + 5)->depth = 0;
		t += 5;
		for (uint32_t k = 0; k < ops; k++) {
			t += pause;
			gen_exec(g, 1, t, t + op);
			t += op;
			if (k != ops / 2)
				continue;
			gen_exec(g, 1, t, t + 2000);
			t += 2000;
		}
		t += pause;
	}
	return gen_judge(g);
}

/* Behind the long op pauses are callbacks, before it they are not. */
static void test_step_of_many_calls(void **state)
{
	struct tfh_result *few = steps_of(20, 1, 60), *many = steps_of(20000, 0.001, 0.06);

	(void)state;
	gen_closed(many);
	gen_part(few, TFH_PART_HOST, 21 * 60);
	gen_part(many, TFH_PART_HOST, 20001 * 0.06);
	assert_true(fabs(few->stages[TFH_STAGE_POSTPROCESS].exposed_s - 10 * 60e-3) < 5e-3);
	assert_true(fabs(many->stages[TFH_STAGE_POSTPROCESS].exposed_s - 10000 * 0.06e-3) < 5e-3);
	tfh_result_free(few);
	tfh_result_free(many);
}

/* Two chunks of 5,000 batches each, every one seen by two wrappers. */
static int two_digests(void *arg, uint32_t process, tfh_digest_cb cb, void *cb_arg)
{
	struct tfh_digest *d = calloc(1, sizeof(*d));
	int rc = 0;

	(void)arg;
	assert_int_equal(process, 0);
	for (int i = 0; i < 2; i++) {
		d->t0 = gen_ns(600 + 50000 * i);
		d->t1 = d->t0 + gen_ns(50000);
		d->n_fn = 1;
		d->fn[0] = (struct tfh_digest_fn){&tfh_fn_table[TFH_FN_tf_getnext_op], 5000,
						  gen_ns(5000)};
		d->n_clock = 3;
		for (int k = 0; k < 2; k++)
			d->clock[k] = (struct tfh_digest_clock){
				&tfh_fn_table[k ? TFH_FN_tf_getnext_optional_op
						: TFH_FN_tf_getnext_op],
				1, 5000, d->t0 + gen_ns(1), d->t1 - gen_ns(9)};
		/* An op is no clock here. */
		d->clock[2] = (struct tfh_digest_clock){&tfh_fn_table[TFH_FN_TFE_Execute], 1, 9000,
							d->t0, d->t1};
		rc = rc ? rc : cb(cb_arg, d);
	}
	free(d);
	return rc;
}

/* 60 steps, 100 s of which only sketches are left, 60 steps: the same steps as without it. */
static void test_given_up(void **state)
{
	const struct tfh_discarded_span span = {0, gen_ns(600), gen_ns(100600), 20000};
	struct gen *g = gen_new();

	(void)state;
	g->name[TFT_NAME_OP][1] = "__inference_train_step_1";
	for (int i = 0; i < 120; i++) {
		double t = i * 10 + (i < 60 ? 0 : 100000);
		gen_get(g, 0, 1, 0, t, t + 1)->depth = 0;
		gen_exec(g, 1, t + 1, t + 9.99);
	}
	g->feed.discarded = &span;
	g->feed.n_discarded = 1;
	g->feed.digests = two_digests;
	struct tfh_result *r = gen_judge(g);
	gen_closed(r);
	assert_true(r->steps.total_s > 1.1 && r->steps.total_s < 1.2);
	assert_true(fabs(r->steps.median_s - 0.010) < 1e-6);
	for (uint64_t i = 0; i < r->n_step; i++)
		assert_true(r->step[i].dur_s < 0.011);
	double all = 0;
	for (uint32_t i = 0; i < r->n_segments; i++)
		all += r->segments[i].total_s;
	assert_true(all < 1.3);
	assert_int_equal(r->n_discarded, 1);
	assert_int_equal(r->discarded[0].steps, 10000);
	assert_false(r->discarded[0].estimated);
	assert_true(fabs(r->discarded[0].mean_s - 0.010) < 1e-5);
	assert_true(fabs(r->discarded[0].median_s - 0.010) < 1e-5);
	assert_int_equal(r->discarded[0].n_call, 1);
	assert_int_equal(r->discarded[0].call[0].count, 10000);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_array_in_a_file),
		cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_order_statistics),
		cmocka_unit_test(test_select_memory),
		cmocka_unit_test(test_sort),
		cmocka_unit_test(test_step_of_many_calls),
		cmocka_unit_test(test_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
