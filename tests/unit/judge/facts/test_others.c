/* What must hold: in native code, a wait until another thread has done something is that thread's work if other threads
 * of the process ran meanwhile, and a lock otherwise; before a copy to the device it may be for a batch, but not the end of
 * a thread after results were fetched. A wait for a lock that is held is one everywhere. What a thread runs once another
 * one has released a lock is the lock's, for as long as the wait lasted; without a lock it is the thread's own. */
#include "../devgen.h"
#include "format/waits.h"

static struct tfh_sample machine[4];

static uint32_t machine_samples(void *arg, uint32_t process, const struct tfh_sample **out)
{
	(void)arg;
	(void)process;
	*out = machine;
	return sizeof(machine) / sizeof(*machine);
}

static void sample(struct gen *g, uint32_t thread, double t, enum tft_state state,
		   enum tft_wait wait)
{
	struct tfh_event *ev = gen_call(g, thread, TFH_FN_NONE, t, t);

	ev->kind = TFT_STATE;
	ev->result = (uint16_t)state;
	ev->w[1] = (uint64_t)(uint32_t)wait << 32;
	ev->w[2] = 10000000;
}

/* 200 steps of 12 ms, the last 10 of which are a pause in which samples see the thread wait. `fetches`: results before it;
 * `copies`: a batch behind it. `busy`: processors that other threads use. */
static struct tfh_result *waits(enum tft_wait wait, bool fetches, bool copies, double busy)
{
	struct gen *g = gen_new();
	double t = 100;

	g->process.exe = "/opt/job";
	for (int i = 0; i < 200; i++, t += 12) {
		if (copies)
			gen_copy(g, TFH_FN_cuMemcpyHtoD_v2, t, t + 0.1, 1 << 20, false);
		gen_call(g, 0, TFH_FN_cuLaunchKernel, t + 0.11, t + 0.12)->w[0] = 1;
		if (fetches)
			gen_copy(g, TFH_FN_cuMemcpyDtoH_v2, t + 0.2, t + 1.9, 1 << 16, false);
		else
			gen_call(g, 0, TFH_FN_cuStreamSynchronize, t + 0.2, t + 1.9);
		sample(g, 0, t + 2.5 + i % 9, TFT_STATE_LOCK, wait);
	}
	memset(machine, 0, sizeof(machine));
	for (int i = 0; i < 4; i++) {
		machine[i].t = gen_ns(100 + 800 * i);
		machine[i].cpus = 2;
		machine[i].cpu_s = i ? 0.8 * busy : 0;
	}
	g->feed.samples = machine_samples;
	return gen_judge(g);
}

static double ms(const struct tfh_result *r, enum tfh_cause cause)
{
	return 1e3 * r->found.cause_s[cause];
}

static void test_waits(void **state)
{
	(void)state;
	static const struct {
		enum tft_wait wait;
		bool fetches, copies;
		double busy;
		enum tfh_cause cause;
	} rows[] = {
		{TFT_WAIT_SIGNAL, false, false, 0.9, TFH_CAUSE_HOST_CODE},
		{TFT_WAIT_SIGNAL, false, false, 0.05, TFH_CAUSE_HOST_LOCK},
		{TFT_WAIT_SIGNAL, false, true, 0.9, TFH_CAUSE_INPUT_UNKNOWN},
		{TFT_WAIT_SIGNAL, true, true, 0.9, TFH_CAUSE_INPUT_UNKNOWN},
		{TFT_WAIT_END, false, false, 0.9, TFH_CAUSE_HOST_CODE},
		{TFT_WAIT_END, false, true, 0.9, TFH_CAUSE_INPUT_UNKNOWN},
		{TFT_WAIT_END, true, true, 0.9, TFH_CAUSE_HOST_CODE},
		{TFT_WAIT_END, true, true, 0.05, TFH_CAUSE_HOST_LOCK},
		{TFT_WAIT_MUTEX, false, false, 0.9, TFH_CAUSE_HOST_LOCK},
		{TFT_WAIT_MUTEX, true, true, 0.9, TFH_CAUSE_HOST_LOCK},
		{TFT_WAIT_ANY, false, false, 0.9, TFH_CAUSE_HOST_LOCK},
		{TFT_WAIT_ANY, true, true, 0.9, TFH_CAUSE_INPUT_UNKNOWN},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct tfh_result *r =
			waits(rows[i].wait, rows[i].fetches, rows[i].copies, rows[i].busy);
		if (ms(r, rows[i].cause) < 9)
			fail_msg("row %zu: %s, %g ms", i, tfh_cause_name(r->verdict.cause),
				 ms(r, rows[i].cause));
		tfh_result_free(r);
	}
}

/* A thread's turn of 8 ms: it runs for 5, launches and waits for the device. The other one has the next turn, and waits
 * meanwhile. */
static struct tfh_result *turns(enum tft_wait wait)
{
	struct dg *d = dg_new();
	double cpu[2] = {0, 0};

	d->g->process.exe = "/opt/job";
	for (int i = 0; i < 400; i++) {
		uint32_t of = (uint32_t)i % 2;
		double t = 100 + 8.0 * i;
		dg_code_until(d, of, t);
		sample(d->g, of, t + 0.2 + i * 7 % 45 / 10.0, TFT_STATE_RUNNING, TFT_WAIT_ANY);
		sample(d->g, 1 - of, t + 0.3 + i * 7 % 75 / 10.0, TFT_STATE_LOCK, wait);
		dg_code(d, of, 5);
		struct tfh_event *ev = gen_call(d->g, of, TFH_FN_NONE, t + 5, t + 5);
		ev->kind = TFT_CPUTIME;
		ev->w[0] = (uint64_t)gen_ns(cpu[of] += 5);
		dg_launch(d, of, 0, 2.9);
		dg_sync(d, of, 0);
	}
	return dg_judge(d);
}

static void test_turns(void **state)
{
	(void)state;
	struct tfh_result *r = turns(TFT_WAIT_MUTEX);

	if (ms(r, TFH_CAUSE_HOST_LOCK) < 4 * ms(r, TFH_CAUSE_HOST_CODE))
		fail_msg("a lock: %g ms, code %g", ms(r, TFH_CAUSE_HOST_LOCK),
			 ms(r, TFH_CAUSE_HOST_CODE));
	tfh_result_free(r);
	r = turns(TFT_WAIT_SIGNAL);
	if (ms(r, TFH_CAUSE_HOST_CODE) < 4 * ms(r, TFH_CAUSE_HOST_LOCK))
		fail_msg("a signal: %g ms of code, lock %g", ms(r, TFH_CAUSE_HOST_CODE),
			 ms(r, TFH_CAUSE_HOST_LOCK));
	tfh_result_free(r);
}

/* Whether waits as random as those for requests may be such. */
static enum tfh_serves served(enum tft_wait wait)
{
	struct dg *d = dg_new();
	uint32_t seed = 7;

	d->g->process.exe = "/opt/job";
	for (int i = 0; i < 400; i++) {
		seed = seed * 1664525 + 1013904223;
		double t = d->now[0], idle = -6 * log(1 - (seed >> 8) / 16777216.0);
		for (double at = 0.5; at < idle; at += 2)
			sample(d->g, 0, t + at, TFT_STATE_LOCK, wait);
		dg_code(d, 0, idle);
		dg_launches(d, 0, 2, 1);
		dg_sync(d, 0, 0);
	}
	struct tfh_result *r = dg_judge(d);
	enum tfh_serves serves = r->found.serves;
	assert_int_equal(r->steady.cause, TFH_CAUSE_HOST_LOCK);
	tfh_result_free(r);
	return serves;
}

/* A mutex is held by a thread of the process: no request comes through it. */
static void test_served(void **state)
{
	(void)state;
	assert_int_equal(served(TFT_WAIT_MUTEX), TFH_SERVES_NOT);
	assert_int_equal(served(TFT_WAIT_ANY), TFH_SERVES_MAYBE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_served),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
