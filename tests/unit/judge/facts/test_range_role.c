/*
 * What a range is for follows from the words of its name, in any order and spelling: what gets a batch or data, what prepares or
 * collates it. A name of which only a part fits, or that is about something else, says nothing.
 */
#include "../analyze_gen.h"
#include "judge/facts/cover.h"

static void test_names(void **state)
{
	static const struct {
		const char *name;
		enum tfh_role role;
	} rows[] = {
		{"data_loading", TFH_ROLE_FED},
		{"Data Loading", TFH_ROLE_FED},
		{"DataLoad", TFH_ROLE_FED},
		{"dataloader_iteration", TFH_ROLE_FED},
		{"Load_Batch", TFH_ROLE_FED},
		{"load batch 17", TFH_ROLE_FED},
		{"train: fetch_data", TFH_ROLE_FED},
		{"## wait_for_batch ##", TFH_ROLE_FED},
		{"get_batch", TFH_ROLE_FED},
		{"nextBatch", TFH_ROLE_FED},
		{"data io", TFH_ROLE_FED},
		{"load image bytes from disk", TFH_ROLE_FED},
		{"DATA_PREP", TFH_ROLE_MAP},
		{"preprocessing", TFH_ROLE_MAP},
		{"augmentation", TFH_ROLE_MAP},
		{"collate_fn", TFH_ROLE_BATCH},
		{"data_transfer", TFH_ROLE_NONE},
		{"load_to_device", TFH_ROLE_NONE},
		{"load checkpoint", TFH_ROLE_NONE},
		{"batch_norm", TFH_ROLE_NONE},
		{"update", TFH_ROLE_NONE}, /* not "data" */
		{"forward", TFH_ROLE_NONE},
		{"Iteration 12", TFH_ROLE_NONE},
		{"prepare_inputs",
		 TFH_ROLE_NONE}, /* of a model that serves: part of its scheduling */
		{"", TFH_ROLE_NONE},
		{"_1234567890_!", TFH_ROLE_NONE},
		{"a_word_that_is_longer_than_all_of_thewordsofthetablearetogether", TFH_ROLE_NONE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (tfh_role_of_range(rows[i].name) != rows[i].role)
			fail_msg("%s: %d", rows[i].name, (int)tfh_role_of_range(rows[i].name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
