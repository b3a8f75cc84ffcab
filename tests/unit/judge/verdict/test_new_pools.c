/* A line that starts or ends a pool in several steps is named, with its share; one that does so in a single step is not, nor what a
 * forked process runs below the call that started it, nor a data loader's workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "judge/verdict/new_pools.h"

#define LIB "/usr/lib/python3.11/"

enum { POOL, FORKED, LOADER, OWN };

/* The line named for 30 samples of 1 ms, every third of them of that kind, in that many steps of 3 ms. */
static struct tfh_seen_line found(int kind, size_t steps)
{
	static const struct tfh_model_line inner[][2] = {
		[POOL] = {{LIB "multiprocessing/popen_fork.py", "Popen._launch", 66, true},
			  {LIB "multiprocessing/pool.py", "Pool.__init__", 215, true}},
		[FORKED] = {{LIB "multiprocessing/process.py", "BaseProcess._bootstrap", 314, true},
			    {LIB "multiprocessing/process.py", "BaseProcess.start", 121, true}},
		[LOADER] = {{LIB "multiprocessing/process.py", "BaseProcess.start", 121, true},
			    {LIB "site-packages/torch/utils/data/dataloader.py",
			     "_MultiProcessingDataLoaderIter.__init__", 1041, true}},
		[OWN] = {{LIB "random.py", "shuffle", 2, true},
			 {LIB "random.py", "shuffle", 1, true}},
	};
	const struct tfh_model_line own = {"/job/train.py", "batches", 32, false};
	struct tfh_new_pools p = {.all_ns = 0};
	struct tfh_seen_line out = {.file = NULL};

	for (size_t i = 0; i < 30; i++) {
		const struct tfh_model_line *in = inner[i % 3 ? OWN : kind];
		struct tfh_model_line frame[] = {in[0], in[1], own};
		assert_int_equal(tfh_new_pools_add(&p, frame, 3, 1e6, i * steps / 30), 0);
	}
	tfh_new_pools_keep(&p, 10, 3e-3, &out);
	free(p.of.v);
	return out;
}

static void test_named(void **state)
{
	(void)state;
	struct tfh_seen_line l = found(POOL, 10);

	assert_string_equal(l.file, "/job/train.py");
	assert_int_equal(l.line, 32);
	assert_string_equal(l.callee, "Pool.__init__");
	assert_float_equal(l.s_per_step, 1e-3, 1e-6);
	assert_null(found(POOL, 2).file);
	assert_null(found(FORKED, 10).file);
	assert_null(found(LOADER, 10).file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_named)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
