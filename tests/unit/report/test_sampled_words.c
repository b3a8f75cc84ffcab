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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_class),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
