/* Readings of the machine become lines of at most 256 points. Rates are growth per time, levels are
 * as read, and the mean is weighted by time, however irregular the readings are. A counter that
 * decreases, a missing number and unknown entries are ignored. Each device has its own lines.
 * Absurd times cause no harm. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "format/sample.h"
#include "model/open/opening.h"

#define SECOND 1000000000ll

static void read_meter(struct tfh_model_proc *p, int64_t t, enum tfh_meter meter, uint64_t a,
		       uint64_t b)
{
	struct tft_sample_thread e = {TFT_SAMPLE_NO_THREAD, tfh_meters[meter].number, a, b};

	assert_int_equal(tfh_run_add_reading(p, t, &e), 0);
}

static const struct tfh_meter_line *line(const struct tfh_model_proc *p, enum tfh_meter meter,
					 uint32_t value)
{
	for (uint32_t i = 0; i < p->n_meter; i++)
		if (p->meter[i].meter == meter && p->meter[i].value == value)
			return &p->meter[i];
	return NULL;
}

static void rates_and_levels(void **state)
{
	struct tfh_model_proc p = {0};
	(void)state;

	/* 1 s at half a processor, 3 s at two of them */
	read_meter(&p, 5 * SECOND, TFH_METER_CPU, 700, UINT64_MAX);
	assert_null(line(&p, TFH_METER_CPU, 0));
	read_meter(&p, 6 * SECOND, TFH_METER_CPU, 500000700, UINT64_MAX);
	read_meter(&p, 9 * SECOND, TFH_METER_CPU, 6500000700, UINT64_MAX);
	read_meter(&p, 10 * SECOND, TFH_METER_CPU, 100, UINT64_MAX); /* went back */
	const struct tfh_meter_line *l = line(&p, TFH_METER_CPU, 0);
	assert_float_equal(l->mean, (0.5 + 3 * 2.0) / 4, 1e-9);
	assert_float_equal(l->least, 0.5, 1e-9);
	assert_float_equal(l->most, 2, 1e-9);
	assert_float_equal(l->time_s, 4, 1e-9);
	assert_int_equal(l->t0, 5 * SECOND);
	assert_int_equal(l->n, 4);
	for (int i = 1; i < 4; i++)
		assert_float_equal(l->point[i], 2, 1e-6);
	assert_null(line(&p, TFH_METER_CPU, 1));
	read_meter(&p, SECOND, TFH_METER_MEMORY, 1, 5000);
	read_meter(&p, 2 * SECOND, TFH_METER_MEMORY, 3000, 5000);
	assert_float_equal(line(&p, TFH_METER_MEMORY, 0)->mean, 3000, 1e-9);
	assert_float_equal(line(&p, TFH_METER_MEMORY, 1)->mean, 5000, 1e-9);
	tfh_run_sort_meters(&p);
	for (uint32_t i = 1; i < p.n_meter; i++)
		assert_true(p.meter[i - 1].meter <= p.meter[i].meter);
	tfh_run_free_meters(&p);
}

/* Rows of devices are apart from each other, behind those of the machine. */
static void devices(void **state)
{
	struct tfh_model_proc p = {0};
	(void)state;

	for (uint32_t device = 0; device < TFH_METER_DEVICES + 2; device++)
		for (int64_t s = 1; s <= 2; s++) {
			struct tft_sample_thread e = {TFT_SAMPLE_NO_THREAD,
						      tfh_meters[TFH_METER_GPU_POWER].number |
							      device << 16,
						      1000 * device, UINT64_MAX};
			assert_int_equal(tfh_run_add_reading(&p, s * SECOND, &e), 0);
		}
	read_meter(&p, SECOND, TFH_METER_MEMORY, 1, 5000);
	read_meter(&p, 2 * SECOND, TFH_METER_MEMORY, 1, 5000);
	tfh_run_sort_meters(&p);
	assert_int_equal(p.n_meter, 2 + TFH_METER_DEVICES);
	assert_int_equal(p.meter[0].device, -1);
	for (int i = 0; i < TFH_METER_DEVICES; i++) {
		assert_int_equal(p.meter[2 + i].device, i);
		assert_float_equal(p.meter[2 + i].mean, i, 1e-6);
	}
	tfh_run_free_meters(&p);
}

static void long_runs(void **state)
{
	struct tfh_model_proc p = {0};
	(void)state;

	for (int64_t s = 0; s <= 86400; s++)
		read_meter(&p, s * SECOND, TFH_METER_OWN_BYTES, s < 43200 ? 100 : 300, UINT64_MAX);
	const struct tfh_meter_line *l = line(&p, TFH_METER_OWN_BYTES, 0);
	assert_true(l->n > TFH_METER_POINTS / 2 && l->n <= TFH_METER_POINTS);
	assert_true(l->width_ns * l->n >= 86400 * SECOND);
	assert_float_equal(l->point[0], 100, 1e-3);
	assert_float_equal(l->point[l->n - 1], 300, 1e-3);
	assert_float_equal(l->mean, 200, 0.01);
	tfh_run_free_meters(&p);
}

static void odd_files(void **state)
{
	static const int64_t times[] = {0, INT64_MIN,	  INT64_MAX, -1,
					1, INT64_MAX - 1, 5,	     INT64_MIN + 1};
	struct tft_sample_thread unknown = {TFT_SAMPLE_NO_THREAD, 4711, 1, 2};
	struct tfh_model_proc p = {0};
	(void)state;

	assert_int_equal(tfh_run_add_reading(&p, 1, &unknown), 0);
	assert_int_equal(p.n_meter, 0);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		for (int m = 0; m < TFH_METER_COUNT; m++)
			read_meter(&p, times[i], (enum tfh_meter)m, i * i * 1000, i << 60);
	for (uint32_t i = 0; i < p.n_meter; i++)
		assert_true(p.meter[i].n <= TFH_METER_POINTS);
	tfh_run_free_meters(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_and_levels),
		cmocka_unit_test(devices),
		cmocka_unit_test(long_runs),
		cmocka_unit_test(odd_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
