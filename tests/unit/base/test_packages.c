/* A function of PyTorch or NumPy is the library's wherever that is installed (site-packages, or dist-packages as on Debian
 * and in NVIDIA's containers), and PyTorch's loader feeds; a function of any other folder is the program's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/packages.h"
#include "judge/facts/cover.h"

static void test_below(void **state)
{
	(void)state;
	assert_string_equal(tfh_in_packages("/usr/lib/python3/dist-packages/torch/nn/f.py"),
			    "torch/nn/f.py");
	assert_string_equal(tfh_in_packages("/a/site-packages/b/site-packages/c.py"), "c.py");
	assert_null(tfh_in_packages("/job/my-packages/train.py"));
	assert_null(tfh_in_packages("-packages/x.py"));
	assert_null(tfh_in_packages(""));
}

static void test_frames(void **state)
{
	static const struct {
		const char *name;
		enum tfh_frame frame;
	} cases[] = {
		{"torch/nn/modules/module.py(1518): _call_impl", TFH_FRAME_LIBRARY},
		{"/v/lib/python3.10/site-packages/numpy/core/x.py(3): mean", TFH_FRAME_LIBRARY},
		{"/usr/local/lib/python3.10/dist-packages/torch/optim/adam.py(9): step",
		 TFH_FRAME_LIBRARY},
		{"torch/utils/data/dataloader.py(628): __next__", TFH_FRAME_FEEDS},
		{"/v/dist-packages/torch/utils/data/dataloader.py(628): __next__", TFH_FRAME_FEEDS},
		{"/v/site-packages/lightning/trainer.py(80): fit", TFH_FRAME_USER},
		{"/job/torch/train.py(12): main", TFH_FRAME_USER},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(tfh_frame_of(cases[i].name), cases[i].frame);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_below),
					   cmocka_unit_test(test_frames)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
