/* A job in numbers, of which the tests let the report make sentences. */
#ifndef TFH_TEST_REPORT_JOB_H
#define TFH_TEST_REPORT_JOB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/words/words.h"

struct words {
	struct tfh_kernel kernel[2];
	struct tfh_result r;
	struct tfh_wording said;
};

/* A job of 100 steps of 10 ms, of which each part takes 2 ms. */
static inline void begin(struct words *w, enum tfh_class cls, enum tfh_cause cause)
{
	memset(w, 0, sizeof(*w));
	tfh_arena_init(&w->said.arena, 0);
	w->said.r = &w->r;
	w->r.steps.count = 100;
	w->r.found.graph_ran = w->r.found.code_ran = NAN;
	w->r.found.cpu_only = cause == TFH_CAUSE_COMPUTE_CPU;
	w->r.steps.total_s = 1;
	w->r.steady.cls = cls;
	w->r.steady.cause = cause;
	w->r.steady.tier = 'A';
	for (int p = 0; p < TFH_PART_COUNT; p++)
		w->r.breakdown[p] = (struct tfh_share){.s_per_step = 2e-3, .share = 0.2};
	for (int c = 0; c < TFH_CAUSE_COUNT; c++)
		w->r.found.cause_s[c] = 2e-3;
	w->kernel[0] = (struct tfh_kernel){
		.name = "gemm", .calls_per_step = 3, .share_of_busy = 0.8, .median_s = 5e-4};
	w->kernel[1] = (struct tfh_kernel){
		.name = "relu", .calls_per_step = 3, .share_of_busy = 0.2, .median_s = 1e-4};
	w->r.kernels = w->kernel;
	w->r.n_kernels = 2;
}

#endif
