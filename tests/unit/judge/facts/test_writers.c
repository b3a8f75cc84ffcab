/*
 * What writes or shows is no input and no computing, whatever its library's functions open, decode or compute for it. The
 * program's own functions, and packages that wrap the function that trains, own none of that.
 */
#include "../analyze_gen.h"
#include "judge/facts/place_role.h"

#define LIB "/v/lib/python3.11/site-packages"
#define STD "/usr/lib/python3.11"
#define COUNT(array) (uint32_t)(sizeof(array) / sizeof(*(array)))

static const struct tfh_model_line main_line = {"/job/train.py", "main", 22, false};

/* A function in C that writes says less than who calls it: a framework's checkpoint, a logger, the program's own function. */
static void test_writes(void **state)
{
	(void)state;
	const struct tfh_model_line write = {"<builtin>", "write", 0, true},
				    own = {"/job/train.py", "main", 22, false};
	static const struct {
		struct tfh_model_line from;
		enum tfh_role role;
	} by[] = {
		{{LIB "/torch/serialization.py", "_save", 9, true}, TFH_ROLE_SAVE},
		{{STD "/logging/__init__.py", "StreamHandler.emit", 9, true}, TFH_ROLE_LOG},
		{{"/job/train.py", "save_model", 50, false}, TFH_ROLE_SAVE},
		{{"/job/train.py", "write_metrics", 50, false}, TFH_ROLE_LOG},
		{{STD "/io.py", "other", 9, true}, TFH_ROLE_WRITE},
	};

	for (size_t i = 0; i < COUNT(by); i++) {
		const struct tfh_model_line frame[] = {write, by[i].from, own};
		assert_int_equal(tfh_place_role(frame, COUNT(frame), TFH_ORDER_AFTER), by[i].role);
	}
}

/* The innermost frame alone would be reading, decoding or computing. */
static void test_writers_own(void **state)
{
	(void)state;
	static const struct {
		struct tfh_model_line inner, outer;
		enum tfh_role role;
	} by[] = {
		{{LIB "/torch/_tensor.py", "Tensor.__iter__", 5, true},
		 {LIB "/torch/_tensor.py", "Tensor.__repr__", 9, true},
		 TFH_ROLE_LOG},
		{{LIB "/torch/functional.py", "broadcast_tensors", 5, true},
		 {LIB "/torch/_tensor_str.py", "_str", 9, true},
		 TFH_ROLE_LOG},
		{{LIB "/torch/_tensor.py", "Tensor.__reduce_ex__", 5, true},
		 {LIB "/torch/serialization.py", "_save", 9, true},
		 TFH_ROLE_SAVE},
		{{"<builtin>", "open", 0, true},
		 {LIB "/pandas/io/formats/format.py", "DataFrameRenderer.to_csv", 9, true},
		 TFH_ROLE_LOG},
		{{LIB "/pandas/io/common.py", "get_handle", 5, true},
		 {LIB "/pandas/io/parquet.py", "to_parquet", 9, true},
		 TFH_ROLE_SAVE},
		{{LIB "/pandas/io/formats/format.py", "DataFrameFormatter.format_col", 5, true},
		 {LIB "/pandas/core/frame.py", "DataFrame.__repr__", 9, true},
		 TFH_ROLE_LOG},
		{{LIB "/numpy/_core/arrayprint.py", "FloatingFormat.fillFormat", 5, true},
		 {LIB "/numpy/_core/arrayprint.py", "array2string", 9, true},
		 TFH_ROLE_LOG},
		{{LIB "/PIL/Image.py", "Image.convert", 5, true},
		 {LIB "/PIL/Image.py", "Image.save", 9, true},
		 TFH_ROLE_LOG},
		{{STD "/csv.py", "DictWriter._dict_to_list", 5, true},
		 {STD "/csv.py", "DictWriter.writerow", 9, true},
		 TFH_ROLE_WRITE},
		{{STD "/csv.py", "DictReader.__next__", 5, true},
		 {LIB "/lightning/fabric/loggers/csv_logs.py",
		  "_ExperimentWriter._rewrite_with_new_header", 9, true},
		 TFH_ROLE_LOG},
		{{STD "/csv.py", "DictWriter.writerows", 5, true},
		 {LIB "/lightning/fabric/loggers/csv_logs.py", "_ExperimentWriter.save", 9, true},
		 TFH_ROLE_LOG},
		/* Reading and computing remain what they are. */
		{{LIB "/pandas/io/common.py", "get_handle", 5, true},
		 {LIB "/pandas/io/parsers/readers.py", "read_csv", 9, true},
		 TFH_ROLE_READ},
		{{LIB "/torch/_tensor.py", "Tensor.backward", 5, true},
		 {LIB "/mlflow/utils/autologging_utils/safety.py", "patched_train", 9, true},
		 TFH_ROLE_COMPUTE},
		{{LIB "/torch/nn/functional.py", "linear", 5, true},
		 {"/job/train.py", "save_samples", 9, false},
		 TFH_ROLE_COMPUTE},
	};

	for (size_t i = 0; i < COUNT(by); i++) {
		const struct tfh_model_line frame[] = {by[i].inner, by[i].outer, main_line};
		assert_int_equal(tfh_place_role(frame, COUNT(frame), TFH_ORDER_AFTER), by[i].role);
	}
}

/* A copy of a model's parameters is kept, and computes nothing. */
static void test_copied_parameter(void **state)
{
	(void)state;
	const struct tfh_model_line frame[] = {
		{LIB "/torch/nn/parameter.py", "Parameter.__deepcopy__", 5, true},
		{STD "/copy.py", "deepcopy", 6, true},
		main_line};

	assert_int_equal(tfh_place_role(frame, COUNT(frame), TFH_ORDER_AFTER), TFH_ROLE_KEEP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_writers_own),
		cmocka_unit_test(test_copied_parameter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
