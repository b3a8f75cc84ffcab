/* The sentences of a report on a job that records nothing. */
#include "report_job.h"

/* Few samples of a job that records nothing leave open which class it is: the two that it may be are named. */
static void test_open_class(void **state)
{
	static const struct {
		uint64_t samples;
		const char *missing;
	} row[] = {
		{30,
		 "30 samples leave open whether it is compute-bound (52 %) or host-bound (40 %)"},
		{3, "there are too few samples with a line of Python"},
		{300, "what the main thread did is not known for a fifth of the time"}};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct words w;
		begin(&w, TFH_CLASS_UNCLASSIFIED, TFH_CAUSE_NONE);
		w.r.verdict = w.r.steady;
		struct tfh_sampled *s = &w.r.found.sampled;
		*s = (struct tfh_sampled){.samples = 400, .function = "", .n_line = 1};
		s->line[0] = (struct tfh_sampled_line){.file = "/job/fit.py",
						       .function = "main",
						       .line = 7,
						       .callee_file = "",
						       .share = 0.52,
						       .samples = row[i].samples};
		s->cause[TFH_CAUSE_COMPUTE_CPU] = 0.52;
		s->cause[TFH_CAUSE_HOST_LOCK] = 0.4;
		s->cause[TFH_CAUSE_INPUT_READ] = 0.08;
		tfh_explain_sampled(&w.said);
		assert_string_equal(w.said.missing, row[i].missing);
		tfh_wording_free(&w.said);
	}
}

/* A job that computes is asked whether a GPU should do it only if samples show a library that can use one. */
static void test_gpu(void **state)
{
	static const char *const file[] = {"/usr/lib/python3/site-packages/sklearn/svm/_base.py",
					   "/usr/lib/python3/site-packages/xgboost/core.py"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct words w;
		struct tfh_seen_node node = {.file = file[i], .function = "fit", .line = 368};
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
		w.r.verdict = w.r.steady;
		w.r.found.sampled = (struct tfh_sampled){.samples = 400, .function = ""};
		w.r.found.node = &node;
		w.r.found.n_node = 1;
		tfh_explain_sampled(&w.said);
		assert_true(w.said.n_advice > 0);
		assert_int_equal(strstr(w.said.advice[0].todo, "GPU") != NULL, i);
		tfh_wording_free(&w.said);
	}
}

/* What the verdict is not about has advice of its own, with its line, if it would still keep the steps from being compute-bound, or is
 * computing that takes more. */
static void test_second(void **state)
{
	static const struct {
		enum tfh_cause cause, other;
		double share, rest;
		const char *advice;
	} row[] = {{TFH_CAUSE_INPUT_READ, TFH_CAUSE_COMPUTE_CPU, 0.38, 0.56, "also computes"},
		   {TFH_CAUSE_INPUT_READ, TFH_CAUSE_COMPUTE_CPU, 0.62, 0.32, NULL},
		   {TFH_CAUSE_INPUT_READ, TFH_CAUSE_HOST_PYTHON, 0.62, 0.32, "also runs Python"},
		   {TFH_CAUSE_INPUT_READ, TFH_CAUSE_HOST_PYTHON, 0.82, 0.12, NULL}};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct words w;
		begin(&w, tfh_cause_class(row[i].cause), row[i].cause);
		w.r.verdict = w.r.steady;
		w.r.verdict.share = row[i].share;
		struct tfh_sampled *s = &w.r.found.sampled;
		*s = (struct tfh_sampled){.samples = 400, .function = "", .n_line = 1};
		s->line[0] = (struct tfh_sampled_line){.file = "/job/fit.py",
						       .function = "forward",
						       .line = 303,
						       .callee_file = "",
						       .share = row[i].rest,
						       .samples = 90,
						       .cause = row[i].other};
		s->cause[row[i].cause] = row[i].share;
		s->cause[row[i].other] = row[i].rest;
		tfh_explain_sampled(&w.said);
		bool told = false;
		for (uint32_t n = 0; n < w.said.n_advice; n++)
			told |= strstr(w.said.advice[n].finding, "also ") &&
				strstr(w.said.advice[n].finding,
				       row[i].advice ? row[i].advice : "") &&
				strstr(w.said.advice[n].finding, "fit.py:303");
		assert_int_equal(told, row[i].advice != NULL);
		tfh_wording_free(&w.said);
	}
}

/* What goes on tracing is told from what compiles, in the verdict and at its lines: a cache would not help it. */
static void test_traces(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct words w;
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_COMPILE);
		w.r.verdict = w.r.steady;
		struct tfh_sampled *s = &w.r.found.sampled;
		*s = (struct tfh_sampled){.samples = 400, .function = "", .traced = i ? 0.99 : 0.5};
		s->line[0].cause = TFH_CAUSE_HOST_COMPILE;
		s->line[0].state = TFT_STATE_RUNNING;
		tfh_explain_sampled(&w.said);
		assert_true(w.said.n_advice > 0);
		assert_int_equal(strstr(w.said.advice[0].todo, "in jax.jit") != NULL, i);
		assert_int_equal(strstr(w.said.text, "traces") != NULL, i);
		assert_int_equal(strstr(tfh_sampled_does(&w.r, &s->line[0]), "traces") != NULL, i);
		tfh_wording_free(&w.said);
	}
}

/* Where the main thread waits for computing in a job of JAX, a note says that the line which waits is not always the one that queued the
 * work. */
static void test_queued(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct words w;
		bool found = false;
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
		w.r.verdict = w.r.steady;
		struct tfh_sampled *s = &w.r.found.sampled;
		*s = (struct tfh_sampled){.samples = 400, .function = "", .jax = i > 0};
		s->cause[TFH_CAUSE_COMPUTE_CPU] = 0.9;
		s->state[i > 1 ? TFT_STATE_RUNNING : TFT_STATE_LOCK] = 0.9;
		tfh_explain_sampled(&w.said);
		for (uint32_t k = 0; k < w.said.n_remark; k++)
			found |= strstr(w.said.remark[k], "what earlier lines queued") != NULL;
		assert_int_equal(found, i == 1);
		tfh_wording_free(&w.said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_class), cmocka_unit_test(test_gpu),
		cmocka_unit_test(test_second),	   cmocka_unit_test(test_traces),
		cmocka_unit_test(test_queued),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
