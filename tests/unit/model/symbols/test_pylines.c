/* A library is found in a file's path from the package's name on: an environment, a project or a home may have the same name. The parts
 * of JAX that make operations are told from those that only hand on data. Of a name the last part counts, of a stack the frames of
 * libraries inside the program's innermost function. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/symbols/pylines.h"

static void test_package(void **state)
{
	(void)state;
	static const struct {
		const char *path, *part;
		bool is;
	} rows[] = {
		{"/envs/torch/lib/python3.11/site-packages/numpy/lib/npyio.py", "/torch/", false},
		{"/envs/torch/lib/python3.11/site-packages/torch/nn/linear.py", "/torch/", true},
		{"/envs/torch/lib/python3.11/xml/sax/handler.py", "/torch/", false},
		{"/envs/torch/lib/python3.11/xml/sax/handler.py", "/xml/", true},
		{"/src/torch/torch/nn/linear.py", "/torch/nn/", true},
		{"/home/redis/lib/python3/dist-packages/yaml/loader.py", "/redis/", false},
		{"/v/site-packages/datasets/arrow_dataset.py", "-packages/datasets/", true},
		{"/v/site-packages/torchvision/datasets/mnist.py", "-packages/datasets/", false},
		{"/v/site-packages/torchvision/datasets/mnist.py", "/datasets/", true},
		{"/home/me/torch/train.py", "/torch/", true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (tfh_is_in_package(rows[i].path, rows[i].part) != rows[i].is)
			fail_msg("%s in %s", rows[i].part, rows[i].path);
}

static void test_names(void **state)
{
	static const struct tfh_model_line frame[] = {{"/v/a.py", "f", 1, true},
						      {"/v/b.py", "g", 2, true},
						      {"/job/t.py", "Net.step", 3, false},
						      {"/v/c.py", "run", 4, true}};

	(void)state;
	assert_string_equal(tfh_last_name("Trainer.fit.<locals>.step"), "step");
	assert_string_equal(tfh_last_name("main"), "main");
	assert_int_equal(tfh_library_frames(frame, 4), 2);
	assert_int_equal(tfh_library_frames(frame, 2), 2);
	assert_int_equal(tfh_library_frames(frame + 2, 2), 0);
}

static void test_jax_ops(void **state)
{
	(void)state;
	assert_true(tfh_makes_jax_ops("/v/site-packages/jax/_src/lax/lax.py", "add"));
	assert_true(tfh_makes_jax_ops("/v/site-packages/jax/_src/array.py", "ArrayImpl.__iter__"));
	assert_false(tfh_makes_jax_ops("/v/site-packages/jax/_src/array.py", "ArrayImpl._value"));
	assert_false(tfh_makes_jax_ops("/v/site-packages/jax/_src/numpy/array_constructors.py",
				       "asarray"));
	assert_false(tfh_makes_jax_ops("/v/site-packages/jax/_src/api.py", "grad"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_package),
					   cmocka_unit_test(test_names),
					   cmocka_unit_test(test_jax_ops)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
