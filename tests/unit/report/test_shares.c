/* Which steps the sentences of a verdict are about, and what its shares are of. */
#include "report_job.h"
#include "report/text_parts.h"

/* A sentence says "every step" only if nearly all judged steps have its cause as their largest cost: of the host's causes, this
 * cause; of the others, this class. If steps are slow in turn for it, it says how often, and by how much. */
static void test_every_step(void **state)
{
	static const struct {
		enum tfh_class cls;
		enum tfh_cause cause, other;
		unsigned with; /* of 100 steps; the others are of the same class */
		unsigned classed;
		double every;
		const char *says;
	} row[] = {
		{TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_CHECKPOINT, TFH_CAUSE_HOST_LOCK, 95, 100, 0,
		 "saving checkpoints delays every step by 2.00 ms"},
		{TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_CHECKPOINT, TFH_CAUSE_HOST_LOCK, 10, 100, 0,
		 "saving checkpoints delays an average step by 2.00 ms"},
		{TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_CHECKPOINT, TFH_CAUSE_HOST_LOCK, 10, 100, 10,
		 "saving checkpoints delays an average step by 2.00 ms; every 10th step takes 20.0 ms longer"},
		{TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP, TFH_CAUSE_INPUT_READ, 10, 100, 0,
		 "every step waits 2.00 ms of 10.0 ms for its batch"},
		{TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP, TFH_CAUSE_INPUT_READ, 80, 80, 0,
		 "an average step waits 2.00 ms of 10.0 ms for its batch"}};

	(void)state;
	for (size_t k = 0; k < sizeof(row) / sizeof(*row); k++) {
		struct tfh_step step[100];
		struct words w;
		begin(&w, row[k].cls, row[k].cause);
		w.r.verdict = w.r.steady;
		w.r.steps.classes[row[k].cls].count = row[k].classed;
		for (unsigned i = 0; i < 100; i++)
			step[i] = (struct tfh_step){
				.segment = TFH_SEGMENT_TRAIN,
				.cls = (int8_t)row[k].cls,
				.cause = (int8_t)(i < row[k].with ? row[k].cause : row[k].other)};
		w.r.step = step;
		w.r.n_step = 100;
		w.r.found.slow.every = row[k].every;
		w.r.found.slow.longer_s = 0.02;
		w.r.found.slow.part = TFH_PART_HOST;
		tfh_wording_make(&w.said, &w.r);
		assert_string_equal(w.said.text, row[k].says);
		tfh_wording_free(&w.said);
	}
}

/* The first line gives the share of the cause that it names. What is judged together with all that the host does (compiling,
 * allocating) has the share of its part. */
static void test_named_share(void **state)
{
	static const struct {
		enum tfh_cause cause;
		double cause_s;
		const char *says;
	} row[] = {{TFH_CAUSE_HOST_CHECKPOINT, 4.8e-3, "48 % of training time"},
		   {TFH_CAUSE_HOST_CHECKPOINT, 9e-3, "90 % of training time"},
		   {TFH_CAUSE_HOST_COMPILE, 4.8e-3, "90 % of training time"}};

	(void)state;
	for (size_t k = 0; k < sizeof(row) / sizeof(*row); k++) {
		struct tfh_headline h;
		struct words w;
		begin(&w, TFH_CLASS_HOST_BOUND, row[k].cause);
		w.r.verdict = w.r.steady;
		w.r.verdict.share = 0.9;
		for (int p = 0; p < TFH_PART_COUNT; p++)
			w.r.breakdown[p] = (struct tfh_share){0};
		w.r.breakdown[TFH_PART_HOST] = (struct tfh_share){.s_per_step = 9e-3, .share = 0.9};
		w.r.breakdown[TFH_PART_COMPUTE] =
			(struct tfh_share){.s_per_step = 1e-3, .share = 0.1};
		w.r.found.cause_s[row[k].cause] = row[k].cause_s;
		tfh_headline_of(&w.r, &h);
		assert_string_equal(h.share, row[k].says);
		tfh_wording_free(&w.said);
	}
}

/* If evaluation takes place within the judged steps, their time is not called training time, and a class that few of them have is
 * not said of all. */
static void test_evaluating_steps(void **state)
{
	struct tfh_part_of_run tree[] = {{.kind = TFH_BRANCH_RUN, .wall_s = 10},
					 {.kind = TFH_BRANCH_TRAIN, .wall_s = 2, .count = 90},
					 {.kind = TFH_BRANCH_EVALUATE, .wall_s = 6, .count = 100}};

	(void)state;
	for (int within = 0; within < 2; within++) {
		struct words w;
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
		w.r.tree = tree;
		w.r.n_tree = sizeof(tree) / sizeof(tree[0]);
		w.r.steps.total_s = within ? 8 : 2;
		w.r.steps.classes[TFH_CLASS_HOST_BOUND].count = within ? 10 : 90;
		w.r.steps.classes[TFH_CLASS_HOST_BOUND].median_s = 0.6;
		w.r.steps.classes[TFH_CLASS_COMPUTE_BOUND].count = within ? 90 : 10;
		w.r.steps.classes[TFH_CLASS_COMPUTE_BOUND].median_s = 0.02;
		w.said.text = "the program's own code delays every step by 9.00 ms";
		tfh_explain_lead(&w.said);
		assert_string_equal(tfh_training_words(&w.r),
				    within ? "the steps' time" : "training time");
		assert_non_null(strstr(w.said.text, "evaluation takes 3.0 times as long"));
		assert_string_equal(
			w.said.evidence[0],
			within ? "10 of 100 steps are host-bound, host.python, and take 600 ms; "
				 "90 are compute-bound, and take 20.0 ms"
			       : "the steps themselves: host-bound, host.python; the program's own "
				 "code delays every step by 9.00 ms");
		tfh_wording_free(&w.said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_step),
					   cmocka_unit_test(test_named_share),
					   cmocka_unit_test(test_evaluating_steps)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
