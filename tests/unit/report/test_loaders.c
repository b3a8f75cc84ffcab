/*
 * Who makes batches in the calling thread is told how to have processes make them, in the words of its loader, if most of the wait for
 * batches is there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/words/words.h"

static const char *advice(struct tfh_wording *w, const char *file, double s, double share)
{
	static struct tfh_seen_node node[] = {
		{.file = "/job/train.py", .function = "main", .s_per_step = 1},
		{.function = "fetch", .parent = 0}};
	static struct tfh_result r;

	node[1].file = file;
	node[1].s_per_step = s;
	r.found.node = node;
	r.found.n_node = 2;
	r.breakdown[TFH_PART_INPUT].share = share;
	w->r = &r;
	return tfh_loader_workers(w, 2);
}

static void test_words(void **state)
{
	(void)state;
	static const char keras[] =
		"/env/site-packages/keras/src/trainers/data_adapters/py_dataset_adapter.py";
	static const char grain[] = "/env/site-packages/grain/_src/python/data_loader.py";
	struct tfh_wording w = {0};

	tfh_arena_init(&w.arena, 0);
	assert_non_null(strstr(advice(&w, keras, 0.7, 0.8), "workers=2, use_multiprocessing=True"));
	assert_non_null(strstr(advice(&w, grain, 0.7, 0.8), "worker_count=2"));
	assert_null(advice(&w, keras, 0.3, 0.8));
	assert_null(advice(&w, "/env/site-packages/torch/utils/data/dataloader.py", 0.7, 0.8));
	tfh_arena_free(&w.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_words)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
