/*
 * Where the Python code of the verdict's line mostly makes JAX's operations, one by one, the advice is jax.jit; not where the line
 * traces a jitted function, where other code takes most of its time, or where the operations are called elsewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/words/words.h"

#define JAX "/v/site-packages/jax/_src/"

/* update() calls `between`, which takes 4 ms itself and 6 ms in `file`. */
static bool advised(const char *between, const char *file, uint32_t line)
{
	struct tfh_seen_node node[] = {
		{.file = "/job/train.py", .function = "update", .line = 40, .s_per_step = 10e-3},
		{.file = between,
		 .function = "f",
		 .line = 9,
		 .s_per_step = 10e-3,
		 .own_s = 4e-3,
		 .parent = 0},
		{.file = file,
		 .function = "add",
		 .line = 7,
		 .s_per_step = 6e-3,
		 .own_s = 6e-3,
		 .parent = 1},
	};
	struct tfh_result r = {
		.verdict = {.cls = TFH_CLASS_HOST_BOUND, .cause = TFH_CAUSE_HOST_PYTHON}};
	struct tfh_wording w = {.r = &r};

	r.found.node = node;
	r.found.n_node = 3;
	r.found.line =
		(struct tfh_seen_line){.file = "/job/train.py", .function = "update", .line = line};
	const char *todo = tfh_jax_ops_advice(&w);
	assert_true(!todo == !w.n_evidence);
	bool says = todo && strstr(todo, "jax.jit");
	tfh_wording_free(&w);
	return says;
}

static void test_advice(void **state)
{
	(void)state;
	assert_true(advised("/v/optax/transform.py", JAX "numpy/ufunc_api.py", 40));
	assert_true(advised("/v/optax/transform.py", JAX "lax/lax.py", 40));
	assert_false(advised("/v/optax/transform.py", "/v/numpy/core.py", 40));
	assert_false(advised("/v/optax/transform.py", JAX "numpy/array_constructors.py", 40));
	assert_false(advised(JAX "interpreters/partial_eval.py", JAX "lax/lax.py", 40));
	assert_false(advised("/v/optax/transform.py", JAX "lax/lax.py", 41));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_advice)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
