/* The advice of a launch-bound or compute-bound job fits the job. */
#include "judge/verdict/verdict.h"
#include "report/words/remedy.h"
#include "report_job.h"

/* The advice for a launch-bound step fits the job: PyTorch's has a compiler, a compiled one has used it, and a step that reads
 * values back cannot be queued ahead, unless the launches themselves do that, for arrays of the host. Where the kernels are in
 * captured graphs, it is about what is not in them. */
static void test_launch_advice(void **state)
{
	(void)state;
	struct words w;
	struct tfh_transfer t = {.fn = "cuMemcpyDtoHAsync_v2",
				 .dir = TFH_DIR_D2H,
				 .where = "sim.py:74 main > numba/cuda/dispatcher.py:543 __call__"};

	for (int k = 0; k < 7; k++) {
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LAUNCH);
		w.r.found.torch = k > 0 && k < 6;
		w.r.found.replays = k == 5;
		w.r.transfers = &t;
		w.r.n_transfers = 1;
		t.calls_per_step = k == 3 || k == 6 ? 40 : 1;
		if (k == 6)
			w.r.found.line.callee_file =
				"/v/lib/python3.11/site-packages/numba/cuda/dispatcher.py";
		t.bytes_per_step = 4 * t.calls_per_step;
		if (k == 2)
			w.kernel[1].name = "triton_poi_fused_relu_0";
		if (k == 4)
			w.r.found.cpu_only = true;
		tfh_explain_cause(&w.said);
		const char *todo = w.said.advice[0].todo;
		assert_true((strstr(todo, "torch.compile") != NULL) == (k == 1 || k == 4));
		assert_true((strstr(todo, "it is compiled: ") != NULL) == (k == 2));
		assert_true((strstr(todo, ".item()") && strstr(todo, "a step reads 40")) ==
			    (k == 3));
		assert_true((strstr(todo, "cuda.to_device()") && strstr(todo, "back, 40 a step")) ==
			    (k == 6));
		assert_true((strstr(todo, "capture it, too") != NULL) == (k == 5));
		assert_true((strstr(w.said.text, "captured graphs") != NULL) == (k == 5));
		assert_null(strstr(todo, "tf."));
		assert_true(strlen(todo) <= 160);
		tfh_wording_free(&w.said);
	}
}

/* Launches that take long each are prepared by some code, and the advice is to keep what it makes. */
static void test_prepared_launches(void **state)
{
	(void)state;
	struct words w;

	for (int k = 0; k < 2; k++) {
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LAUNCH);
		w.r.found.cause_s[TFH_CAUSE_HOST_LAUNCH] = k ? 6e-5 : 6e-3; /* for 6 launches */
		tfh_explain_cause(&w.said);
		assert_non_null(
			strstr(w.said.text, k ? "issuing 6 launches" : "preparing 6 launches"));
		assert_int_equal(strstr(w.said.advice[0].finding, "anew") != NULL, !k);
		tfh_wording_free(&w.said);
	}
}

/* Computing that is matrix products on tensor cores is not sent to a compiler, nor is PyTorch's to XLA, nor a program
 * without a framework to either; of one kernel, the advice is about that kernel. */
static void test_compute_advice(void **state)
{
	(void)state;
	struct words w;

	for (int k = 0; k < 4; k++) {
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_DENSE);
		w.r.found.torch = k > 0;
		w.kernel[0].share_of_busy = k == 3 ? 1 : 0.3;
		w.r.n_kernels = k == 3 ? 1 : 2;
		w.r.families[0] = (struct tfh_family_time){TFH_FAMILY_MATMUL_TENSOR, 2, 6e-3, 0.6};
		w.r.n_families = k == 2;
		tfh_explain_cause(&w.said);
		tfh_explain_kernels(&w.said);
		assert_int_equal(w.said.n_advice, 1);
		const char *todo = w.said.advice[0].todo;
		assert_null(strstr(todo, "XLA"));
		assert_true((strstr(todo, "torch.compile") != NULL) == (k == 1));
		assert_true((strstr(todo, "tensor cores already") != NULL) == (k == 2));
		assert_true((strstr(todo, "Nsight Compute") != NULL) == (k == 3));
		tfh_wording_free(&w.said);
	}
}

/* Of two devices of which one computes longer, the step is as long as that one's; more devices would not help. Where they compute in
 * succession, nothing is said about equal parts, and where they compute equally long, nothing at all. */
static void test_devices(void **state)
{
	(void)state;
	struct words w;

	for (int k = 0; k < 3; k++) {
		struct tfh_device_time device[] = {{0, k < 2 ? 9e-3 : 5e-3}, {1, 5e-3}};
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_DENSE);
		for (int p = 0; p < TFH_PART_COUNT; p++)
			w.r.breakdown[p] = (struct tfh_share){0, 0};
		w.r.breakdown[TFH_PART_COMPUTE] =
			(struct tfh_share){k == 1 ? 10e-3 : device[0].compute_s, 0.9};
		w.r.breakdown[TFH_PART_HOST].s_per_step =
			10e-3 - w.r.breakdown[TFH_PART_COMPUTE].s_per_step;
		w.r.devices = device;
		w.r.n_devices = 2;
		w.r.steps.total = 100;
		w.r.steady.cls = TFH_CLASS_COMPUTE_BOUND;
		w.r.steady.cause = TFH_CAUSE_COMPUTE_DENSE;
		tfh_find_uneven_devices(&w.r);
		assert_int_equal(w.r.steady.cause,
				 k ? TFH_CAUSE_COMPUTE_DENSE : TFH_CAUSE_COMPUTE_IMBALANCE);
		tfh_explain_cause(&w.said);
		const char *line = tfh_devices_line(&w.said);
		assert_int_equal(line != NULL, k < 2);
		if (line)
			assert_string_equal(line,
					    "device 0 computes for 9.00 ms of a step of 10.0 ms, "
					    "device 1 for 5.00 ms");
		assert_int_equal(w.said.n_advice, 1);
		assert_int_equal(strstr(w.said.advice[0].todo, "more devices") != NULL, k > 0);
		assert_true(k > 0 || fabs(w.said.advice[0].saved_s - 0.2) < 1e-9);
		assert_true(k > 0 || fabs(tfh_even_devices_s(&w.r) - 8e-3) < 1e-9);
		tfh_wording_free(&w.said);
	}
}

/* The median of calls of two kinds is that of neither: their mean is given. */
static void test_mixed_calls(void **state)
{
	(void)state;
	struct tfh_kernel k = {.calls_per_step = 2, .median_s = 3.2e-3, .s_per_step = 12.8e-3};

	assert_true(tfh_kernel_is_mixed(&k) && fabs(tfh_kernel_call_s(&k) - 6.4e-3) < 1e-9);
	k.s_per_step = 6.5e-3;
	assert_true(!tfh_kernel_is_mixed(&k) && tfh_kernel_call_s(&k) == 3.2e-3);
	k.median_s = k.s_per_step = NAN; /* no device times */
	assert_true(!tfh_kernel_is_mixed(&k) && isnan(tfh_kernel_call_s(&k)));
}

/* Where a filter drops most of what a map makes, it comes too late; where it keeps them, its condition is what takes time. */
static void test_filter(void **state)
{
	(void)state;
	struct words w;

	for (int drops = 0; drops < 2; drops++) {
		struct tfh_input_stage stage[] = {
			{"Filter", "Iterator::Root::Filter", 8e-3, 32, 40, 0, false, true, NULL,
			 NULL, 0},
			{"ParallelMapV2", "Iterator::Root::Filter::ParallelMapV2", NAN,
			 drops ? 314 : 40, NAN, 2, true, false, NULL, NULL, 0}};
		begin(&w, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP);
		w.r.input = stage;
		w.r.n_input = 2;
		struct tfh_remedy m = tfh_stage_remedy(&w.r, TFH_CAUSE_INPUT_MAP);
		assert_int_equal(strstr(m.todo, "filter() before map()") != NULL, drops);
		tfh_wording_free(&w.said);
	}
}

/* Small rows that are sliced, and batched again. Not rows that a map made, nor such as take long, nor a few. */
static void test_rows(void **state)
{
	static const struct {
		double self_s, calls;
		const char *over;
		bool singly;
	} row[] = {{1.6e-3, 2048, "Shuffle", true},
		   {1.6e-3, 2048, "Map", false},
		   {40e-3, 2048, "Shuffle", false},
		   {0.1e-3, 64, "Shuffle", false}};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct words w;
		struct tfh_input_stage stage[] = {
			{"TensorSlice", "Iterator::Root::BatchV2::X::TensorSlice", row[i].self_s,
			 row[i].calls, NAN, 0, false, true, NULL, NULL, 0},
			{row[i].over, "Iterator::Root::BatchV2::X", 1e-3, row[i].calls, NAN, 0,
			 false, false, NULL, NULL, 0}};
		begin(&w, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_BATCH);
		w.r.input = stage;
		w.r.n_input = 2;
		struct tfh_remedy m = tfh_stage_remedy(&w.r, TFH_CAUSE_INPUT_BATCH);
		assert_int_equal(strstr(m.finding, "one by one") != NULL, row[i].singly);
		tfh_wording_free(&w.said);
	}
}

/* A kernel that takes most of the computing is named, but no advice where computing takes less than half
 * as long as what the verdict is about. */
static void test_dominant(void **state)
{
	(void)state;
	struct words w;

	for (int much = 0; much < 2; much++) {
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
		w.r.verdict.share = 0.6;
		w.r.breakdown[TFH_PART_COMPUTE].share = much ? 0.35 : 0.25;
		tfh_explain_kernels(&w.said);
		assert_int_equal(w.said.n_evidence, 1);
		assert_int_equal(w.said.n_advice, much);
		tfh_wording_free(&w.said);
	}
}

/* Python objects that ranks exchange are waited for at that line: no advice to hide the exchange behind the backward pass. */
static void test_objects(void **state)
{
	static const struct {
		const char *function;
		double s; /* per step */
		bool objects;
	} row[] = {{"all_gather_object", 3e-3, true},
		   {"broadcast_object_list", 3e-3, true},
		   {"all_gather_object", 1e-3, false},
		   {"all_gather", 3e-3, false}};

	(void)state;
	for (size_t k = 0; k < sizeof(row) / sizeof(row[0]); k++) {
		struct tfh_seen_node node[] = {
			{.file = "train.py", .function = "main", .s_per_step = 4e-3},
			{.file = "/v/site-packages/torch/distributed/distributed_c10d.py",
			 .function = row[k].function,
			 .s_per_step = row[k].s}};
		struct words w;
		begin(&w, TFH_CLASS_COMMUNICATION_BOUND, TFH_CAUSE_COMMUNICATION_TRANSFER);
		w.r.breakdown[TFH_PART_COMMUNICATION].s_per_step = 4e-3;
		w.r.found.node = node;
		w.r.found.n_node = 2;
		struct tfh_remedy m = tfh_remedy_in(&w.r, TFH_CAUSE_COMMUNICATION_TRANSFER);
		assert_int_equal(strstr(m.todo, "tensors instead") != NULL, row[k].objects);
		assert_int_equal(strstr(m.todo, "backward pass") != NULL, !row[k].objects);
		tfh_wording_free(&w.said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_launch_advice),  cmocka_unit_test(test_prepared_launches),
		cmocka_unit_test(test_compute_advice), cmocka_unit_test(test_dominant),
		cmocka_unit_test(test_filter),	       cmocka_unit_test(test_devices),
		cmocka_unit_test(test_mixed_calls),    cmocka_unit_test(test_rows),
		cmocka_unit_test(test_objects),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
