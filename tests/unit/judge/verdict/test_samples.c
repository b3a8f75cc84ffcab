/* Machine samples, taken once a second, lead to remarks. One reports memory that the job takes from
 * the kernel again and again, if and only if that takes over 5 % of its time: not for memory that
 * grows, nor without measurements. If the job's threads wait for a CPU, that is reported with the
 * number. */
#include "../analyze_gen.h"

enum { OP_GET = 1, OP_TRAIN };
enum { SECONDS = 4 };

static struct tfh_sample sample[SECONDS];

static uint32_t samples(void *arg, uint32_t process, const struct tfh_sample **out)
{
	(void)arg;
	(void)process;
	*out = sample;
	return SECONDS;
}

static struct gen *job(void)
{
	struct gen *g = gen_new();

	g->name[TFT_NAME_OP][OP_GET] = "IteratorGetNext";
	g->name[TFT_NAME_OP][OP_TRAIN] = "__inference_train_step_12";
	for (int i = 0; i < 60 * SECONDS; i++) {
		double t = 100 + 20 * i;
		gen_get(g, 0, 1, 1, t, t + 8);
		gen_exec(g, OP_GET, t, t + 8);
		gen_exec(g, OP_TRAIN, t + 8.02, t + 20);
	}
	return g;
}

/* A second has 50 steps, `faults` page faults of so many microseconds, and keeps so much of what
 * they brought. */
static bool told(double faults, double us, double keeps)
{
	struct gen *g = job();

	for (int i = 0; i < SECONDS; i++)
		sample[i] = (struct tfh_sample){
			.t = gen_ns(1000 * (i + 0.5)),
			.cpu_s = 1,
			.cpus = 2,
			.faults = (uint64_t)faults,
			.fault_s = us / 1e6,
			.system_s = 0.4,
			.resident_bytes = 100000000 + (uint64_t)(keeps * faults * 4096 * i),
			.page_bytes = 4096};
	g->feed.samples = samples;
	struct tfh_result *r = gen_judge(g);
	const char *remark = gen_remark(r, "MALLOC_MMAP_MAX_");
	bool has = remark != NULL;
	/* 100,000 a second are 2,000 of a step */
	if (has && faults == 100000)
		assert_non_null(strstr(remark, "2000 page faults cost a step of 20.0 ms"));
	tfh_result_free(r);
	return has;
}

static void test_remark(void **state)
{
	(void)state;
	assert_true(told(100000, 0.8, 0));
	assert_true(told(100000, 0.8, 0.2));
	assert_false(told(100000, 0.8, 0.9)); /* a cache is filled */
	assert_false(told(30000, 0.8, 0));    /* 2.4 % */
	assert_false(told(100000, 0, 0));     /* a recording without */
}

/* Threads that wait 0.4 s of every second for processors are reported, in words and as a number; a
 * job that was alone has the number; one without samples has none. Where they wait for each other, what stays of a step
 * without its input has no bound; a job that uses one CPU waits for others, which it does in proportion to its work. */
static void test_crowd(void **state)
{
	enum { ITSELF, OTHERS, ALONE, NO_SAMPLES, CASES };

	(void)state;
	for (int k = 0; k < CASES; k++) {
		struct gen *g = job();
		bool crowd = k == ITSELF || k == OTHERS;
		for (int i = 0; i < SECONDS; i++)
			sample[i] = (struct tfh_sample){.t = gen_ns(1000 * (i + 0.5)),
							.cpu_s = k == ITSELF ? 1.6 : 1,
							.cpus = 2,
							.run_delay_s = crowd ? 0.4 : 0.001};
		g->feed.samples = k != NO_SAMPLES ? samples : NULL;
		struct tfh_result *r = gen_judge(g);
		assert_true(r->quality.crowded == crowd);
		assert_true(r->n_whatif > 0);
		assert_true(isnan(r->whatif[0].ceiling_speedup) == (k == ITSELF));
		assert_true((r->whatif[0].no_bound != NULL) == (k == ITSELF));
		assert_int_equal(tfh_gain_of(&r->whatif[0]) == TFH_GAIN_LEAST, k == ITSELF);
		assert_true(
			(gen_remark(
				 r,
				 "threads together waited for a CPU for 400 ms of every second") !=
			 NULL) == crowd);
		if (k == NO_SAMPLES)
			assert_true(isnan(r->quality.run_delay_share));
		else
			assert_float_equal(r->quality.run_delay_share, crowd ? 0.4 : 0.001, 1e-6);
		tfh_result_free(r);
	}
}

/* A loop that makes its own batches and computes next to nothing, while other threads use so many CPUs: they may compute what it
 * issues, so without the making of batches a step may take that long. */
static double most_without_input(double others)
{
	struct gen *g = gen_new();
	double high = NAN;

	g->name[TFT_NAME_OP][OP_GET] = "IteratorGetNext";
	g->name[TFT_NAME_OP][OP_TRAIN] = "__inference_train_step_12";
	g->name[TFT_NAME_STAGE][1] = "Iterator::Root#id=1,parent_id=0#";
	g->name[TFT_NAME_STAGE][2] = "Iterator::Root::Map#id=2#";
	for (int i = 0; i < 60 * SECONDS; i++) {
		double t = 100 + 20 * i;
		gen_get(g, 0, 1, 1, t, t + 19);
		gen_exec(g, OP_GET, t, t + 19);
		gen_stage(g, 0, 2, t, t + 18.9, 18.8);
		gen_stage(g, 0, 1, t, t + 19, 0.1);
		gen_exec(g, OP_TRAIN, t + 19.4, t + 20);
	}
	for (int i = 0; i < SECONDS; i++) {
		sample[i] = (struct tfh_sample){.t = gen_ns(1000 * (i + 0.5)),
						.cpu_s = 1 + others,
						.cpus = 2,
						.threads = 1};
		sample[i].thread[0] = (struct tfh_thread_times){.thread = 0, .run_s = i};
	}
	g->feed.samples = samples;
	struct tfh_result *r = gen_judge(g);
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (r->whatif[i].remove == TFH_REMOVE_INPUT)
			high = 1e3 * r->whatif[i].high_s;
	tfh_result_free(r);
	return high;
}

static void test_hidden(void **state)
{
	(void)state;
	double alone = most_without_input(0), more = most_without_input(0.6);

	if (!(fabs(more - alone - 0.6 * 20 / 2) < 0.1))
		fail_msg("%g and %g ms", alone, more);
}

/* Only the wait during the steps counts: compilers that crowd the processors before the first step distort none. */
static void test_crowd_before(void **state)
{
	(void)state;
	for (int k = 0; k < 2; k++) {
		struct gen *g = job();
		for (size_t i = 0; i < g->n; i++) {
			g->ev[i].t0 += gen_ns(1000);
			g->ev[i].t1 += gen_ns(1000);
		}
		for (int i = 0; i < SECONDS; i++)
			sample[i] = (struct tfh_sample){.t = gen_ns(1000 * i + 200),
							.cpu_s = 1,
							.cpus = 2,
							.run_delay_s =
								(i < 2) == (k == 0) ? 1.5 : 0.01};
		g->feed.samples = samples;
		struct tfh_result *r = gen_judge(g);
		assert_true(r->quality.crowded == (k == 1));
		assert_float_equal(r->quality.run_delay_share, k ? 1.5 : 0.01, 1e-6);
		tfh_result_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_remark),
		cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_crowd_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
