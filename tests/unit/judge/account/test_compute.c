/* One kernel dominates if it takes most of the computing and there is another one, be it only one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "judge/account/device.h"

static void test_dominant(void **state)
{
	static const struct {
		int64_t ns[3];
		size_t n;
		enum tfh_cause cause;
	} row[] = {{{100}, 1, TFH_CAUSE_COMPUTE_DENSE},
		   {{97, 3}, 2, TFH_CAUSE_COMPUTE_DOMINANT_OP},
		   {{3, 97}, 2, TFH_CAUSE_COMPUTE_DOMINANT_OP},
		   {{55, 45}, 2, TFH_CAUSE_COMPUTE_DENSE},
		   {{70, 20, 10}, 3, TFH_CAUSE_COMPUTE_DOMINANT_OP}};

	(void)state;
	for (size_t k = 0; k < sizeof(row) / sizeof(*row); k++) {
		struct tfh_device d = {.compute_ns = 100};
		__typeof__(*d.kernel.v) kernel[3] = {0};
		for (size_t i = 0; i < row[k].n; i++)
			kernel[i].ns = row[k].ns[i];
		d.kernel.v = kernel;
		d.kernel.n = row[k].n;
		assert_int_equal(tfh_compute_cause(&d), row[k].cause);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_dominant)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
