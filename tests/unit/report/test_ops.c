/* The sentences of a report about copies and kernels: they are about the copies that the verdict's cause speaks of, no kernel is said to
 * matter unless computing does, and kernel families are reported if the verdict is compute. */
#include "report/words/remedy.h"
#include "report_job.h"

static uint32_t lines_with_computing(double computing)
{
	struct words w;
	uint32_t n;

	begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_UNKNOWN);
	w.r.breakdown[TFH_PART_COMPUTE].share = computing;
	tfh_explain_kernels(&w.said);
	n = w.said.n_evidence;
	tfh_wording_free(&w.said);
	return n;
}

/* 80 % of the computing: the same bar as for all else that blocks, a twentieth of the step. */
static void test_kernel_that_matters(void **state)
{
	(void)state;
	assert_int_equal(lines_with_computing(0.20), 1);
	assert_int_equal(lines_with_computing(0.07), 1);
	assert_int_equal(lines_with_computing(0.06), 0);
}

/* The line below a verdict of copies is of the copies that the cause speaks of. */
static void test_copies_of_cause(void **state)
{
	(void)state;
	static const struct {
		enum tfh_cause cause;
		const char *fn;
	} row[] = {{TFH_CAUSE_TRANSFER_H2D_PAGEABLE, "pageable"},
		   {TFH_CAUSE_TRANSFER_H2D_PINNED, "pinned"},
		   {TFH_CAUSE_TRANSFER_D2H, "back"},
		   {TFH_CAUSE_TRANSFER_D2D, "inside"},
		   {TFH_CAUSE_TRANSFER_P2P, "across"},
		   {TFH_CAUSE_TRANSFER_SMALL_COPIES, "many"}};
	static struct tfh_transfer t[] = {
		{.fn = "many", .dir = TFH_DIR_H2H, .pageable = -1, .calls_per_step = 500},
		{.fn = "pinned", .dir = TFH_DIR_H2D, .pageable = 0, .calls_per_step = 1},
		{.fn = "pageable", .dir = TFH_DIR_H2D, .pageable = 1, .calls_per_step = 1},
		{.fn = "back", .dir = TFH_DIR_D2H, .pageable = 1, .calls_per_step = 1},
		{.fn = "inside", .dir = TFH_DIR_D2D, .pageable = -1, .calls_per_step = 1},
		{.fn = "across", .dir = TFH_DIR_P2P, .pageable = -1, .calls_per_step = 1}};
	struct words w;

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		t[i].bytes_per_step = 4e6;
		t[i].bytes_per_s = 2e9;
	}
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		begin(&w, TFH_CLASS_TRANSFER_BOUND, row[i].cause);
		memset(w.r.found.cause_s, 0, sizeof(w.r.found.cause_s));
		w.r.transfers = t;
		w.r.n_transfers = sizeof(t) / sizeof(t[0]);
		tfh_explain_cause(&w.said);
		assert_int_equal(w.said.n_evidence, 1);
		const char *line = w.said.evidence[0];
		assert_ptr_equal(line, w.said.advice[0].evidence);
		if (strncmp(line, row[i].fn, strlen(row[i].fn)))
			fail_msg("%s: %s", tfh_cause_name(row[i].cause), line);
		tfh_wording_free(&w.said);
	}
}

/* Copies in the other direction that block about as much are reported as well, since the gain is that of all copies; small ones
 * are not. What comes from pinned memory is not advised to be pinned. */
static void test_copies_both_ways(void **state)
{
	(void)state;
	struct tfh_transfer t[] = {
		{.fn = "up", .dir = TFH_DIR_H2D, .pageable = 0, .calls_per_step = 1},
		{.fn = "back", .dir = TFH_DIR_D2H, .pageable = 0, .calls_per_step = 1}};
	struct words w;

	for (int much = 0; much < 2; much++) {
		begin(&w, TFH_CLASS_TRANSFER_BOUND, TFH_CAUSE_TRANSFER_D2H);
		memset(w.r.found.cause_s, 0, sizeof(w.r.found.cause_s));
		t[0].bytes_per_step = t[1].bytes_per_step = 4e6;
		w.r.transfers = t;
		w.r.n_transfers = 2;
		w.r.found.cause_s[TFH_CAUSE_TRANSFER_D2H] = 4e-3;
		w.r.found.cause_s[TFH_CAUSE_TRANSFER_H2D_PINNED] = much ? 3.9e-3 : 1e-3;
		tfh_explain_cause(&w.said);
		assert_int_equal(w.said.n_evidence, 1 + much);
		if (much)
			assert_non_null(strstr(w.said.evidence[1], "up: "));
		if (much)
			assert_non_null(strstr(w.said.evidence[1], "takes 3.90 ms of that"));
		assert_null(strstr(w.said.advice[0].todo, "to pinned memory"));
		tfh_wording_free(&w.said);
	}
}

/* Of a copy that some steps lack, the size of one copy is reported, not the smaller mean of a step. */
static void test_copy_of_some_steps(void **state)
{
	(void)state;
	struct tfh_transfer t = {.fn = "up",
				 .dir = TFH_DIR_H2D,
				 .pageable = 1,
				 .calls_per_step = 0.8,
				 .bytes_per_step = 400e6,
				 .bytes_per_s = 8e9};
	struct words w;

	begin(&w, TFH_CLASS_TRANSFER_BOUND, TFH_CAUSE_TRANSFER_H2D_PAGEABLE);
	w.r.transfers = &t;
	w.r.n_transfers = 1;
	tfh_explain_cause(&w.said);
	assert_string_equal(
		w.said.evidence[0],
		"up: 500 MB per call, 0.80 calls per step, 8.00 GB/s, from pageable memory");
	tfh_wording_free(&w.said);
}

/* The kinds of a compute-bound run's kernels are listed with their shares, small ones not; the largest for which something
 * can be done get advice, a run of unknown kernels gets none. */
static void test_kinds_of_kernels(void **state)
{
	(void)state;
	struct words w;

	begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_DENSE);
	w.r.families[0] = (struct tfh_family_time){TFH_FAMILY_ATTENTION, 2, 4e-3, 0.4};
	w.r.families[1] = (struct tfh_family_time){TFH_FAMILY_LAYOUT, 1, 3.8e-3, 0.38};
	w.r.families[2] = (struct tfh_family_time){TFH_FAMILY_MATMUL_PLAIN, 9, 1.9e-3, 0.19};
	w.r.families[3] = (struct tfh_family_time){TFH_FAMILY_SORT, 1, 3e-4, 0.03};
	w.r.n_families = 4;
	tfh_explain_cause(&w.said);
	assert_int_equal(w.said.n_evidence, 1);
	assert_string_equal(w.said.evidence[0],
			    "40 % of the computing is attention, 38 % changes of layout, 19 % "
			    "matrix products without tensor cores");
	assert_int_equal(w.said.n_advice, 2);
	assert_string_equal(w.said.advice[0].evidence,
			    "changes of layout: 38 % of the computing, 3.80 ms per step");
	tfh_wording_free(&w.said);
	begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_DENSE);
	w.r.families[0] = (struct tfh_family_time){TFH_FAMILY_OTHER, 2, 1e-2, 1};
	w.r.n_families = 1;
	tfh_explain_cause(&w.said);
	assert_int_equal(w.said.n_evidence, 0);
	assert_int_equal(w.said.n_advice, 1);
	tfh_wording_free(&w.said);
	for (int f = 0; f < TFH_FAMILY_COUNT; f++) {
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_DENSE);
		w.r.families[0] = (struct tfh_family_time){f, 2, 1e-2, 0.9};
		w.r.n_families = 1;
		tfh_explain_cause(&w.said);
		for (uint32_t i = 0; i < w.said.n_advice; i++)
			assert_true(strlen(w.said.advice[i].todo) <= 160);
		tfh_wording_free(&w.said);
	}
}

/* Advice is in terms of the framework that computes: none names another's functions, and without one of the three it names none. */
static void test_frameworks(void **state)
{
	(void)state;
	static const char *const terms[][TFH_FRAMEWORKS] = {
		[TFH_FRAMEWORK_TORCH] = {"torch", "autocast", "contiguous", "apex", "fbgemm"},
		[TFH_FRAMEWORK_TENSORFLOW] = {"jit_compile", "mixed_float16", "data_format"},
		[TFH_FRAMEWORK_JAX] = {"jax", "dimension_numbers"},
	};
	bool own[TFH_FRAMEWORKS] = {false};

	for (int f = 0; f < TFH_FAMILY_COUNT; f++)
		for (int in = TFH_FRAMEWORK_OTHER; in < TFH_FRAMEWORKS; in++) {
			const char *finding, *todo = tfh_family_todo(f, in, &finding);
			for (int of = TFH_FRAMEWORK_TORCH; of < TFH_FRAMEWORKS && todo; of++)
				for (int i = 0; i < TFH_FRAMEWORKS && terms[of][i]; i++) {
					bool named = strstr(todo, terms[of][i]) != NULL;
					assert_false(named && of != in);
					own[of] |= named;
				}
			assert_true(!todo || strlen(todo) <= 160);
		}
	for (int of = TFH_FRAMEWORK_TORCH; of < TFH_FRAMEWORKS; of++)
		assert_true(own[of]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel_that_matters),
		cmocka_unit_test(test_copies_of_cause),
		cmocka_unit_test(test_copies_both_ways),
		cmocka_unit_test(test_copy_of_some_steps),
		cmocka_unit_test(test_kinds_of_kernels),
		cmocka_unit_test(test_frameworks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
