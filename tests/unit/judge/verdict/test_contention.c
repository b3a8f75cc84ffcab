/* CPU contention. A thread that goes on late after the device has woken it is called host.sync on a machine with CPUs to spare, and
 * host.cpu-contention where the kernel says that the driving threads were ready to run without a CPU; then, too, work that was
 * interrupted does not outweigh what it would not outweigh by itself. What limits the job itself stays the verdict while it takes more
 * than the waiting for CPUs. The report says who had the CPUs. */
#include "../devgen.h"

enum { SAMPLES = 40, EVERY_MS = 25 };

static struct tfh_sample sample[SAMPLES];

static uint32_t samples(void *arg, uint32_t process, const struct tfh_sample **out)
{
	(void)arg;
	(void)process;
	*out = sample;
	return SAMPLES;
}

/* Of each second, thread 0 runs and is ready to run without a CPU for so long. Sums begin with what start-up took. */
static void shares(struct dg *d, double runs, double waits)
{
	for (int i = 0; i < SAMPLES; i++) {
		double t = 1e-3 * EVERY_MS * i;
		sample[i] = (struct tfh_sample){.t = gen_ns(EVERY_MS * i), .threads = 2};
		sample[i].thread[0] = (struct tfh_thread_times){0, runs * (1 + t), waits * (1 + t)};
		/* one that does not drive */
		sample[i].thread[1] = (struct tfh_thread_times){5, 0.9 * t, 0.5 * t};
	}
	d->g->feed.samples = samples;
}

/* Steps of one pause, as many launches, and a wait from which the thread returns late. */
static struct dg *job(double pause, int launches, double kernel, double late)
{
	struct dg *d = dg_new();

	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, 3 * US);
		dg_code(d, 0, pause);
		dg_launches(d, 1, launches, kernel);
		double took = d->end[1] + DG_WAKE + late - d->now[0];
		dg_call(d, 0, TFH_FN_cuStreamSynchronize, took)->stream = 1;
	}
	return d;
}

static void test_late(void **state)
{
	(void)state;
	for (int crowded = 0; crowded < 2; crowded++) {
		struct dg *d = job(20 * US, 4, 1, 6);
		shares(d, 0.05, crowded ? 0.6 : 0.001);
		struct tfh_result *r = dg_judge(d);
		dg_check(r, TFH_CLASS_HOST_BOUND);
		assert_int_equal(r->verdict.cause,
				 crowded ? TFH_CAUSE_HOST_CONTENTION : TFH_CAUSE_HOST_SYNC);
		gen_part(r, TFH_PART_SYNC, 6);
		assert_int_equal(r->verdict.confidence,
				 crowded ? TFH_CONFIDENCE_MEDIUM : TFH_CONFIDENCE_HIGH);
		assert_true(r->found.cause_s[TFH_CAUSE_HOST_SYNC] > (crowded ? 0 : 5.9e-3));
		assert_true(r->found.cause_s[TFH_CAUSE_HOST_SYNC] < (crowded ? 0.3e-3 : 6.1e-3));
		tfh_result_free(r);
	}
}

/* A job that computes stays one while the waiting takes less than that; the report tells of it. */
static void test_less_than_computing(void **state)
{
	(void)state;
	struct dg *d = job(20 * US, 10, 1, 6);

	shares(d, 0.05, 0.3);
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_COMPUTE_BOUND);
	assert_int_equal(r->verdict.confidence, TFH_CONFIDENCE_MEDIUM);
	assert_true(r->found.contended.share > 0.3 && r->found.contended.share < 0.4);
	assert_non_null(gen_remark(r, "ready to run, but waited for a CPU"));
	r->found.contended.busy = 2;
	r->found.contended.own = 0.25;
	assert_non_null(gen_remark(r, "0.25 by this job, 1.75 by others"));
	tfh_result_free(r);
}

/* A pause of 2.4 ms of which two thirds were without a CPU is one of 0.8 ms: 7 % of the rest. */
static void test_interrupted(void **state)
{
	(void)state;
	for (int crowded = 0; crowded < 2; crowded++) {
		struct dg *d = job(2.4, 10, 1, 0);
		shares(d, 0.07, crowded ? 0.14 : 0.0001);
		struct tfh_result *r = dg_judge(d);
		dg_check(r, crowded ? TFH_CLASS_COMPUTE_BOUND : TFH_CLASS_HOST_BOUND);
		gen_part(r, TFH_PART_HOST, 2.4);
		tfh_result_free(r);
	}
}

static double low_without_host(const struct tfh_result *r)
{
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (r->whatif[i].remove == TFH_REMOVE_HOST)
			return 1e3 * r->whatif[i].low_s;
	return NAN;
}

/* What remains of a step without the program's own code contains 3 ms without a CPU. On a machine with CPUs to spare it may not, but
 * computing remains. */
static void test_less_crowded_later(void **state)
{
	(void)state;
	double low[2];

	for (int crowded = 0; crowded < 2; crowded++) {
		struct dg *d = job(6, 4, 1, 3);
		shares(d, 0.5, crowded ? 0.3 : 0.0001);
		struct tfh_result *r = dg_judge(d);
		low[crowded] = low_without_host(r);
		tfh_result_free(r);
	}
	if (!(low[1] < low[0] - 1 && low[1] > 3.9))
		fail_msg("%g and %g ms", low[0], low[1]);
}

/* Launching takes twice as long as it would: launching it stays, as nothing else is left without it. */
static void test_own_defect(void **state)
{
	(void)state;
	struct dg *d = job(20 * US, 2000, 1 * US, 1);

	shares(d, 0.5, 0.5);
	struct tfh_result *r = dg_judge(d);
	dg_check(r, TFH_CLASS_HOST_BOUND);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_LAUNCH);
	assert_int_equal(r->verdict.confidence, TFH_CONFIDENCE_MEDIUM);
	tfh_result_free(r);
}

/* The program asks the device now and then, and sleeps in between: that it is late is its own doing. */
static void test_polls(void **state)
{
	(void)state;
	struct dg *d = dg_new();

	for (int i = 0; i < 60; i++) {
		dg_get(d, 0, 3 * US);
		dg_launches(d, 1, 4, 1);
		dg_record(d, 0, 1, 1);
		for (bool done = false; !done; dg_code(d, 0, done ? 10 * US : 5)) {
			done = d->now[0] >= d->event[1];
			struct tfh_event *ev = dg_call(d, 0, TFH_FN_cuEventQuery, 2 * US);
			ev->w[0] = 0x1008;
			ev->result = done ? 0 : 600;
		}
	}
	shares(d, 0.05, 0.3);
	struct tfh_result *r = dg_judge(d);
	assert_int_equal(r->found.cause_s[TFH_CAUSE_HOST_CONTENTION] > 0, false);
	tfh_result_free(r);
}

/* A function of the program runs in the stream, and the driver's thread gets a CPU late for it and tells the device late that it has
 * ended. None of that is another process's use of the device, which is late in the same way without a function. */
static void test_late_functions(void **state)
{
	(void)state;
	for (int function = 0; function < 2; function++) {
		struct dg *d = dg_new();
		for (int i = 0; i < 60; i++) {
			dg_get(d, 0, 3 * US);
			dg_launches(d, 1, 2, 1);
			if (function) {
				dg_call(d, 0, TFH_FN_cuLaunchHostFunc, DG_CALL)->stream = 1;
				gen_call(d->g, 2, TFH_FN_host_function, d->end[1] + 0.4,
					 d->end[1] + 2.4)
					->stream = 1;
			}
			d->end[1] += 3;
			dg_launches(d, 1, 2, 1);
			dg_sync(d, 0, 1);
		}
		struct tfh_result *r = dg_judge(d);
		double others = r->found.cause_s[TFH_CAUSE_COMPUTE_CONTENTION];
		assert_int_equal(r->verdict.cause,
				 function ? TFH_CAUSE_HOST_CALLBACK : TFH_CAUSE_COMPUTE_CONTENTION);
		assert_true(function ? others <= 0 : others > 2.9e-3);
		tfh_result_free(r);
	}
}

/* Steps of ten short kernels, each waited for; the thread continues late after one wait of 16. */
static struct tfh_result *many_waits(double late, double waits)
{
	struct dg *d = dg_new();

	for (int i = 0; i < 320; i++) {
		if (i % 10 == 0)
			dg_get(d, 0, 3 * US);
		dg_launches(d, 1, 1, 0.1);
		double took = d->end[1] + 30 * US + (i % 16 ? 0 : late) - d->now[0];
		dg_call(d, 0, TFH_FN_cuStreamSynchronize, took)->stream = 1;
		dg_code(d, 0, 40 * US);
	}
	shares(d, 0.3, waits);
	return dg_judge(d);
}

/* With CPUs for all, the job still waits for each kernel, for as long as it did where it found a CPU. That it does is told, too, with
 * the larger gain of not doing it. */
static void test_own_waits_stay(void **state)
{
	(void)state;
	struct tfh_result *alone = many_waits(0, 1e-4), *r = many_waits(4, 0.5);
	double step = alone->steps.median_s;
	struct tfh_wording w;

	assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_CONTENTION);
	assert_true(isnan(alone->uncrowded.ceiling_speedup));
	assert_true(r->uncrowded.low_s < step && r->uncrowded.high_s > step);
	assert_true(fabs(r->uncrowded.about_s - step) < 0.05 * step);
	tfh_wording_make(&w, r);
	assert_non_null(strstr(w.advice[0].finding, "too few CPUs"));
	assert_non_null(strstr(w.advice[1].finding, "waits for the device too often"));
	assert_true(w.advice[0].saved_s > 0 && w.advice[1].saved_s > w.advice[0].saved_s);
	tfh_wording_free(&w);
	tfh_result_free(alone);
	tfh_result_free(r);
}

/* Every 25th step computes for eight times as long. If a sample of the steps has none of these, CPUs for all still spare no more than
 * the waits for them. */
static void test_longer_steps(void **state)
{
	struct dg *d = dg_new();

	(void)state;
	for (int i = 0; i < 2000; i++) {
		dg_get(d, 0, 3 * US);
		dg_launches(d, 1, 1, i % 25 ? 2.5 : 20);
		if (i % 100 == 99)
			dg_sync(d, 0, 1);
	}
	shares(d, 0.3, 0.05);
	struct tfh_result *r = dg_judge(d);
	double step = r->steps.total_s / (double)r->steps.count;
	assert_false(r->uncrowded.low_s < 0.99 * step);
	tfh_result_free(r);
}

/* Whose threads had the CPUs decides what to do about it. */
static void test_words(void **state)
{
	(void)state;
	struct dg *d = job(20 * US, 4, 1, 6);
	struct tfh_wording w;

	shares(d, 0.05, 0.6);
	struct tfh_result *r = dg_judge(d);
	for (int own = 0; own < 2; own++) {
		r->found.contended.busy = 2;
		r->found.contended.own = own ? 0.4 : 0.1;
		r->found.workers.processes = own ? 2 : 0;
		r->found.workers.runs = 0.7;
		tfh_wording_make(&w, r);
		assert_non_null(strstr(w.text, "ready to run but waits for a CPU"));
		bool who = false; /* is to blame, which the first screen says */
		for (uint32_t i = 0; i < w.n_evidence; i++)
			who |= w.tells[i] == TFH_TELLS_WHO;
		assert_true(who);
		assert_non_null(strstr(w.advice[0].todo,
				       own ? "fewer loader workers" : "stop other programs"));
		tfh_wording_free(&w);
	}
	tfh_result_free(r);
}

/* 40 steps that wait 15 ms for their batch and compute for 8 ms, while the process uses so many of 2 CPUs: without that wait. */
static struct tfh_whatif without_input(double cpus, double waits)
{
	struct dg *d = dg_new();

	for (int i = 0; i < SAMPLES; i++) {
		dg_get(d, 0, 15);
		dg_launches(d, 1, 1, 8);
		dg_sync(d, 0, 1);
	}
	shares(d, 0.3, waits);
	for (int i = 0; i < SAMPLES; i++) {
		sample[i].cpus = 2;
		sample[i].cpu_s = cpus * EVERY_MS / 1e3;
		sample[i].run_delay_s = waits * EVERY_MS / 1e3;
	}
	struct tfh_result *r = dg_judge(d);
	struct tfh_whatif w = *dg_whatif(r, TFH_REMOVE_INPUT);
	tfh_result_free(r);
	return w;
}

/* Work of the pipeline that stays cannot be hidden where the CPUs are full: then the step without the wait is what it takes at best. */
static void test_full(void **state)
{
	(void)state;
	struct tfh_whatif idle = without_input(0.4, 1e-4), near = without_input(0.8, 1e-4),
			  busy = without_input(1.5, 1e-4), full = without_input(1.5, 0.5);

	assert_int_equal(tfh_gain_of(&idle), TFH_GAIN_PREDICTED);
	/* it still fits into an interval around the point */
	assert_int_equal(tfh_gain_of(&near), TFH_GAIN_PREDICTED);
	assert_true(near.high_s > 9e-3 && near.high_s > idle.high_s);
	assert_int_equal(tfh_gain_of(&busy), TFH_GAIN_BOUND);
	assert_true(busy.high_s > 16e-3 && busy.high_s < 19e-3);
	assert_int_equal(tfh_gain_of(&full), TFH_GAIN_BOUND);
	assert_true(full.high_s > 22e-3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late),	       cmocka_unit_test(test_less_than_computing),
		cmocka_unit_test(test_interrupted),    cmocka_unit_test(test_less_crowded_later),
		cmocka_unit_test(test_own_defect),     cmocka_unit_test(test_polls),
		cmocka_unit_test(test_longer_steps),   cmocka_unit_test(test_words),
		cmocka_unit_test(test_late_functions), cmocka_unit_test(test_own_waits_stay),
		cmocka_unit_test(test_full),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
