/* What must hold: words of a function's name say whether it trains, evaluates or predicts, in any
 * case and only where a word begins; TensorFlow's prefix of all names says nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "judge/loops/loops.h"

static void test_names(void **state)
{
	static const struct {
		const char *name;
		enum tfh_branch role;
	} of[] = {
		{"__inference_train_step_129", TFH_BRANCH_TRAIN},
		{"jit_trainStep", TFH_BRANCH_TRAIN},
		{"__inference_pretrain_1", TFH_BRANCH_TRAIN},
		{"__inference_train_and_eval_7", TFH_BRANCH_TRAIN},
		{"__inference_test_step_12", TFH_BRANCH_EVALUATE},
		{"runTest", TFH_BRANCH_EVALUATE},
		{"EVALUATE", TFH_BRANCH_EVALUATE},
		{"__inference_predict_step_9", TFH_BRANCH_PREDICT},
		{"__inference_infer_3", TFH_BRANCH_PREDICT},
		{"__inference_one_step_on_data_distributed_1", TFH_BRANCH_PREDICT},
		{"__inference_one_step_on_iterator_1", TFH_BRANCH_STEP},
		{"__inference_latest_1", TFH_BRANCH_STEP},
		{"jit_retrieval", TFH_BRANCH_STEP},
		{"__inference_step_12", TFH_BRANCH_STEP},
		{"", TFH_BRANCH_STEP},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		if (tfh_role_of_name(of[i].name) != of[i].role)
			fail_msg("%s: %d", of[i].name, tfh_role_of_name(of[i].name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
