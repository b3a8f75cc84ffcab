/*
 * A profiler's trace writes part of a function's path: PyTorch's below a folder of modules, JAX's only
 * the file's name. The same table as for samples says what it does; a path that only contains a
 * library's name, or a common file name, says nothing. A range is compiling if it is named after that,
 * not after what was compiled.
 */
#include "../analyze_gen.h"
#include "base/text.h"
#include "judge/facts/cover.h"

static enum tfh_role role(const char *const *name)
{
	struct tfh_role_frame frame[8];
	uint32_t n = 0;

	while (name[n]) {
		frame[n] = tfh_frame_role(name[n]);
		n++;
	}
	return tfh_role_of_frames(frame, n);
}

#define ROLE(...) role((const char *const[]){__VA_ARGS__, NULL})

static void test_stacks(void **state)
{
	(void)state;
	/* outermost first */
	assert_int_equal(ROLE("train.py(9): main", "torch/serialization.py(940): save",
			      "torch/serialization.py(1200): _save"),
			 TFH_ROLE_SAVE);
	assert_int_equal(
		ROLE("/opt/conda/lib/python3.12/site-packages/tensorboard/summary/writer.py(9): add"),
		TFH_ROLE_LOG);
	assert_int_equal(ROLE("train.py(9): main", "logging/__init__.py(1500): info"),
			 TFH_ROLE_LOG);
	assert_int_equal(ROLE("train.py(9): main", "<built-in function print>"), TFH_ROLE_LOG);
	/* Of the program's function only what it calls itself counts, except for a compiler. */
	assert_int_equal(ROLE("wandb/sdk/wandb_run.py(3): log", "train.py(40): forward_pass"),
			 TFH_ROLE_NONE);
	assert_int_equal(ROLE("torch/_dynamo/convert_frame.py(3): _compile",
			      "model.py(40): forward", "torch/nn/modules/linear.py(9): forward"),
			 TFH_ROLE_COMPILE);
	assert_int_equal(ROLE("train.py(9): main", "utils/io.py(30): save_checkpoint"),
			 TFH_ROLE_SAVE);
	assert_int_equal(ROLE("train.py(9): main", "torch/utils/checkpoint.py(30): checkpoint"),
			 TFH_ROLE_NONE);
	/* The program's own folder of that name. */
	assert_int_equal(ROLE("train.py(9): main", "src/logging/__init__.py(9): info"),
			 TFH_ROLE_NONE);
	/* A package's own file of that name; importing a package. */
	assert_int_equal(ROLE("mlflow/__init__.py(1): <module>"), TFH_ROLE_NONE);
}

static void test_file_names(void **state)
{
	(void)state;
	assert_int_equal(ROLE("$train.py:9 main", "$pjit.py:200 cache_miss",
			      "$partial_eval.py:2100 trace_to_jaxpr_dynamic",
			      "$model.py:31 attention"),
			 TFH_ROLE_COMPILE);
	assert_int_equal(ROLE("$train.py:9 main", "$builtins print"), TFH_ROLE_LOG);
	assert_int_equal(ROLE("$:5 load_state"), TFH_ROLE_NONE);
	/* Rows of a whole file need its folder. */
	assert_int_equal(ROLE("$train.py:9 main", "$__init__.py:9 info"), TFH_ROLE_NONE);
	assert_int_equal(ROLE("$train.py:9 main", "$copy.py:9 compiler"), TFH_ROLE_NONE);
}

static void test_names(void **state)
{
	(void)state;
	const char *const yes[] = {"KernelExecutor::compileFusion",
				   "backend_compile_and_load",
				   "_compile.compile_inner (dynamo_timed)",
				   "XlaCompile",
				   "JIT compilation",
				   "dynamo",
				   "create_aot_dispatcher_function (dynamo_timed)"},
			  *const no[] = {"Torch-Compiled Region: 0/0",
					 "aten::mm",
					 "PjRtCompiler",
					 "## Call CompiledFxGraph f ##",
					 "comp",
					 "TorchDynamo Cache Lookup"};

	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
		assert_true(tfh_names_compiling(yes[i]));
	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
		assert_false(tfh_names_compiling(no[i]));
	assert_true(tfh_frame_sleeps("<built-in function sleep>"));
	assert_true(tfh_frame_sleeps("$time sleep"));
	assert_true(tfh_frame_sleeps("$<unknown> sleep"));
	assert_int_equal(tfh_frame_of("$<unknown> acquire"), TFH_FRAME_WAITS);
	assert_false(tfh_frame_sleeps("job.py(9): sleep"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_file_names),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
