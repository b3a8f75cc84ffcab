/* Which steps the sentences of a verdict are about. */
#include "report_job.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_step)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
