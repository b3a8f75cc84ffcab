/* Steps that grow or shrink steadily are one change, from the first to the last; levels are changes at their borders; a short
 * ramp, or noise, is neither. A level at which the threads waited for a CPU for as long as the steps took longer is none. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "judge/verdict/verdict.h"

enum { STEPS = 400, SAMPLES = 40 };

static struct tfh_sample sample[SAMPLES];

static uint32_t samples(void *arg, uint32_t process, const struct tfh_sample **out)
{
	(void)arg, (void)process;
	*out = sample;
	return SAMPLES;
}

static struct tfh_thread_info info;
static const struct tfh_feed feed = {.samples = samples, .threads = &info, .n_threads = 1};
static struct tfh_thread_use thread[] = {{.drives = true}};
static struct tfh_facts facts = {.feed = &feed, .thread = thread};
static const struct tfh_accounts accounts = {.facts = &facts};

/* A result whose steps last length(i) seconds, of which `host` grows. */
static struct tfh_result *steps(double (*length)(int))
{
	struct tfh_result *r = calloc(1, sizeof(*r));

	r->step = calloc(STEPS, sizeof(*r->step));
	r->n_step = r->steps.count = STEPS;
	for (int i = 0; i < STEPS; i++) {
		r->step[i].segment = TFH_SEGMENT_TRAIN;
		r->step[i].start_s = i ? r->step[i - 1].start_s + r->step[i - 1].dur_s : 0;
		r->step[i].dur_s = length(i);
		r->step[i].breakdown[TFH_PART_HOST] = (float)length(i);
	}
	assert_int_equal(tfh_find_changes(&accounts, r), 0);
	return r;
}

static double noise(int i)
{
	return 1 + 0.1 * ((i * 7919) % 101 / 101.0 - 0.5);
}

static double rising(int i)
{
	return (1e-3 + 1e-5 * i) * noise(i);
}

static double falling(int i)
{
	return rising(STEPS - i);
}

static double slightly(int i)
{
	return (1e-3 + 5e-7 * i) * noise(i);
}

/* Each level grows a little, so that nearly every later step is longer; but what matters is the jump. */
static double jump(int i)
{
	return (i < 200 ? 1e-3 : 2e-3) + 5e-7 * i;
}

/* Other programs disturb some steps, in spells: the rank correlation is low, but no level is one. */
static double disturbed(int i)
{
	return rising(i) * (i * 2654435761u % 7 < 2 ? 1.5 : 1) * (i / 16 % 3 ? 1 : 1.2);
}

/* Long first steps, and then equal ones. */
static double settles(int i)
{
	return i < 80 ? 3e-3 * noise(i) : 1e-3 * noise(i);
}

static double two_levels(int i)
{
	return (i < 120 ? 3e-3 : 1e-3) * noise(i);
}

static double flat(int i)
{
	return 1e-3 * noise(i);
}

static double then_rising(int i)
{
	return i < 200 ? 1e-3 * noise(i) : (4e-3 + 4e-5 * (i - 200)) * noise(i);
}

static void test_changes(void **state)
{
	static const struct {
		double (*length)(int);
		uint32_t n;
		uint64_t step, until;
		double from_s, to_s;
	} row[] = {{rising, 1, 0, STEPS, 1.2e-3, 4.8e-3},
		   {falling, 1, 0, STEPS, 4.8e-3, 1.2e-3},
		   {slightly, 0, 0, 0, 0, 0},
		   {jump, 1, 200, 0, 1.05e-3, 2.15e-3},
		   {disturbed, 1, 0, STEPS, 1.45e-3, 5.8e-3},
		   {settles, 1, 80, 0, 3e-3, 1e-3},
		   {two_levels, 1, 120, 0, 3e-3, 1e-3},
		   {flat, 0, 0, 0, 0, 0},
		   {then_rising, 2, 200, 0, 1e-3, 8e-3}};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct tfh_result *r = steps(row[i].length);
		const struct tfh_change *x = &r->change[0];
		assert_int_equal(r->n_change, row[i].n);
		if (row[i].n) {
			assert_int_equal(x->step, row[i].step);
			assert_int_equal(x->until, row[i].until);
			if (fabs(x->from_s / row[i].from_s - 1) >= 0.03)
				fail_msg("%zu: %g %g", i, x->from_s, x->to_s);
			assert_true(fabs(x->to_s / row[i].to_s - 1) < 0.03);
			assert_int_equal(x->part, TFH_PART_HOST);
		}
		if (row[i].n == 2) { /* the level's end, then the rise behind it */
			assert_int_equal(r->change[1].step, 200);
			assert_int_equal(r->change[1].until, STEPS);
		}
		free(r->step);
		free(r);
	}
}

static double two_long_levels(int i)
{
	return 10 * two_levels(i);
}

/* The first 3.6 s, in which steps take three times as long as later. */
static void test_contended(void **state)
{
	(void)state;
	for (int waits = 0; waits < 2; waits++) {
		for (int i = 0; i < SAMPLES; i++)
			sample[i] = (struct tfh_sample){.t = i * 200000000ll, .threads = 1};
		for (int i = 1; i < SAMPLES && waits; i++)
			sample[i].thread[0].delay_s =
				sample[i - 1].thread[0].delay_s + (i <= 18 ? 0.13 : 0);
		struct tfh_result *r = steps(two_long_levels);
		assert_int_equal(r->n_change, !waits);
		free(r->step);
		free(r);
	}
	memset(sample, 0, sizeof(sample));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_changes),
					   cmocka_unit_test(test_contended)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
