/* What a report advises beside the verdict: places and parts of the run, with their lines. */
#include "report_job.h"

static bool advises(const struct tfh_wording *said, const char *words)
{
	for (uint32_t i = 0; i < said->n_advice; i++)
		if (strstr(said->advice[i].finding, words))
			return true;
	return false;
}

/* A place that the verdict's line calls, or that calls it, is no further advice; one beside it is. */
static void test_nested_places(void **state)
{
	static const struct {
		uint32_t nms, iou; /* who calls them, as a node; 0: the loop */
		bool advised;
	} row[] = {{0, 1, false}, {2, 0, false}, {0, 0, true}};

	(void)state;
	for (size_t k = 0; k < sizeof(row) / sizeof(*row); k++) {
		struct tfh_seen_node node[] = {
			{.file = "a.py", .function = "main", .s_per_step = 9e-3},
			{.file = "a.py",
			 .function = "nms",
			 .s_per_step = 5e-3,
			 .parent = row[k].nms},
			{.file = "a.py",
			 .function = "iou",
			 .s_per_step = 3e-3,
			 .parent = row[k].iou}};
		struct words w;
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
		w.r.found.node = node;
		w.r.found.n_node = 3;
		w.r.n_place = 2;
		w.r.line_place = 1;
		for (uint32_t i = 0; i < 2; i++)
			w.r.place[i] = (struct tfh_place_gain){.file = "a.py",
							       .function = node[i + 1].function,
							       .whole = true,
							       .gain.saved_s = 0.5 - 0.2 * i};
		tfh_name_places(&w.said);
		tfh_advise_rest(&w.said);
		assert_int_equal(advises(&w.said, "iou also takes time"), row[k].advised);
		tfh_wording_free(&w.said);
	}
}

/* The lines at which the model computes are nothing to do less often, though the host's own time is seen there, too. */
static void test_computing_places(void **state)
{
	(void)state;
	for (uint32_t line = 30; line < 50; line += 10) {
		struct words w;
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
		w.r.n_place = 2;
		w.r.line_place = 1;
		for (uint32_t i = 0; i < 2; i++)
			w.r.place[i] = (struct tfh_place_gain){.file = "a.py",
							       .function = "main",
							       .line = 10 + 20 * i,
							       .first_line = 10 + 20 * i,
							       .last_line = 12 + 20 * i,
							       .gain.saved_s = 0.5 - 0.2 * i};
		w.r.found.computed.backward[0] = (struct tfh_computed_line){
			.file = "a.py", .function = "main", .line = line};
		tfh_name_places(&w.said);
		tfh_advise_rest(&w.said);
		assert_int_equal(advises(&w.said, "also takes time"), line == 40);
		tfh_wording_free(&w.said);
	}
}

/* Imports before the first step are worth advice only where that time is half of the run, and then without a gain, after all that
 * recurs; what the program does there itself is, from a tenth on, with its line, and with what it waits for if it does for over half
 * of that time. A lock tells nothing. */
static void test_imports(void **state)
{
	static const struct {
		double s;
		const char *imports;
		enum tft_state state;
		const char *says; /* NULL: nothing */
	} row[] = {
		{3, "/v/torch/__init__.py", TFT_STATE_RUNNING, NULL},
		{6, "/v/torch/__init__.py", TFT_STATE_RUNNING,
		 "before the first GPU call, besides imports: 1.20 s, 40 % in load (train.py:9)"},
		{3, NULL, TFT_STATE_CHILD,
		 "call: 3.00 s, 80 % at train.py:2, waiting for a child process"},
		{3, NULL, TFT_STATE_LOCK, "call: 3.00 s, 80 % at train.py:2"},
		{4, "/v/torch/__init__.py", TFT_STATE_RUNNING,
		 "before the first GPU call, besides imports: 1.60 s, 50 % in load (train.py:9)"}};

	(void)state;
	for (size_t k = 0; k < sizeof(row) / sizeof(*row); k++) {
		struct tfh_part_of_run tree[] = {
			{.kind = TFH_BRANCH_RUN, .wall_s = 10},
			{.kind = TFH_BRANCH_BEFORE, .wall_s = row[k].s},
			{.kind = TFH_BRANCH_STEP, .wall_s = 10 - row[k].s}};
		struct words w;
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
		w.r.end = TFH_END_EXIT;
		w.r.tree = tree;
		w.r.n_tree = 3;
		w.r.found.start[TFH_SEEN_BEFORE] = (struct tfh_seen_start){
			.kind = TFH_BRANCH_BEFORE,
			.wall_s = row[k].s,
			.samples = 100,
			.n_line = 2,
			.line = {{"train.py", "<module>", 2, row[k].imports, 0.8, 80},
				 {"train.py", "load", 9, NULL, 0.08, 10}}};
		w.r.found.start[TFH_SEEN_BEFORE].state[row[k].state] = 0.7;
		if (k == 4)
			w.r.found.start[TFH_SEEN_BEFORE].line[0].share = 0.6,
			w.r.found.start[TFH_SEEN_BEFORE].line[1].share = 0.2;
		tfh_advise_rest(&w.said);
		assert_int_equal(advises(&w.said, "before the first"), row[k].says != NULL);
		if (row[k].says && !advises(&w.said, row[k].says))
			fail_msg("no %s", row[k].says);
		assert_int_equal(advises(&w.said, "waiting"), k == 2);
		assert_int_equal(advises(&w.said, "imports, mostly torch: 4.80 s, once per run"),
				 row[k].s > 5);
		tfh_wording_free(&w.said);
	}
}

/* What a run did before its steps is told of one that was killed only if it had hardly come to them; what it does in each epoch,
 * always. */
static void test_killed(void **state)
{
	static const struct {
		double before;
		enum tfh_end end;
		bool told;
	} row[] = {
		{3, TFH_END_SIGNAL, false}, {9.5, TFH_END_SIGNAL, true}, {3, TFH_END_EXIT, true}};

	(void)state;
	for (size_t k = 0; k < sizeof(row) / sizeof(row[0]); k++) {
		double before = row[k].before, gap = before < 5 ? 2 : 0.1;
		struct tfh_part_of_run tree[] = {
			{.kind = TFH_BRANCH_RUN, .wall_s = 10},
			{.kind = TFH_BRANCH_STARTUP, .wall_s = before},
			{.kind = TFH_BRANCH_EPOCH, .wall_s = 10 - before},
			{.kind = TFH_BRANCH_STEP, .parent = 2, .wall_s = 10 - before - gap},
			{.kind = TFH_BRANCH_BETWEEN, .parent = 2, .wall_s = gap}};
		struct words w;
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
		w.r.end = row[k].end;
		w.r.tree = tree;
		w.r.n_tree = 5;
		tfh_advise_rest(&w.said);
		assert_int_equal(advises(&w.said, "start-up"), row[k].told);
		assert_int_equal(advises(&w.said, "between loops: 2.00 s"), before < 5);
		tfh_wording_free(&w.said);
	}
}

/* Compiling that takes a tenth of the run or more is advice of its own, with its line. The first steps then are advised about only
 * if they take long without it. */
static void test_compiling(void **state)
{
	static const struct {
		double s;
		uint32_t samples;
		bool told, first;
	} row[] = {{4, 100, true, false},
		   {2.5, 100, true, true},
		   {0.5, 100, false, true},
		   {4, 3, false, true}};

	(void)state;
	for (size_t k = 0; k < sizeof(row) / sizeof(*row); k++) {
		struct tfh_part_of_run tree[] = {{.kind = TFH_BRANCH_RUN, .wall_s = 10},
						 {.kind = TFH_BRANCH_FIRST, .wall_s = 4},
						 {.kind = TFH_BRANCH_STEP, .wall_s = 6}};
		struct words w;
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
		w.r.end = TFH_END_EXIT;
		w.r.tree = tree;
		w.r.n_tree = 3;
		w.r.found.compiling =
			(struct tfh_compiling){.s = {[TFH_SEGMENT_WARMUP] = row[k].s},
					       .samples = row[k].samples,
					       .times = 3,
					       .file = "/job/folds.py",
					       .function = "fit",
					       .line = 34,
					       .callee_file = "/lib/torch/_dynamo/eval_frame.py"};
		tfh_advise_rest(&w.said);
		assert_int_equal(advises(&w.said, "compiling, 3 times: "), row[k].told);
		assert_int_equal(advises(&w.said, "first steps"), row[k].first);
		for (uint32_t i = 0; i < w.said.n_advice && row[k].told; i++)
			if (strstr(w.said.advice[i].finding, "compiling, ")) {
				assert_non_null(
					strstr(w.said.advice[i].finding, "mostly at folds.py:34"));
				assert_non_null(strstr(w.said.advice[i].todo, "torch.compile"));
				assert_true(strlen(w.said.advice[i].todo) <= 160);
			}
		tfh_wording_free(&w.said);
	}
}

/* Advice about a part that is not the verdict's is about the place of most of it, if one has more than half, and tells what that gains. */
static void test_place_of_part(void **state)
{
	(void)state;
	for (int most = 0; most < 2; most++) {
		struct words w;
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
		w.r.end = TFH_END_EXIT;
		w.r.n_whatif = 1;
		w.r.whatif[0] = (struct tfh_whatif){.remove = TFH_REMOVE_HOST,
						    .step_s = 5e-3,
						    .low_s = 4e-3,
						    .high_s = 6e-3,
						    .saved_s = 0.5,
						    .speedup = 2};
		w.r.breakdown[TFH_PART_HOST] = (struct tfh_share){.s_per_step = 5e-3, .share = 0.5};
		w.r.found.cause_s[TFH_CAUSE_HOST_PYTHON] = 5e-3;
		w.r.n_place = 1;
		w.r.place[0] = (struct tfh_place_gain){.file = "/job/boxes.py",
						       .function = "nms",
						       .line = 58,
						       .whole = true,
						       .s_per_step = most ? 4e-3 : 1e-4,
						       .gain = {.saved_s = 0.25, .step_s = 7.5e-3}};
		tfh_name_places(&w.said);
		tfh_advise_rest(&w.said);
		assert_int_equal(advises(&w.said, "the program's own code"), !most);
		assert_int_equal(advises(&w.said, "nms (boxes.py:58) also takes time"), most);
		assert_float_equal(w.said.advice[0].saved_s, most ? 0.25 : 0.5, 1e-9);
		tfh_wording_free(&w.said);
	}
}

/* Where the verdict has a place of its own, advice about the program's code names the others, if they have most of it. */
static void test_other_places(void **state)
{
	(void)state;
	for (int most = 0; most < 2; most++) {
		struct words w;
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LAUNCH);
		w.r.end = TFH_END_EXIT;
		w.r.n_whatif = 1;
		w.r.whatif[0] = (struct tfh_whatif){
			.remove = TFH_REMOVE_HOST, .step_s = 5e-3, .saved_s = 0.5, .speedup = 2};
		w.r.breakdown[TFH_PART_HOST] = (struct tfh_share){.s_per_step = 5e-3, .share = 0.5};
		w.r.found.cause_s[TFH_CAUSE_HOST_PYTHON] = 5e-3;
		w.r.n_place = 3;
		w.r.line_place = 1;
		for (uint32_t i = 0; i < 3; i++)
			w.r.place[i] = (struct tfh_place_gain){.file = "/job/tree.py",
							       .function = i == 1 ? "find" : "put",
							       .line = 40 + i,
							       .first_line = 40 + i,
							       .last_line = 40 + i,
							       .whole = i == 1,
							       .s_per_step = most ? 1.5e-3 : 1e-3};
		tfh_name_places(&w.said);
		tfh_advise_rest(&w.said);
		assert_true(advises(&w.said, "the program's own code"));
		assert_int_equal(advises(&w.said, ", mostly in find (tree.py:41), tree.py:42"),
				 most);
		assert_int_equal(strstr(w.said.advice[0].todo, "py-spy") == NULL, most);
		tfh_wording_free(&w.said);
	}
}

/* Where lines of the program were sampled, no other tool is advised to look for them. */
static void test_sampled_lines(void **state)
{
	(void)state;
	for (int seen = 0; seen < 2; seen++) {
		struct words w;
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
		w.r.verdict = w.r.steady;
		w.r.found.n_node = (uint32_t)seen;
		tfh_wording_make(&w.said, &w.r);
		assert_true(advises(&w.said, "the program's own code"));
		assert_int_equal(strstr(w.said.advice[0].todo, "tfhook report --where") != NULL,
				 seen);
		assert_int_equal(strstr(w.said.advice[0].todo, "py-spy") == NULL, seen);
		tfh_wording_free(&w.said);
	}
}

/* Where most of a step's computing on the CPU is PyTorch's optimizer, the advice is about it. */
static void test_optimizer(void **state)
{
	(void)state;
	for (int most = 0; most < 2; most++) {
		struct words w;
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
		w.r.verdict = w.r.steady;
		w.r.found.line = (struct tfh_seen_line){.file = "/job/ctr.py",
							.function = "fit",
							.line = 66,
							.callee = "Adam.step",
							.callee_file = "/v/torch/optim/adam.py",
							.s_per_step = most ? 8e-3 : 1e-3,
							.of_s = 1e-2};
		tfh_wording_make(&w.said, &w.r);
		assert_int_equal(advises(&w.said, "the optimizer takes most"), most);
		tfh_wording_free(&w.said);
	}
}

/* What a method of Keras compiles anew in each call is advised about by the method's name, and the pipeline that it makes each time is not
 * advised about besides. */
static void test_anew(void **state)
{
	static const char *const method[] = {"predict", "evaluate", "fit"};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(method) / sizeof(method[0]); i++) {
		bool most = i % 2;
		char name[32];
		struct words w;
		snprintf(name, sizeof(name), "TensorFlowTrainer.%s", method[i / 2]);
		struct tfh_seen_node node[] = {
			{.file = "/job/score.py", .function = "<module>", .s_per_step = 5e-3},
			{.file = "/v/keras/src/trainer.py", .function = name, .s_per_step = 4.9e-3},
			{.file = "/v/keras/src/trainer.py",
			 .function = "TFEpochIterator.__init__",
			 .parent = 1,
			 .s_per_step = most ? 4e-3 : 1e-3}};
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_COMPILE);
		w.r.found.node = node;
		w.r.found.n_node = 3;
		w.r.n_whatif = 1;
		w.r.whatif[0] = (struct tfh_whatif){
			.remove = TFH_REMOVE_INPUT, .saved_s = 0.5, .speedup = 2};
		tfh_wording_make(&w.said, &w.r);
		snprintf(name, sizeof(name), "each call of %s()", method[i / 2]);
		assert_int_equal(advises(&w.said, name), most);
		assert_int_equal(advises(&w.said, "reading the data is too slow"), !most);
		tfh_wording_free(&w.said);
	}
}

/* Two methods that both take much of that time are advised about together. */
static void test_anew_both(void **state)
{
	(void)state;
	for (int k = 0; k < 2; k++) {
		struct words w;
		struct tfh_seen_node node[] = {
			{.file = "/job/dqn.py", .function = "replay", .s_per_step = 6e-3},
			{.file = "/v/keras/src/trainer.py",
			 .function = "TensorFlowTrainer.predict",
			 .s_per_step = 4e-3},
			{.file = "/v/keras/src/trainer.py",
			 .function = "TFEpochIterator.__init__",
			 .parent = 1,
			 .s_per_step = 3e-3},
			{.file = "/v/keras/src/trainer.py",
			 .function = "TensorFlowTrainer.fit",
			 .s_per_step = 2e-3},
			{.file = "/v/keras/src/trainer.py",
			 .function = "TFEpochIterator.__init__",
			 .parent = k ? 3 : 1,
			 .s_per_step = 1e-3}};
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_COMPILE);
		w.r.found.node = node;
		w.r.found.n_node = 5;
		tfh_wording_make(&w.said, &w.r);
		assert_int_equal(advises(&w.said, "each call of predict() and of fit()"), k);
		assert_int_equal(advises(&w.said, "each call of predict() makes"), !k);
		tfh_wording_free(&w.said);
	}
}

/* Stacks formatted below many lines are one cost: anomaly detection was left on. A few of them,
 * and those of a program without PyTorch, are not. */
static void test_anomalies(void **state)
{
	static const struct {
		double s;
		bool torch, advised;
	} row[] = {{1e-3, true, true}, {1e-5, true, false}, {1e-3, false, false}};

	(void)state;
	for (size_t k = 0; k < sizeof(row) / sizeof(*row); k++) {
		struct words w;
		struct tfh_seen_node node[4];
		for (uint32_t i = 0; i < 4; i++)
			node[i] = i % 2 ? (struct tfh_seen_node){.file = "/usr/lib/traceback.py",
								 .function = "format_stack",
								 .line = 200,
								 .parent = i - 1,
								 .samples = 3,
								 .s_per_step = row[k].s}
					: (struct tfh_seen_node){.file = "/job/a.py",
								 .function = "forward",
								 .line = i + 1,
								 .parent = i,
								 .samples = 9,
								 .s_per_step = 3 * row[k].s};
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
		w.r.found.cpu_only = true;
		w.r.found.torch = row[k].torch;
		w.r.found.node = node;
		w.r.found.n_node = 4;
		tfh_wording_make(&w.said, &w.r);
		assert_int_equal(advises(&w.said, "a stack is formatted for each operation"),
				 row[k].advised);
		assert_int_equal(w.said.misuse > 0, row[k].advised);
		tfh_wording_free(&w.said);
	}
}

/* Functions of Python in a pipeline do not run in parallel, whatever the stage's calls do. */
static void test_python_map(void **state)
{
	struct tfh_input_stage stage = {.name = "ParallelMapV2",
					.prefix = "Iterator::Root::ParallelMapV2",
					.calls_per_step = 1,
					.async = true,
					.parallelism = 2,
					.guilty = true};
	struct tfh_seen_node node = {.function = "FuncRegistry.__call__", .s_per_step = 1e-3};

	(void)state;
	for (int python = 0; python < 2; python++) {
		struct words w;
		begin(&w, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP);
		node.file = python ? "/v/tensorflow/python/ops/script_ops.py" : "/job/train.py";
		w.r.input = &stage;
		w.r.n_input = 1;
		w.r.found.workers.threads = 1;
		w.r.found.workers.node = &node;
		w.r.found.workers.n_node = 1;
		tfh_wording_make(&w.said, &w.r);
		assert_int_equal(strstr(w.said.advice[0].todo, "one runs at a time") != NULL,
				 python);
		tfh_wording_free(&w.said);
	}
}

/* A flat_map() over window() copies each window's rows one by one: calling it for several windows
 * at once is no remedy. */
static void test_windows(void **state)
{
	struct tfh_input_stage stage[] = {
		{.name = "FlatMap",
		 .prefix = "Iterator::Root::FlatMap",
		 .calls_per_step = 1,
		 .guilty = true},
		{.prefix = "Iterator::Root::FlatMap::Window", .calls_per_step = 1}};

	(void)state;
	for (int window = 0; window < 2; window++) {
		struct words w;
		begin(&w, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP);
		stage[1].name = window ? "Window" : "TensorSlice";
		w.r.input = stage;
		w.r.n_input = 2;
		tfh_wording_make(&w.said, &w.r);
		assert_int_equal(advises(&w.said, "every window is a data set"), window);
		tfh_wording_free(&w.said);
	}
}

/* What comes after the last call is worth advice, but not in a job that failed: nothing saves or uploads there. Nor is it where a
 * program of Python runs no more: the interpreter ends. */
static void test_end(void **state)
{
	static const struct {
		int code;
		double python; /* share of that time; 0: no line of Python was seen, except before the steps */
		const char *says;
	} row[] = {{0, 1, "after the last batch: 4.00 s, 100 % at train.py:9"},
		   {1, 1, NULL},
		   {0, 0, NULL},
		   {0, 0.1, NULL},
		   {0, 0.5, "after the last batch: 2.00 s, 100 % at train.py:9"}};

	(void)state;
	for (size_t k = 0; k < sizeof(row) / sizeof(*row); k++) {
		struct tfh_part_of_run tree[] = {{.kind = TFH_BRANCH_RUN, .wall_s = 10},
						 {.kind = TFH_BRANCH_STEP, .wall_s = 6},
						 {.kind = TFH_BRANCH_AFTER, .wall_s = 4}};
		struct words w;
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
		w.r.end = TFH_END_EXIT;
		w.r.end_code = row[k].code;
		w.r.tree = tree;
		w.r.n_tree = 3;
		w.r.found.start[TFH_SEEN_BEFORE].n_line = 1;
		w.r.found.start[TFH_SEEN_AFTER] = (struct tfh_seen_start){
			.kind = TFH_BRANCH_AFTER,
			.wall_s = 4,
			.samples = 100,
			.n_line = row[k].python > 0,
			.line = {{"train.py", "<module>", 9, NULL, row[k].python, 50}}};
		tfh_advise_rest(&w.said);
		assert_int_equal(advises(&w.said, "after the last"), row[k].says != NULL);
		assert_true(!row[k].says || advises(&w.said, row[k].says));
		tfh_wording_free(&w.said);
	}
}

/* Where evaluations mostly do something that has a cause of its own, the advice is that of the cause, and gains what it blocks. */
static void test_evaluation(void **state)
{
	static const struct {
		enum tfh_cause cause;
		double blocked_s, gain_s;
		const char *says, *todo;
	} row[] = {{TFH_CAUSE_HOST_CHECKPOINT, 3, 3,
		    "evaluation: 4.00 s, mostly host.checkpoint, 60 % in save", "save less often"},
		   {TFH_CAUSE_HOST_CHECKPOINT, 1, 4, "evaluation: 4.00 s, host-bound, 60 % in save",
		    "fewer batches"},
		   {TFH_CAUSE_HOST_PYTHON, 3, 4, "evaluation: 4.00 s, host-bound, 60 % in save",
		    "fewer batches"}};

	(void)state;
	for (size_t k = 0; k < sizeof(row) / sizeof(*row); k++) {
		struct tfh_part_of_run tree[] = {{.kind = TFH_BRANCH_RUN, .wall_s = 10},
						 {.kind = TFH_BRANCH_TRAIN, .wall_s = 6},
						 {.kind = TFH_BRANCH_EVALUATE, .wall_s = 4}};
		struct words w;
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
		w.r.end = TFH_END_EXIT;
		w.r.tree = tree;
		w.r.n_tree = 3;
		w.r.n_recurring = 1;
		w.r.recurring[0] = (struct tfh_recurring){.kind = TFH_SEGMENT_EVAL,
							  .cls = TFH_CLASS_HOST_BOUND,
							  .cause = row[k].cause,
							  .total_s = 4,
							  .blocked_s = row[k].blocked_s};
		w.r.found.start[TFH_SEEN_EVALUATE] =
			(struct tfh_seen_start){.kind = TFH_BRANCH_EVALUATE,
						.wall_s = 4,
						.samples = 100,
						.n_line = 1,
						.line = {{"/v/site-packages/torch/serialization.py",
							  "save", 9, NULL, 0.6, 60}}};
		tfh_advise_rest(&w.said);
		assert_true(advises(&w.said, row[k].says));
		assert_non_null(strstr(w.said.advice[0].todo, row[k].todo));
		assert_float_equal(w.said.advice[0].saved_s, row[k].gain_s, 1e-9);
		tfh_wording_free(&w.said);
	}
}

/* Time between loops that recurs has its count. Its line has the name of its function unless steps go through that, too. */
static void test_gaps(void **state)
{
	static const char *const says[] = {
		"between loops, 3 times: 4.00 s, 90 % in evaluate (train.py:44)",
		"between loops, 3 times: 4.00 s, 90 % at train.py:44"};

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct tfh_part_of_run tree[] = {{.kind = TFH_BRANCH_RUN, .wall_s = 10},
						 {.kind = TFH_BRANCH_TRAIN, .wall_s = 6},
						 {.kind = TFH_BRANCH_BETWEEN, .wall_s = 4}};
		struct tfh_seen_node node = {.file = "train.py",
					     .function = k ? "evaluate" : "main"};
		struct words w;
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
		w.r.end = TFH_END_EXIT;
		w.r.tree = tree;
		w.r.n_tree = 3;
		w.r.found.node = &node;
		w.r.found.n_node = w.r.n_recurring = 1;
		w.r.recurring[0] = (struct tfh_recurring){.kind = TFH_SEGMENT_BETWEEN, .count = 3};
		w.r.found.start[TFH_SEEN_BETWEEN] = (struct tfh_seen_start){
			.kind = TFH_BRANCH_BETWEEN,
			.wall_s = 4,
			.samples = 100,
			.n_line = 1,
			.line = {{"train.py", "evaluate", 44, NULL, 0.9, 90}}};
		tfh_advise_rest(&w.said);
		assert_true(advises(&w.said, says[k]));
		tfh_wording_free(&w.said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested_places), cmocka_unit_test(test_computing_places),
		cmocka_unit_test(test_imports),	      cmocka_unit_test(test_end),
		cmocka_unit_test(test_killed),	      cmocka_unit_test(test_compiling),
		cmocka_unit_test(test_place_of_part), cmocka_unit_test(test_other_places),
		cmocka_unit_test(test_sampled_lines), cmocka_unit_test(test_optimizer),
		cmocka_unit_test(test_windows),	      cmocka_unit_test(test_anomalies),
		cmocka_unit_test(test_anew),	      cmocka_unit_test(test_anew_both),
		cmocka_unit_test(test_evaluation),    cmocka_unit_test(test_python_map),
		cmocka_unit_test(test_gaps)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
