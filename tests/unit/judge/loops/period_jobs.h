/* The jobs of test_period.c: kernels, copies and waits one after the other, and their verdict. */
#ifndef TESTS_UNIT_JUDGE_LOOPS_PERIOD_JOBS_H
#define TESTS_UNIT_JUDGE_LOOPS_PERIOD_JOBS_H

#include <inttypes.h>

#include "../analyze_gen.h"

/* Kernels: F + layer on the way there, B + layer on the way back. */
enum { F = 10, B = 30, LOSS = 50, UPDATE, METRIC, OTHER };

struct job {
	struct gen *g;
	double now, busy; /* ms; until when the device computes */
	uint32_t seed, module;
};

static struct job job_new(void)
{
	return (struct job){.g = gen_new(), .now = 100, .seed = 1};
}

static inline uint32_t draw(struct job *j, uint32_t n)
{
	j->seed = j->seed * 1664525 + 1013904223;
	return (j->seed >> 16) % n;
}

static void kernel(struct job *j, uint32_t name, uint32_t grid, double ms)
{
	struct tfh_event *ev = gen_call(j->g, 0, TFH_FN_cuLaunchKernel, j->now, j->now + 0.005);

	ev->w[0] = name + 1000 * j->module;
	ev->w[1] = grid;
	j->now += 0.005;
	j->busy = fmax(j->busy, j->now) + ms;
}

static void up(struct job *j, uint64_t bytes)
{
	gen_copy(j->g, TFH_FN_cuMemcpyHtoDAsync_v2, j->now, j->now + 0.01, bytes, false);
	j->now += 0.01;
	j->busy = fmax(j->busy, j->now) + 0.05;
}

static void wait(struct job *j)
{
	double until = fmax(j->now, j->busy) + 0.005;

	gen_call(j->g, 0, TFH_FN_cuStreamSynchronize, j->now, until);
	j->now = until;
}

static void fetch(struct job *j, uint64_t bytes)
{
	gen_copy(j->g, TFH_FN_cuMemcpyDtoHAsync_v2, j->now, j->now + 0.01, bytes, false);
	j->now += 0.01;
	wait(j);
}

static void there(struct job *j, uint32_t layers, double ms)
{
	for (uint32_t i = 0; i < layers; i++)
		kernel(j, F + i, 64, ms);
}

static void back(struct job *j, uint32_t layers, double ms)
{
	kernel(j, LOSS, 1, 0.01);
	for (uint32_t i = layers; i--;)
		kernel(j, B + i, 64, ms);
}

static void update(struct job *j)
{
	for (int i = 0; i < 3; i++)
		kernel(j, UPDATE, 64, 0.05);
}

static void train(struct job *j, uint32_t layers, double ms)
{
	there(j, layers, ms);
	back(j, layers, 2 * ms);
	update(j);
}

static uint32_t evaluations(const struct tfh_result *r)
{
	for (uint32_t i = 0; i < r->n_segments; i++)
		if (r->segments[i].kind == TFH_SEGMENT_EVAL)
			return r->segments[i].count;
	return 0;
}

/* The job has so many steps, of which the middle one takes so long (0: it does not matter). */
static struct tfh_result *judge(struct job *j, uint64_t steps, double ms)
{
	struct tfh_result *r = gen_judge(j->g);

	if (r->steps.total != steps || (ms > 0 && fabs(r->steps.median_s * 1e3 - ms) > 0.02 * ms))
		print_error("%" PRIu64 " steps of %.3f ms\n", r->steps.total,
			    r->steps.median_s * 1e3);
	assert_int_equal(r->steps.clock, TFH_STEP_CLOCK_PERIOD);
	assert_int_equal(gen_passes, 2);
	assert_int_equal(r->steps.total, steps);
	assert_true(ms <= 0 || fabs(r->steps.median_s * 1e3 - ms) <= 0.02 * ms);
	gen_closed(r);
	return r;
}

#endif
