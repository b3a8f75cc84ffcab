/*
 * A pause is charged by the lines of its samples: waiting after the step is no input, and waiting
 * for the GIL remains that. Of a batch that another thread makes the cause is what that one does;
 * waiting for the GIL while functions of the input pipeline run is input. Kernel time is reading or
 * writing where what was read and written explains it.
 */
#include "../analyze_gen.h"

#define LIB "/v/lib/python3.11/site-packages"
#define STD "/usr/lib/python3.11"

/* Place 1 is where looks see the thread, backtrace 2 where its pause ends, place 3 where they see another thread. */
static gen_stack stacks[] = {[2] = {{"/job/train.py", "main", 20, false}}, [3] = {{0}}};
static struct tfh_model_line *const seen_at = stacks[1], *const loop_call = stacks[2],
				    *const made_at = stacks[3];
static enum tft_state made_by; /* what the other thread does; 0: there is none */
static int
	runs_each; /* every so many looks see the thread running, whatever it else does; 0: none */
static bool loads; /* a module is loaded in each step */
static double fetched; /* ms: a batch is fetched from a pipeline in each step */

static struct tfh_sample sample[40];

static uint32_t samples(void *arg, uint32_t process, const struct tfh_sample **out)
{
	(void)arg;
	(void)process;
	*out = sample;
	return sizeof(sample) / sizeof(*sample);
}

/* Samples of a process that has so much of its time in the kernel. */
static void in_kernel(double share, uint64_t written)
{
	for (int i = 0; i < 40; i++)
		sample[i] = (struct tfh_sample){.t = gen_ns(100 * i),
						.cpu_s = 0.09,
						.system_s = 0.09 * share,
						.write_bytes = written};
}

/* 200 steps of 11 ms: 10 ms of a pause in one state, then a copy to the device and a wait for a kernel. */
static struct tfh_result *judge(enum tft_state state, double run)
{
	struct gen *g = gen_new();
	double t = 100, cpu = 0;

	GEN_STACKS(&g->feed, stacks);
	g->feed.samples = samples;
	for (int i = 0; i < 200; i++) {
		double at = t + fmod(i * 6.18, 10);
		bool runs = runs_each && i % runs_each == 0;
		gen_sample(g, 0, at, runs ? TFT_STATE_RUNNING : state, 1, 10);
		if (made_by) {
			struct tfh_event *ev = gen_sample(g, 0, at, made_by, 3, 10);
			ev->kind = TFT_CHILD;
			ev->ctx = GEN_PID;
			ev->stream = GEN_PID + 5;
		}
		if (loads)
			gen_call(g, 0, TFH_FN_cuModuleLoadData, t + 10.521, t + 10.525);
		if (fetched > 0)
			gen_get(g, 0, 1, 0, t, t + fetched);
		t += fetched;
		cpu += run;
		gen_cpu(g, 0, t + 10, cpu, 2);
		/* a call that waits comes after the reading at its end */
		cpu += 0.1;
		gen_cpu(g, 0, t + 10.5, cpu, 0);
		gen_copy(g, TFH_FN_cuMemcpyHtoD_v2, t + 10.01, t + 10.5, 1 << 20, false);
		gen_call(g, 0, TFH_FN_cuLaunchKernel, t + 10.51, t + 10.52)->w[0] = 1;
		gen_call(g, 0, TFH_FN_cuStreamSynchronize, t + 10.53, t + 11);
		cpu += 0.8;
		gen_cpu(g, 0, t + 11, cpu, 0);
		t += 11;
	}
	return gen_judge(g);
}

static void is(enum tft_state state, double run, enum tfh_cause cause)
{
	struct tfh_result *r = judge(state, run);

	if (r->verdict.cause != cause)
		fail_msg("%s where %s was expected", tfh_cause_name(r->verdict.cause),
			 tfh_cause_name(cause));
	if (!(1e3 * r->found.cause_s[cause] > 9))
		fail_msg("%g ms", 1e3 * r->found.cause_s[cause]);
	tfh_result_free(r);
}

static void see(const char *file, const char *function, uint32_t line)
{
	seen_at[0] = (struct tfh_model_line){file, function, 5, true};
	seen_at[1] = *loop_call;
	seen_at[1].line = line;
	seen_at[2].file = NULL;
}

static void test_causes(void **state)
{
	(void)state;
	see(STD "/json/decoder.py", "JSONDecoder.decode", 19);
	is(TFT_STATE_RUNNING, 10, TFH_CAUSE_INPUT_DECODE);
	see(LIB "/torch/serialization.py", "save", 21);
	is(TFT_STATE_RUNNING, 10, TFH_CAUSE_HOST_CHECKPOINT);
	is(TFT_STATE_GIL, 0, TFH_CAUSE_HOST_GIL);
	see(LIB "/wandb/sdk/wandb_run.py", "Run.log", 21);
	is(TFT_STATE_SOCKET, 0, TFH_CAUSE_HOST_LOGGING);
	see(STD "/http/client.py", "HTTPConnection.getresponse", 19);
	is(TFT_STATE_SOCKET, 0, TFH_CAUSE_INPUT_REMOTE);
	see(STD "/http/client.py", "HTTPConnection.getresponse", 21);
	is(TFT_STATE_SOCKET, 0, TFH_CAUSE_HOST_WAIT);
	see(STD "/threading.py", "Lock.acquire", 21);
	is(TFT_STATE_LOCK, 0, TFH_CAUSE_HOST_LOCK);
	see(STD "/multiprocessing/connection.py", "_ConnectionBase.recv", 19);
	is(TFT_STATE_PIPE, 0, TFH_CAUSE_INPUT_UNKNOWN);
	see("/job/other.py", "thing", 21);
	seen_at[0].library = false;
	is(TFT_STATE_RUNNING, 10, TFH_CAUSE_HOST_PYTHON);
	see(LIB "/PIL/ImageFile.py", "_encode_tile", 21);
	is(TFT_STATE_RUNNING, 10, TFH_CAUSE_HOST_LOGGING);
}

/* The clock shows 2 ms of 10 that the thread ran, and half of the samples find it running. A thread that waits for the GIL wakes up
 * all the time; one that waits for a lock and runs longer than its clock says had no CPU. */
static void test_woken_often(void **state)
{
	(void)state;
	see(STD "/threading.py", "Lock.acquire", 21);
	runs_each = 2;
	struct tfh_result *r = judge(TFT_STATE_GIL, 2);
	assert_float_equal(1e3 * r->found.cause_s[TFH_CAUSE_HOST_GIL], 8, 0.2);
	tfh_result_free(r);
	r = judge(TFT_STATE_LOCK, 2);
	assert_true(1e3 * r->found.cause_s[TFH_CAUSE_HOST_LOCK] < 7);
	tfh_result_free(r);
	runs_each = 0;
}

/* A library that rewrites its graph before each execution dispatches it, unless kernels are made from it. */
static void test_rewriting(void **state)
{
	(void)state;
	see(LIB "/tinygrad/uop/ops.py", "graph_rewrite", 19);
	is(TFT_STATE_RUNNING, 10, TFH_CAUSE_HOST_LAUNCH);
	loads = true;
	is(TFT_STATE_RUNNING, 10, TFH_CAUSE_HOST_COMPILE);
	loads = false;
	see(LIB "/tinygrad/codegen/opt.py", "optimize", 19);
	is(TFT_STATE_RUNNING, 10, TFH_CAUSE_HOST_COMPILE);
}

/* Converting Python's values depends on the data, and is no part of dispatch, even in a file whose other functions rewrite. */
static void test_converting(void **state)
{
	(void)state;
	see(LIB "/tinygrad/uop/ops.py", "UOp._frompy.<locals>.<listcomp>", 19);
	seen_at[2] = seen_at[1];
	seen_at[1] = (struct tfh_model_line){LIB "/tinygrad/uop/ops.py", "UOp._frompy", 837, true};
	is(TFT_STATE_RUNNING, 10, TFH_CAUSE_HOST_PYTHON);
}

static void makes(const char *file, bool library, enum tft_state state)
{
	made_at[0] = (struct tfh_model_line){file, "work", 7, library};
	made_at[1] = (struct tfh_model_line){"/job/train.py", "fill", 8, false};
	made_at[2] = (struct tfh_model_line){STD "/threading.py", "Thread.run", 982, true};
	made_by = state;
}

static void test_makers(void **state)
{
	(void)state;
	see(STD "/queue.py", "Queue.get", 19);
	makes("/job/train.py", false, TFT_STATE_RUNNING);
	is(TFT_STATE_LOCK, 0, TFH_CAUSE_INPUT_MAP);
	makes("/job/train.py", false, TFT_STATE_READ);
	is(TFT_STATE_LOCK, 0, TFH_CAUSE_INPUT_READ);
	makes(STD "/json/decoder.py", true, TFT_STATE_RUNNING);
	is(TFT_STATE_LOCK, 0, TFH_CAUSE_INPUT_DECODE);
	makes("/job/train.py", false, TFT_STATE_SLEEP);
	is(TFT_STATE_LOCK, 0, TFH_CAUSE_INPUT_UNKNOWN);
	makes("/job/train.py", false, TFT_STATE_RUNNING);
	is(TFT_STATE_GIL, 0, TFH_CAUSE_HOST_GIL);
	fetched = 0.01;
	is(TFT_STATE_GIL, 0, TFH_CAUSE_HOST_GIL);
	makes(LIB "/tensorflow/python/ops/script_ops.py", true, TFT_STATE_RUNNING);
	is(TFT_STATE_GIL, 0, TFH_CAUSE_INPUT_MAP);
	fetched = 0;
	made_by = 0;
}

/* What is taken from a queue behind the step may be its result or the next batch, so that is never sure. A lock that is taken there is. */
static void test_taken_behind(void **state)
{
	(void)state;
	for (int lock = 0; lock < 2; lock++) {
		see(lock ? STD "/threading.py" : STD "/queue.py", lock ? "wait" : "Queue.get", 21);
		struct tfh_result *r = judge(TFT_STATE_LOCK, 0);
		assert_int_equal(r->verdict.cause, TFH_CAUSE_HOST_LOCK);
		assert_int_equal(r->verdict.confidence,
				 lock ? TFH_CONFIDENCE_HIGH : TFH_CONFIDENCE_MEDIUM);
		tfh_result_free(r);
	}
}

/* The gain on the first screen is of the verdict's place only where the verdict's time is spent there: waiting for Python's lock, which
 * functions of the pipeline hold, ends with these and not with what the line itself does meanwhile. */
static void test_place_of_line(void **state)
{
	(void)state;
	see("/job/train.py", "step", 21);
	seen_at[0].library = false;
	struct tfh_result *r = judge(TFT_STATE_RUNNING, 10);
	assert_true(r->n_place > 0 && r->line_place);
	tfh_result_free(r);
	makes(LIB "/tensorflow/python/ops/script_ops.py", true, TFT_STATE_RUNNING);
	fetched = 0.01;
	runs_each = 3;
	r = judge(TFT_STATE_GIL, 3);
	assert_int_equal(r->verdict.cause, TFH_CAUSE_INPUT_MAP);
	assert_true(r->n_place > 0 && !r->line_place);
	tfh_result_free(r);
	fetched = 0;
	made_by = runs_each = 0;
}

/* What a step without its input takes at best, as a share of what it took outside of input. */
static double left_at_best(const char *maker)
{
	double left = NAN;

	makes(maker, true, TFT_STATE_RUNNING);
	struct tfh_result *r = judge(TFT_STATE_RUNNING, 10);
	for (uint32_t i = 0; i < r->n_whatif; i++)
		if (r->whatif[i].remove == TFH_REMOVE_INPUT)
			left = 1e3 * r->whatif[i].low_s / 11;
	tfh_result_free(r);
	return left;
}

/* Where Python functions of the pipeline held the lock, the loop's own code may have waited for it: at best it goes with the input, but no more
 * than half of what stays. */
static void test_lock_beside(void **state)
{
	(void)state;
	see("/job/other.py", "thing", 19);
	fetched = 5;
	double beside = left_at_best(LIB "/tensorflow/python/ops/script_ops.py"),
	       alone = left_at_best(STD "/queue.py");
	if (fabs(beside - 0.5) > 0.02 || !(alone > 0.9))
		fail_msg("%g %g", beside, alone);
	fetched = 0;
	made_by = 0;
}

/* Reading a file that the kernel has in memory is running for who looks. */
static void test_kernel_time(void **state)
{
	(void)state;
	see("/job/other.py", "thing", 19);
	in_kernel(0.8, 50000000);
	is(TFT_STATE_RUNNING, 10, TFH_CAUSE_INPUT_READ);
	seen_at[1].line = 21;
	is(TFT_STATE_RUNNING, 10, TFH_CAUSE_HOST_CHECKPOINT);
	in_kernel(0.8, 409600);
	is(TFT_STATE_RUNNING, 10, TFH_CAUSE_HOST_LOGGING);
	in_kernel(0.8, 4096); /* too little for so much time: it clears memory */
	is(TFT_STATE_RUNNING, 10, TFH_CAUSE_HOST_PYTHON);
	for (int i = 0; i < 40;
	     i++) { /* or copies into new memory: half of it is in faults, even at their shortest */
		sample[i].faults = 36000;
		sample[i].fault_s = 1e-6;
	}
	seen_at[1].line = 19;
	is(TFT_STATE_RUNNING, 10, TFH_CAUSE_HOST_PYTHON);
	in_kernel(0.1, 4096);
	is(TFT_STATE_RUNNING, 10, TFH_CAUSE_HOST_PYTHON);
}

/* 72 ms of kernel time in a tenth of a second. */
static void reads(uint64_t bytes, uint64_t calls, uint64_t faults, enum tfh_cause cause)
{
	in_kernel(0.8, 0);
	for (int i = 0; i < 40; i++) {
		sample[i].io_bytes = bytes;
		sample[i].io_calls = calls;
		sample[i].faults = faults;
		sample[i].fault_s = 1e-6;
		sample[i].page_bytes = 4096;
	}
	is(TFT_STATE_RUNNING, 10, cause);
}

/* Where the recorder knows what was read, kernel time is reading only if that explains half of it; first touches of the memory into which
 * is read are part of it. */
static void test_read_calls(void **state)
{
	(void)state;
	see("/job/other.py", "thing", 19);
	reads(4096, 20, 0, TFH_CAUSE_HOST_PYTHON);
	reads(20000000, 20, 0, TFH_CAUSE_INPUT_READ);
	reads(4096, 4000, 0, TFH_CAUSE_INPUT_READ);
	reads(160000000, 20, 39000, TFH_CAUSE_INPUT_READ);
	reads(20000000, 20, 39000, TFH_CAUSE_HOST_PYTHON);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_causes),	      cmocka_unit_test(test_kernel_time),
		cmocka_unit_test(test_read_calls),    cmocka_unit_test(test_rewriting),
		cmocka_unit_test(test_converting),    cmocka_unit_test(test_makers),
		cmocka_unit_test(test_woken_often),   cmocka_unit_test(test_taken_behind),
		cmocka_unit_test(test_place_of_line), cmocka_unit_test(test_lock_beside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
