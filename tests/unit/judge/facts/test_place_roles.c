/*
 * Lines of Python tell what a thread does. The innermost frame with a row in the table decides; the
 * program's own functions count only where a compiler or loader called them; a line's position in
 * the loop's body tells whether it runs before the step.
 */
#include "../analyze_gen.h"
#include "judge/facts/pause_role.h"

#define LIB "/v/lib/python3.11/site-packages"
#define STD "/usr/lib/python3.11"
#define COUNT(array) (uint32_t)(sizeof(array) / sizeof(*(array)))

static const struct tfh_model_line loop_call = {"/job/train.py", "main", 20, false};

static void test_roles(void **state)
{
	(void)state;
	const struct tfh_model_line load[] = {
		{STD "/zipfile.py", "ZipExtFile.read", 9, true},
		{LIB "/numpy/lib/_npyio_impl.py", "NpzFile.__getitem__", 8, true},
		{"/job/train.py", "batch", 12, false},
		{"/job/train.py", "main", 19, false}};
	const struct tfh_model_line traced[] = {
		{LIB "/tensorflow/python/ops/math_ops.py", "matmul", 5, true},
		{"/tmp/__autograph_generated_file1.py", "tf__step", 23, false},
		{LIB "/tensorflow/python/framework/func_graph.py", "func_graph_from_py_func", 5,
		 true},
		{"/job/train.py", "main", 20, false}};
	const struct tfh_model_line queued[] = {{STD "/threading.py", "Condition.wait", 5, true},
						{STD "/queue.py", "Queue.get", 6, true},
						{LIB "/torch/utils/data/dataloader.py",
						 "_MultiProcessingDataLoaderIter._try_get_data", 7,
						 true},
						{"/job/train.py", "main", 19, false}};
	/* predict() on an array builds a pipeline, and loads nothing. */
	const struct tfh_model_line arrays[] = {
		{LIB "/keras/src/trainers/data_adapters/array_data_adapter.py",
		 "ArrayDataAdapter.get_tf_dataset", 90, true},
		{LIB "/keras/src/backend/tensorflow/trainer.py", "TensorFlowTrainer.predict", 500,
		 true},
		{"/job/train.py", "main", 22, false}};
	const struct tfh_model_line saves[] = {
		{"/job/train.py", "Trainer.save_checkpoint", 50, false},
		{"/job/train.py", "main", 22, false}};
	/* Keras calls its layers through this, compiled or not. */
	const struct tfh_model_line eager[] = {
		{LIB "/tensorflow/python/ops/math_ops.py", "matmul", 5, true},
		{LIB "/tensorflow/python/autograph/impl/api.py",
		 "call_with_unspecified_conversion_status.<locals>.wrapper", 596, true},
		{"/job/train.py", "main", 20, false}};
	const struct tfh_model_line callback[] = {
		{"/job/train.py", "score", 50, false},
		{STD "/logging/__init__.py", "Logger.info", 5, true},
		{"/job/train.py", "main", 22, false}};

	const struct tfh_model_line copied[] = {
		{LIB "/torch/storage.py", "UntypedStorage.clone", 5, true},
		{LIB "/torch/_tensor.py", "Tensor.__deepcopy__", 6, true},
		{STD "/copy.py", "deepcopy", 7, true},
		{"/job/train.py", "average", 50, false},
		{LIB "/torch/_dynamo/convert_frame.py", "compile_inner", 8, true},
		{"/job/train.py", "main", 22, false}};

	const struct tfh_model_line module[] = {
		{LIB "/torch/nn/modules/rnn.py", "LSTMCell.forward", 5, true},
		{LIB "/torch/nn/modules/module.py", "Module._call_impl", 6, true},
		{LIB "/torch/nn/modules/module.py", "Module._wrapped_call_impl", 7, true},
		{"/job/train.py", "Sequence.forward", 26, false}};

	/* The wrappers around an optimizer's step and its zero_grad. */
	const struct tfh_model_line scheduled[] = {
		{LIB "/torch/optim/adadelta.py", "Adadelta.step", 4, true},
		{LIB "/torch/optim/optimizer.py", "Optimizer.profile_hook_step.<locals>.wrapper", 5,
		 true},
		{LIB "/torch/optim/lr_scheduler.py",
		 "LRScheduler.__init__.<locals>.patch_track_step_called.<locals>.wrap_step.<locals>.wrapper",
		 6, true},
		{"/job/train.py", "train", 44, false}};
	const struct tfh_model_line cleared[] = {
		{LIB "/torch/optim/optimizer.py", "Optimizer.zero_grad", 4, true},
		{LIB "/torch/_dynamo/eval_frame.py", "DisableContext.__call__.<locals>._fn", 5,
		 true},
		{LIB "/torch/_compile.py", "_disable_dynamo.<locals>.inner", 6, true},
		{"/job/train.py", "train", 40, false}};

	/* An optimizer's step computes, but not the closure that it calls, which is the program's whole step. */
	const struct tfh_model_line closure[] = {
		{LIB "/torchmetrics/metric.py", "Metric.compute", 5, true},
		{"/job/train.py", "Net.training_step", 26, false},
		{LIB "/torch/optim/sgd.py", "SGD.step", 7, true},
		{"/job/train.py", "main", 22, false}};
	/* Starting an exchange with other ranks is part of it. */
	const struct tfh_model_line exchange[] = {
		{LIB "/torch/distributed/distributed_c10d.py", "all_reduce", 5, true},
		{LIB "/torch/distributed/c10d_logger.py", "_exception_logger.<locals>.wrapper", 6,
		 true},
		{"/job/train.py", "average_gradients", 37, false}};
	assert_int_equal(tfh_place_role(exchange, COUNT(exchange), TFH_ORDER_UNKNOWN),
			 TFH_ROLE_EXCHANGE);
	/* What fills pinned memory for a copy. */
	const struct tfh_model_line staged[] = {
		{LIB "/tinygrad/runtime/ops_cuda.py", "CUDAAllocator._copyin", 82, true},
		{LIB "/tinygrad/engine/realize.py", "exec_copy", 177, true},
		{"/job/train.py", "Data.tensors", 32, false}};
	assert_int_equal(tfh_place_role(staged, COUNT(staged), TFH_ORDER_UNKNOWN), TFH_ROLE_STAGE);
	/* A request is input before the step, a report to a service behind it, and the tracker's own
	 * elsewhere. */
	const struct tfh_model_line asked[] = {
		{STD "/asyncio/selector_events.py", "BaseSelectorEventLoop.sock_connect", 5, true},
		{LIB "/aiohttp/connector.py", "TCPConnector.connect", 6, true},
		{LIB "/aiohttp/client.py", "ClientSession._request", 7, true},
		{"/job/train.py", "get", 12, false},
		{"/job/train.py", "main", 19, false}};
	const struct tfh_model_line told[] = {
		{LIB "/urllib3/connectionpool.py", "HTTPConnectionPool.urlopen", 5, true},
		{LIB "/requests/api.py", "post", 6, true},
		{"/job/train.py", "main", 22, false}};
	const struct tfh_model_line tracked[] = {
		{LIB "/urllib3/connectionpool.py", "HTTPConnectionPool.urlopen", 5, true},
		{LIB "/requests/sessions.py", "Session.send", 6, true},
		{LIB "/mlflow/tracking/fluent.py", "log_metric", 7, true},
		{"/job/train.py", "main", 22, false}};
	/* A server parses what it is asked with the client's function. */
	const struct tfh_model_line served[] = {
		{STD "/http/client.py", "parse_headers", 5, true},
		{STD "/http/server.py", "BaseHTTPRequestHandler.parse_request", 6, true},
		{"/job/serve.py", "main", 22, false}};
	assert_int_equal(tfh_place_role(served, COUNT(served), TFH_ORDER_UNKNOWN), TFH_ROLE_NONE);
	assert_int_equal(tfh_place_role(asked, COUNT(asked), TFH_ORDER_BEFORE), TFH_ROLE_REMOTE);
	assert_int_equal(tfh_place_role(asked, COUNT(asked), TFH_ORDER_AFTER), TFH_ROLE_NONE);
	assert_int_equal(tfh_place_role(told, COUNT(told), TFH_ORDER_BEFORE), TFH_ROLE_REMOTE);
	assert_int_equal(tfh_place_role(told, COUNT(told), TFH_ORDER_AFTER), TFH_ROLE_LOG);
	assert_int_equal(tfh_place_role(tracked, COUNT(tracked), TFH_ORDER_UNKNOWN), TFH_ROLE_LOG);
	/* A function in C without a frame of its own, by the name by which it is called. */
	const struct tfh_model_line garbage[] = {{"<builtin>", "collect", 0, true},
						 {LIB "/toolbox/memory.py", "release", 96, true},
						 {"/job/train.py", "main", 63, false}};
	const struct tfh_model_line table[] = {
		{"<builtin>", "collect", 0, true},
		{LIB "/polars/lazyframe/frame.py", "LazyFrame.collect", 90, true},
		{"/job/train.py", "main", 19, false}};
	assert_int_equal(tfh_place_role(garbage, COUNT(garbage), TFH_ORDER_AFTER),
			 TFH_ROLE_COLLECT);
	assert_int_equal(tfh_place_role(table, COUNT(table), TFH_ORDER_BEFORE), TFH_ROLE_MAP);
	assert_int_equal(tfh_place_role(table, COUNT(table), TFH_ORDER_AFTER), TFH_ROLE_LATER);
	assert_int_equal(tfh_role_cause(TFH_ROLE_COLLECT), TFH_CAUSE_HOST_GC);
	assert_int_equal(tfh_place_role(closure, COUNT(closure), TFH_ORDER_UNKNOWN), TFH_ROLE_NONE);
	assert_int_equal(tfh_place_role(closure + 2, 2, TFH_ORDER_UNKNOWN), TFH_ROLE_UPDATE);
	/* A copy of tensors is no computing, but is part of what a compiler does. */
	assert_int_equal(tfh_place_role(copied, 4, TFH_ORDER_UNKNOWN), TFH_ROLE_KEEP);
	assert_int_equal(tfh_place_role(copied, COUNT(copied), TFH_ORDER_UNKNOWN),
			 TFH_ROLE_COMPILE);
	assert_int_equal(tfh_place_role(load, COUNT(load), TFH_ORDER_UNKNOWN), TFH_ROLE_READ);
	assert_int_equal(tfh_place_role(load + 2, 2, TFH_ORDER_UNKNOWN), TFH_ROLE_NONE);
	assert_int_equal(tfh_place_role(traced, COUNT(traced), TFH_ORDER_UNKNOWN),
			 TFH_ROLE_COMPILE);
	assert_int_equal(tfh_place_role(eager, COUNT(eager), TFH_ORDER_UNKNOWN), TFH_ROLE_NONE);
	uint32_t callee;
	assert_int_equal(tfh_role_lead(traced, COUNT(traced), TFH_ROLE_COMPILE, &callee), 3);
	assert_int_equal(callee, 2);
	assert_int_equal(tfh_role_lead(traced, COUNT(traced), TFH_ROLE_NONE, &callee), 1);
	assert_int_equal(callee, 0);
	assert_int_equal(tfh_role_lead(saves, COUNT(saves), TFH_ROLE_SAVE, &callee), 0);
	assert_int_equal(callee, COUNT(saves));
	assert_int_equal(tfh_role_lead(scheduled, COUNT(scheduled), TFH_ROLE_NONE, &callee), 3);
	assert_int_equal(callee, 0);
	assert_int_equal(tfh_role_lead(cleared, COUNT(cleared), TFH_ROLE_NONE, &callee), 3);
	assert_int_equal(callee, 0);
	assert_int_equal(tfh_role_lead(module, COUNT(module), TFH_ROLE_COMPUTE, &callee), 3);
	assert_int_equal(callee, 0); /* what is between only passes the call on */
	assert_int_equal(tfh_place_role(queued, COUNT(queued), TFH_ORDER_UNKNOWN), TFH_ROLE_LOADER);
	assert_int_equal(tfh_place_role(arrays, COUNT(arrays), TFH_ORDER_UNKNOWN), TFH_ROLE_NONE);
	assert_int_equal(tfh_place_role(queued, 2, TFH_ORDER_UNKNOWN), TFH_ROLE_QUEUE);
	assert_int_equal(tfh_place_role(queued, 2, TFH_ORDER_AFTER), TFH_ROLE_TAKE);
	assert_int_equal(tfh_place_role(saves, COUNT(saves), TFH_ORDER_AFTER), TFH_ROLE_SAVE);
	assert_int_equal(tfh_place_role(saves, COUNT(saves), TFH_ORDER_BEFORE), TFH_ROLE_NONE);
	assert_int_equal(tfh_place_role(callback, COUNT(callback), TFH_ORDER_AFTER), TFH_ROLE_NONE);
}

static void test_profilers(void **state)
{
	/* A profiler's own work is no computing, whatever it calls, and its line is the one that calls
	 * it; what it wraps is not its own. */
	const struct tfh_model_line stops[] = {
		{LIB "/torch/autograd/profiler.py", "profile.export_chrome_trace", 545, true},
		{"/job/train.py", "save", 25, false},
		{LIB "/torch/profiler/profiler.py", "profile._trace_ready", 1256, true},
		{LIB "/torch/profiler/profiler.py", "profile.step", 1227, true},
		{"/job/train.py", "main", 46, false}};
	const struct tfh_model_line wraps[] = {
		{LIB "/torch/autograd/profiler.py", "record_function.__exit__", 932, true},
		{"/job/train.py", "main", 44, false}};
	const struct tfh_model_line runs[] = {
		{"/job/train.py", "main", 44, false},
		{"/v/lib/python3.11/cProfile.py", "Profile.runcall", 110, true},
		{"/job/train.py", "<module>", 60, false}};
	uint32_t callee;

	(void)state;
	assert_int_equal(tfh_place_role(stops, COUNT(stops), TFH_ORDER_UNKNOWN), TFH_ROLE_PROFILE);
	assert_int_equal(tfh_role_lead(stops, COUNT(stops), TFH_ROLE_PROFILE, &callee), 4);
	assert_int_equal(callee, 3);
	assert_int_equal(tfh_role_cause(TFH_ROLE_PROFILE), TFH_CAUSE_HOST_LOGGING);
	assert_true(tfh_profiles(stops[3].file, stops[3].function));
	assert_false(tfh_profiles(wraps[0].file, wraps[0].function));
	assert_int_not_equal(tfh_place_role(wraps, COUNT(wraps), TFH_ORDER_UNKNOWN),
			     TFH_ROLE_PROFILE);
	assert_int_equal(tfh_place_role(runs, COUNT(runs), TFH_ORDER_UNKNOWN), TFH_ROLE_NONE);
}

static void test_evaluates(void **state)
{
	/* A function of the program that a trainer calls, and that uses the model. */
	const struct tfh_model_line generates[] = {
		{LIB "/torch/nn/modules/module.py", "Module._call_impl", 1789, true},
		{LIB "/transformers/generation/utils.py", "GenerationMixin.generate", 3007, true},
		{"/job/train.py", "Texts.on_step_end", 34, false},
		{LIB "/transformers/trainer.py", "Trainer.train", 1576, true},
		{"/job/train.py", "<module>", 50, false}};
	/* The same in an environment that has PyTorch's name. */
	const struct tfh_model_line named[] = {
		generates[0],
		generates[1],
		generates[2],
		{"/envs/torch/lib/python3.11/site-packages/transformers/trainer.py",
		 "Trainer.train", 1576, true},
		generates[4]};
	/* The program's own module below its own loop. */
	const struct tfh_model_line forward[] = {
		{LIB "/torch/nn/modules/module.py", "Module._call_impl", 1789, true},
		{"/job/train.py", "Block.forward", 20, false},
		{LIB "/torch/nn/modules/container.py", "Sequential.forward", 253, true},
		{"/job/train.py", "main", 42, false}};

	(void)state;
	assert_ptr_equal(tfh_place_evaluates(generates, COUNT(generates)), &generates[2]);
	assert_ptr_equal(tfh_place_evaluates(named, COUNT(named)), &named[2]);
	assert_null(tfh_place_evaluates(generates, 4));	    /* nothing of the program called it */
	assert_null(tfh_place_evaluates(generates + 1, 4)); /* uses no module */
	assert_null(tfh_place_evaluates(forward, COUNT(forward)));
}

static void test_order(void **state)
{
	(void)state;
	const struct tfh_model_line call[] = {{"/job/train.py", "step", 70, false}, loop_call};
	struct tfh_model_line seen[] = {{STD "/queue.py", "Queue.get", 6, true}, loop_call};

	seen[1].line = 19;
	assert_int_equal(tfh_order_of(seen, 2, call, 2), TFH_ORDER_BEFORE);
	seen[1].line = 21;
	assert_int_equal(tfh_order_of(seen, 2, call, 2), TFH_ORDER_AFTER);
	seen[1].line = 20; /* the same statement, another function in it */
	assert_int_equal(tfh_order_of(seen, 2, call, 2), TFH_ORDER_UNKNOWN);
	assert_int_equal(tfh_order_of(seen, 2, call, 0), TFH_ORDER_UNKNOWN);
	seen[1].function = "other";
	assert_int_equal(tfh_order_of(seen, 2, call, 2), TFH_ORDER_UNKNOWN);
}

/* Without a device a wait feeds the step if it stands above the call before it and above the one behind it: what stands between the two, or
 * behind both, does not. The program's own lock may be another process's. */
static void test_fed_by_hand(void **state)
{
	(void)state;
	static const struct tfh_model_line loop = {"/job/train.py", "main", 19, false};
	struct tfh_pause_end to = {.n = 2, .n_last = 2};
	struct tfh_model_line seen[] = {{STD "/threading.py", "Event.wait", 6, true}, loop};

	to.frame[0] = (struct tfh_model_line){"/job/net.py", "forward", 7, false};
	to.last[0] = (struct tfh_model_line){"/job/net.py", "update", 9, false};
	to.frame[1] = to.last[1] = loop;
	to.frame[1].line = 20;
	to.last[1].line = 24;
	assert_int_equal(tfh_role_above(TFT_STATE_EVENT, seen, 2, &to), TFH_ROLE_MADE);
	assert_int_equal(tfh_role_above(TFT_STATE_LOCK, seen, 2, &to), TFH_ROLE_MADE);
	assert_int_equal(tfh_role_above(TFT_STATE_PIPE, seen, 2, &to), TFH_ROLE_SENT);
	assert_int_equal(tfh_role_above(TFT_STATE_SLEEP, seen, 2, &to), TFH_ROLE_NONE);
	assert_int_equal(tfh_role_above(TFT_STATE_LOCK, seen + 1, 1, &to), TFH_ROLE_GIVEN);
	seen[1].line = 25; /* behind the step */
	assert_int_equal(tfh_role_above(TFT_STATE_PIPE, seen, 2, &to), TFH_ROLE_NONE);
	seen[1].line = 22; /* in its middle */
	to.last[1].line = 20;
	to.frame[1].line = 24;
	assert_int_equal(tfh_role_above(TFT_STATE_PIPE, seen, 2, &to), TFH_ROLE_NONE);
	/* What runs there is no reading before the step, unless a pipeline was just asked. */
	to.before = TFH_FAM_EXECUTE << 3;
	assert_true(tfh_stack_samples_within(seen, 2, &to));
	to.before = TFH_FAM_CONSUMER << 3;
	assert_false(tfh_stack_samples_within(seen, 2, &to));
	to.before = TFH_FAM_EXECUTE << 3;
	seen[1].line = 19;
	assert_false(tfh_stack_samples_within(seen, 2, &to));
	seen[1].line = 22;
	to.n_last = 0;
	assert_false(tfh_stack_samples_within(seen, 2, &to));
	assert_int_equal(tfh_role_above(TFT_STATE_PIPE, seen, 2, &to), TFH_ROLE_NONE);
}

/* Between two copies, a library's code in the function that makes the second one belongs to the copies; what another function prepares for
 * it does not, nor does what the program itself does, or what runs between other calls. */
static void test_copies(void **state)
{
	(void)state;
	const struct tfh_model_line checks[] = {
		{LIB "/numba/cuda/cudadrv/devicearray.py", "array_core", 5, true},
		{LIB "/numba/cuda/cudadrv/devicearray.py", "copy_to_device", 6, true},
		{"/job/train.py", "main", 20, false}};
	const struct tfh_model_line makes[] = {{LIB "/pack/batches.py", "pick", 5, true},
					       {LIB "/pack/batches.py", "next_batch", 6, true},
					       {"/job/train.py", "main", 20, false}};
	struct tfh_pause_end to = {.n = 2,
				   .before = TFH_FAM_COPY << 3 | TFH_DIR_H2D,
				   .after = TFH_FAM_COPY << 3 | TFH_DIR_H2D};

	memcpy(to.frame, checks + 1, 2 * sizeof(*checks));
	assert_true(tfh_stack_samples_copy(checks, 3, &to));
	assert_int_equal(tfh_role_between(TFT_STATE_RUNNING, TFH_ORDER_UNKNOWN, true, true, &to),
			 TFH_ROLE_COPY);
	assert_int_equal(tfh_role_between(TFT_STATE_LOCK, TFH_ORDER_UNKNOWN, true, true, &to),
			 TFH_ROLE_NONE);
	assert_false(tfh_stack_samples_copy(makes, 3, &to));
	assert_false(tfh_stack_samples_copy(checks + 2, 1, &to));
	assert_false(tfh_stack_samples_copy(checks, 0, &to));
	to.frame[1].line = 21;
	assert_false(tfh_stack_samples_copy(checks, 3, &to));
	to.soon = true;
	to.n = 0; /* no stack is taken after a short pause */
	assert_true(tfh_stack_samples_copy(checks, 3, &to));
	assert_false(tfh_stack_samples_copy(checks + 2, 1, &to));
	to.before = TFH_FAM_LAUNCH << 3;
	assert_false(tfh_stack_samples_copy(checks, 3, &to));
}

/* Numba looks the kernel of each launch up where it would also compile it. */
static void test_kernel_lookup(void **state)
{
	(void)state;
	const struct tfh_model_line finds[] = {
		{LIB "/numba/cuda/cudadrv/devices.py", "get_context", 220, true},
		{LIB "/numba/cuda/codegen.py", "CUDACodeLibrary.get_cufunc", 207, true},
		{LIB "/numba/cuda/dispatcher.py", "_Kernel.launch", 304, true},
		{"/job/train.py", "main", 20, false}};
	struct tfh_model_line compiles[COUNT(finds)];

	memcpy(compiles, finds, sizeof(finds));
	compiles[0].file = LIB "/numba/cuda/codegen.py";
	compiles[0].function = "CUDACodeLibrary.get_cubin";
	assert_int_equal(tfh_place_role(finds, COUNT(finds), TFH_ORDER_UNKNOWN), TFH_ROLE_NONE);
	assert_int_equal(tfh_place_role(compiles, COUNT(finds), TFH_ORDER_UNKNOWN),
			 TFH_ROLE_COMPILE);
}

/* The library that launches prepares a launch or copy of its own; other libraries, and what it does elsewhere, do not. */
static void test_issues(void **state)
{
	(void)state;
	const struct tfh_model_line prepares[] = {
		{LIB "/numba/cuda/args.py", "InOut.to_device", 5, true},
		{LIB "/numba/cuda/dispatcher.py", "__call__", 6, true},
		{"/job/train.py", "main", 20, false}};
	const struct tfh_model_line other[] = {{LIB "/numpy/core.py", "roll", 5, true},
					       {"/job/train.py", "main", 20, false}};
	struct tfh_pause_end to = {
		.n = 2, .before = TFH_FAM_COPY << 3 | TFH_DIR_H2D, .after = TFH_FAM_LAUNCH << 3};

	memcpy(to.frame, prepares + 1, 2 * sizeof(*prepares));
	assert_true(tfh_stack_samples_issue(prepares, 3, &to, "numba"));
	assert_false(tfh_stack_samples_issue(prepares, 3, &to, ""));
	assert_false(tfh_stack_samples_issue(prepares, 3, &to, "pycuda"));
	assert_false(tfh_stack_samples_issue(prepares + 2, 1, &to, "numba"));
	assert_false(tfh_stack_samples_issue(other, 2, &to, "numba"));
	/* At the line that makes the call, whichever library works there. */
	assert_true(tfh_stack_samples_on_line(other, 2, &to));
	assert_true(tfh_stack_samples_on_line(prepares + 2, 1, &to));
	assert_false(tfh_stack_samples_on_line(other, 0, &to));
	to.after = TFH_FAM_COPY << 3 | TFH_DIR_H2D;
	assert_true(tfh_stack_samples_issue(prepares, 3, &to, "numba"));
	/* The function that goes on to copy works itself, at a line above. */
	to.n = 3;
	memcpy(to.frame, prepares, 3 * sizeof(*prepares));
	struct tfh_model_line works[] = {prepares[1], prepares[2]};
	assert_true(tfh_stack_samples_issue(works, 2, &to, "numba"));
	works[0].line = 4;
	assert_false(tfh_stack_samples_issue(works, 2, &to, "numba"));
	to.n = 2;
	memcpy(to.frame, prepares + 1, 2 * sizeof(*prepares));
	to.frame[0].function = "send";
	assert_false(tfh_stack_samples_issue(prepares, 3, &to, "numba"));
	to.after = TFH_FAM_LAUNCH << 3;
	to.frame[1].line = 21;
	assert_false(tfh_stack_samples_issue(prepares, 3, &to, "numba"));
	assert_false(tfh_stack_samples_on_line(other, 2, &to));
	to.soon = true;
	assert_true(tfh_stack_samples_issue(prepares, 3, &to, "numba"));
	to.after = TFH_FAM_SYNC << 3;
	assert_false(tfh_stack_samples_issue(prepares, 3, &to, "numba"));
}

/* What a data set opens and reads, and what it copies from elsewhere, its loader reads; what it computes, its map does. */
static void test_loads(void **state)
{
	(void)state;
	static const char *const file[] = {"<builtin>", STD "/shutil.py", LIB "/numpy/core.py"},
				 *const function[] = {"open", "copyfile", "roll"};
	static const enum tfh_role role[] = {TFH_ROLE_READ, TFH_ROLE_READ, TFH_ROLE_MAP};

	for (size_t i = 0; i < COUNT(role); i++) {
		const struct tfh_model_line frame[] = {
			{file[i], function[i], 5, true},
			{"/job/train.py", "Parts.__getitem__", 66, false},
			{LIB "/torch/utils/data/_utils/fetch.py", "_MapDatasetFetcher.fetch", 54,
			 true},
			{"/job/train.py", "main", 71, false}};
		assert_int_equal(tfh_loader_role(frame, COUNT(frame), TFT_STATE_RUNNING), role[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_roles),	      cmocka_unit_test(test_order),
		cmocka_unit_test(test_profilers),     cmocka_unit_test(test_evaluates),
		cmocka_unit_test(test_fed_by_hand),   cmocka_unit_test(test_copies),
		cmocka_unit_test(test_kernel_lookup), cmocka_unit_test(test_issues),
		cmocka_unit_test(test_loads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
