/* The sentences of a report: every cause has one with its figure and advice, units change where
 * they do in the tables. */
#include <ctype.h>

#include "report_job.h"
#include "report/words/remedy.h"

static bool has_figure(const char *text)
{
	for (; *text; text++)
		if (isdigit((unsigned char)*text))
			return true;
	return false;
}

static void test_every_cause(void **state)
{
	(void)state;
	struct words w;

	for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
		begin(&w, tfh_cause_class(c), c);
		assert_true(tfh_explain_cause(&w.said));
		tfh_explain_kernels(&w.said);
		if (!w.said.text || !has_figure(w.said.text))
			fail_msg("%s has no sentence with a figure", tfh_cause_name(c));
		if (!w.said.n_advice || !w.said.advice[0].todo || !*w.said.advice[0].todo)
			fail_msg("%s has no advice", tfh_cause_name(c));
		for (uint32_t i = 0; i < w.said.n_advice; i++)
			assert_true(*w.said.advice[i].finding && *w.said.advice[i].evidence &&
				    strlen(w.said.advice[i].todo) <= 160);
		tfh_wording_free(&w.said);
	}
}

/* Each cause but those that are the program's own code has an advice of its own. */
static void test_own_advice(void **state)
{
	(void)state;
	struct words w;
	char seen[TFH_CAUSE_COUNT][200];
	int n = 0;

	for (int c = 0; c < TFH_CAUSE_COUNT; c++) {
		if (c == TFH_CAUSE_INPUT_CPU || c == TFH_CAUSE_HOST_LOGGING ||
		    c == TFH_CAUSE_HOST_PYTHON || c == TFH_CAUSE_HOST_GIL)
			continue;
		begin(&w, tfh_cause_class(c), c);
		tfh_explain_cause(&w.said);
		tfh_explain_kernels(&w.said);
		for (int i = 0; i < n; i++)
			if (!strcmp(seen[i], w.said.advice[0].todo))
				fail_msg("%s gets the advice of another", tfh_cause_name(c));
		snprintf(seen[n++], sizeof(seen[0]), "%s", w.said.advice[0].todo);
		tfh_wording_free(&w.said);
	}
}

/* Advice about ranks that wait for each other names what delays the one that waits least; if that is the judged one, they are late in
 * turns. */
static void test_least_waiting(void **state)
{
	struct tfh_rank rank[2] = {{.rank = 0,
				    .process = 1,
				    .cls = TFH_CLASS_HOST_BOUND,
				    .cause = TFH_CAUSE_HOST_CHECKPOINT,
				    .jitter_s = 1e-3},
				   {.rank = 1, .process = 0, .jitter_s = 9e-3}};
	struct words w;

	(void)state;
	for (uint32_t judged = 0; judged < 2; judged++) {
		begin(&w, TFH_CLASS_COMMUNICATION_BOUND, TFH_CAUSE_COMMUNICATION_JITTER);
		w.r.rank = rank;
		w.r.n_rank = 2;
		w.r.process = judged;
		tfh_explain_cause(&w.said);
		assert_non_null(strstr(w.said.advice[0].todo,
				       judged ? "late in turns"
					      : "rank 0 waits least, and delays all: its steps are "
						"host-bound, host.checkpoint"));
		tfh_wording_free(&w.said);
	}
}

/* What encodes images is told from what logs by the function that the line calls. */
static void test_images(void **state)
{
	static const char *const file[] = {"/site-packages/PIL/Image.py",
					   "/lib/logging/__init__.py"};
	struct words w;

	(void)state;
	for (int i = 0; i < 2; i++) {
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_LOGGING);
		w.r.found.line = (struct tfh_seen_line){.file = "/job/gan.py",
							.function = "step",
							.line = 41,
							.callee = "save",
							.callee_file = file[i]};
		tfh_explain_cause(&w.said);
		assert_true((strstr(w.said.text, "saving images") == NULL) == i);
		assert_true((strstr(w.said.advice[0].todo, "smaller ones") == NULL) == i);
		tfh_wording_free(&w.said);
	}
}

/* If the CPU computes, its line is reported where samples saw it. */
static void test_computing_line(void **state)
{
	(void)state;
	struct words w;

	begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	w.r.steady.tier = 'C';
	tfh_explain_kernels(&w.said);
	assert_int_equal(w.said.tells[0], TFH_TELLS_KERNEL);
	assert_non_null(strstr(w.said.evidence[0], "not known"));
	tfh_wording_free(&w.said);
	begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	w.r.steady.tier = 'C';
	w.r.found.line = (struct tfh_seen_line){.file = "/job/gpt.py",
						.function = "NewGELU.forward",
						.line = 53,
						.s_per_step = 0.3,
						.of_s = 1,
						.off_s = 0.03,
						.samples = 40};
	tfh_explain_kernels(&w.said);
	assert_int_equal(w.said.tells[0], TFH_TELLS_LINE);
	assert_string_equal(w.said.evidence[0],
			    "NewGELU.forward, gpt.py:53: 300 ms of 1.00 s (sampled, +-30 ms)");
	tfh_wording_free(&w.said);
	/* Where the line is all of it, and a function without a line. */
	begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_CHECKPOINT);
	w.r.found.line = (struct tfh_seen_line){.file = "/job/log.py",
						.function = "save",
						.line = 7,
						.s_per_step = 0.05001,
						.of_s = 0.05,
						.off_s = 0.001,
						.samples = 40,
						.callee = "fsync",
						.callee_file = "<builtin>"};
	assert_string_equal(tfh_verdict_line(&w.said),
			    "save, log.py:7: all 50.0 ms (sampled, +-1.0 ms), in fsync()");
	/* of checkpoints, which take many times a step: times per step would contradict its mean */
	assert_string_equal(tfh_lead_line(&w.said),
			    "save, log.py:7: all of that time (sampled, +-2 %), in fsync()");
	w.r.found.line.s_per_step = 0.02;
	assert_string_equal(tfh_lead_line(&w.said),
			    "save, log.py:7: 40 % of that time (sampled, +-2 %), in fsync()");
	tfh_wording_free(&w.said);
}

/* What every n-th step alone does is advised to be done less often, if it costs much and is neither an update of accumulated
 * gradients nor what the verdict is about. */
static void test_slow_steps(void **state)
{
	static const struct {
		enum tfh_class cls;
		enum tfh_cause cause;
		double share;
		uint32_t per_update;
		bool advised;
		uint64_t rounds;
	} row[] = {{TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU, 0.686, 1, true, 0},
		   {TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU, 0.686, 1, true, 50},
		   {TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_READ, 0.3, 1, true, 0},
		   {TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU, 0.05, 1, false, 0},
		   {TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU, 0.686, 6, false, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct words w;
		begin(&w, row[i].cls, row[i].cause);
		w.r.found.slow.every = 6;
		w.r.found.slow.longer_s = 0.0518;
		w.r.found.slow.share = row[i].share;
		w.r.found.slow.part = TFH_PART_COMPUTE;
		w.r.pattern.per_update = row[i].per_update;
		w.r.steps.rounds = row[i].rounds;
		tfh_advise_rest(&w.said);
		assert_int_equal(w.said.n_advice, row[i].advised);
		if (row[i].advised)
			assert_non_null(strstr(w.said.advice[0].finding,
					       row[i].rounds
						       ? "make cheaper what is done once a round"
						       : "do less often what every 6th step does"));
		tfh_wording_free(&w.said);
	}
}

/* A predicted step may be shorter than a step without the removed part; the report marks that. */
static void test_hides_more(void **state)
{
	struct words w;
	struct tfh_whatif without = {.remove = TFH_REMOVE_SYNC};

	(void)state;
	begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_CODE);
	without.step_s = tfh_step_s(&w.r) - 2e-3;
	assert_false(tfh_hides_more(&w.r, &without));
	without.step_s = tfh_step_s(&w.r) - 6e-3;
	assert_true(tfh_hides_more(&w.r, &without));
	without.step_s = NAN;
	assert_false(tfh_hides_more(&w.r, &without));
	tfh_wording_free(&w.said);
}

/* Stages that TensorFlow fused have the names of the program's stages, too; a library's inner functions have none of theirs; the ends of the run say what they are ends of. */
static void test_names(void **state)
{
	struct words w;

	(void)state;
	begin(&w, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP);
	assert_string_equal(tfh_stage_words(&w.said, "MapAndBatch"), "map + batch (MapAndBatch)");
	assert_string_equal(tfh_stage_words(&w.said, "ParallelMapV2"), "ParallelMapV2");
	assert_string_equal(tfh_inner_name("multi_step_on_iterator"), "Keras' own step");
	assert_string_equal(tfh_inner_name("train_step"), "train_step");
	assert_string_equal(tfh_outside(&w.r, TFH_BRANCH_BEFORE), "before the first GPU call");
	w.r.found.cpu_only = true;
	assert_string_equal(tfh_outside(&w.r, TFH_BRANCH_AFTER), "after the last batch");
	tfh_wording_free(&w.said);
}

/* Code that Python has no name for is described in words. */
static void test_nameless(void **state)
{
	struct words w;

	(void)state;
	begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
	assert_string_equal(tfh_function_of(&w.said, "<module>"), "top level");
	assert_string_equal(tfh_function_of(&w.said, "<listcomp>"), "list comprehension");
	assert_string_equal(tfh_function_of(&w.said, "make.<locals>.<lambda>"), "lambda in make");
	assert_string_equal(tfh_function_of(&w.said, "make.<locals>.step"), "step");
	w.r.found.line =
		(struct tfh_seen_line){.file = "/job/gc.py", .function = "<module>", .line = 32};
	assert_non_null(
		strstr(tfh_place_advice(&w.said, TFH_CAUSE_HOST_PYTHON), "make gc.py:32 faster"));
	tfh_wording_free(&w.said);
}

/* Python holds its lock, so another thread does not help; where no device computes, nothing can be done meanwhile. */
static void test_elsewhere(void **state)
{
	struct words w;

	(void)state;
	begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
	w.r.found.line = (struct tfh_seen_line){.file = "/job/a.py", .function = "f", .line = 3};
	for (int k = 0; k < 4; k++) {
		w.r.found.cpu_only = k & 1;
		w.r.found.seen.part[TFT_STATE_RUNNING] = k & 2 ? 0.9 : 0.1;
		const char *todo = tfh_place_advice(&w.said, TFH_CAUSE_HOST_PYTHON);
		assert_non_null(strstr(todo, "in another process"));
		assert_null(strstr(todo, "thread"));
		assert_int_equal(strstr(todo, "the device computes") != NULL, !(k & 1));
		assert_int_equal(strstr(todo, "if it loops") != NULL, k >= 2);
	}
	tfh_wording_free(&w.said);
}

/* Calls are a whole number, where they are that. */
static void test_calls(void **state)
{
	static const struct {
		double calls;
		const char *words;
	} row[] = {{1, "1 call"},      {0.98, "1 call"},   {2, "2 calls"}, {2.5, "2.5 calls"},
		   {0.2, "0.2 calls"}, {1.5, "1.5 calls"}, {0, "0 calls"}};
	struct words w;

	(void)state;
	begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_DENSE);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		assert_string_equal(tfh_phrase_calls(&w.said, row[i].calls), row[i].words);
	tfh_wording_free(&w.said);
}

/* A PyTorch job gets advice that PyTorch's user can check, and the number of workers that would keep up. */
static void test_torch(void **state)
{
	(void)state;
	struct words w;

	begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	w.r.found.torch = true;
	tfh_explain_cause(&w.said);
	assert_non_null(strstr(w.said.advice[0].todo, "torch.cuda.is_available()"));
	assert_null(strstr(w.said.advice[0].todo, "tf."));
	tfh_wording_free(&w.said);
	begin(&w, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP);
	w.r.found.workers.more = (struct tfh_more_workers){0, 3, 2e-3, NAN, false};
	tfh_explain_cause(&w.said);
	assert_string_equal(
		w.said.advice[0].todo,
		"num_workers=3: at best 2.00 ms a step (short epochs: persistent_workers=True)");
	tfh_wording_free(&w.said);
	begin(&w, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP);
	w.r.found.workers.more = (struct tfh_more_workers){0, 3, 2e-3, NAN, true};
	tfh_explain_cause(&w.said);
	assert_non_null(
		strstr(w.said.advice[0].todo,
		       "each with its own part of the data (get_worker_info): at best 2.00 ms"));
	tfh_wording_free(&w.said);
	begin(&w, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP);
	w.r.found.workers.more = (struct tfh_more_workers){2, 4, 3e-3, 5e-3, false};
	tfh_explain_cause(&w.said);
	assert_string_equal(w.said.advice[0].todo,
			    "4 workers instead of 2: a step then takes 3.00 ms to 5.00 ms");
	tfh_wording_free(&w.said);
}

/* If workers mostly wait and the thread that takes their batches runs, more workers are no remedy; busy workers are. */
static void test_unpacks(void **state)
{
	(void)state;
	for (int idle = 0; idle < 2; idle++) {
		struct words w;
		begin(&w, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_DATALOADER);
		w.r.found.workers.processes = 1;
		w.r.found.workers.busy = idle ? 0.03 : 0.9;
		w.r.found.seen =
			(struct tfh_seen_sum){.part = {[TFT_STATE_RUNNING] = 0.74}, .samples = 92};
		tfh_explain_cause(&w.said);
		assert_int_equal(!strstr(w.said.advice[0].todo, "collate_fn"), !idle);
		assert_int_equal(!strstr(w.said.advice[0].todo, "num_workers"), idle);
		tfh_wording_free(&w.said);
	}
}

static void test_times(void **state)
{
	(void)state;
	static const struct {
		double s;
		const char *text;
	} row[] = {{4.54e-4, "454 us"},	  {1.38e-5, "13.8 us"}, {2.1e-6, "2.10 us"},
		   {2.054e-3, "2.05 ms"}, {0.0187, "18.7 ms"},	{0.9991, "999 ms"},
		   {0.9999, "1.00 s"},	  {2.33, "2.33 s"},	{57.06, "57.1 s"}};
	struct words w;

	begin(&w, TFH_CLASS_BALANCED, TFH_CAUSE_NONE);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		assert_string_equal(tfh_phrase_time(&w.said, row[i].s), row[i].text);
	assert_string_equal(tfh_phrase_error(&w.said, 4.54e-4), "454 us");
	assert_string_equal(tfh_phrase_error(&w.said, 1.468e-3), "1.5 ms");
	assert_string_equal(tfh_phrase_error(&w.said, 0.0264), "26 ms");
	tfh_wording_free(&w.said);
}

/* A line that workers have in common with the main thread is named once. */
static void test_same_line(void **state)
{
	(void)state;
	struct words w;

	for (uint32_t line = 7; line < 9; line++) {
		begin(&w, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP);
		w.r.found.line = (struct tfh_seen_line){.file = "/job/a.py",
							.function = "draw",
							.line = 7,
							.samples = 90,
							.s_per_step = 1e-3,
							.of_s = 2e-3};
		w.r.found.workers.processes = 2;
		w.r.found.workers.busy = 0.5;
		w.r.found.workers.line.file = "/job/a.py";
		w.r.found.workers.line.function = "draw";
		w.r.found.workers.line.line = line;
		w.r.found.workers.line.share = 0.76;
		tfh_seen_line(&w.said);
		assert_int_equal(w.said.n_evidence, 2);
		assert_string_equal(strstr(w.said.evidence[1], " in "),
				    line == 7 ? " in the same line" : " in draw, a.py:8");
		tfh_wording_free(&w.said);
	}
}

/* So is a line that both samples and the stacks of calls name. */
static void test_called_line(void **state)
{
	(void)state;
	struct words w;

	for (uint32_t line = 7; line < 9; line++) {
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_COMPILE);
		w.r.found.load = (struct tfh_call_site){
			.fn = "cuModuleLoadData", .where = "a.py:7 draw > tinygrad/tensor.py:7 f"};
		w.r.found.line = (struct tfh_seen_line){
			.file = "/job/a.py", .function = "draw", .line = line, .samples = 9};
		const char *text = tfh_place_line(&w.said, TFH_CAUSE_HOST_COMPILE);
		assert_int_equal(text != NULL, line != 7);
		tfh_wording_free(&w.said);
	}
}

static void test_ordinals(void **state)
{
	(void)state;
	static const struct {
		double n;
		const char *says;
	} row[] = {{1, "1st"},	   {2, "2nd"},	   {3, "3rd"},	    {4, "4th"},	    {11, "11th"},
		   {12, "12th"},   {13, "13th"},   {21, "21st"},    {101, "101st"}, {104, "104th"},
		   {111, "111th"}, {112, "112th"}, {103.7, "104th"}};
	struct words w;

	begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_NONE);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		assert_string_equal(tfh_phrase_ordinal(&w.said, row[i].n), row[i].says);
	tfh_wording_free(&w.said);
}

/* A module that is loaded late is reported if that takes time; samples never add up to more than a part of the run; the long file
 * name of compiled code is shortened, its number not. */
static void test_small_things(void **state)
{
	(void)state;
	struct words w;

	for (int k = 0; k < 2; k++) {
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_NONE);
		w.r.pattern.recompiles = 1;
		w.r.pattern.recompile_s = k ? 0.02 : 0.005;
		w.r.found.start[0].kind = w.r.found.start[1].kind = TFH_BRANCH_NONE;
		tfh_note_steps(&w.said);
		assert_int_equal(w.said.n_remark, k);
		if (k)
			assert_non_null(strstr(w.said.remark[0], "1 module was loaded"));
		assert_non_null(strstr(tfh_remedy_in(&w.r, TFH_CAUSE_HOST_COMPILE).todo, "shapes"));
		w.r.pattern.unloads = 1; /* no compiler does that */
		assert_non_null(strstr(tfh_remedy_in(&w.r, TFH_CAUSE_HOST_COMPILE).todo, "once"));
		w.r.found.start[0] = (struct tfh_seen_start){
			.kind = TFH_BRANCH_STARTUP, .wall_s = 1, .samples = 100, .n_line = 1};
		w.r.found.start[0].line[0] = (struct tfh_start_line){.file = "/job/a.py",
								     .function = "step",
								     .line = 3,
								     .share = 1.07,
								     .samples = 100};
		assert_string_equal(tfh_start_seen(&w.said, TFH_BRANCH_STARTUP, false),
				    "100 % in step (a.py:3)");
		w.r.found.line = (struct tfh_seen_line){
			.file = "/tmp/csnfohpspodwzweoe2pc7ms2zba5p6bftyt2a54vl6rvqcvfarah.py",
			.function = "call",
			.line = 310,
			.s_per_step = 1,
			.of_s = 1};
		assert_string_equal(tfh_verdict_line(&w.said),
				    "call, csnfohpspodwzwe..l6rvqcvfarah.py:310");
		assert_string_equal(tfh_start_seen(&w.said, TFH_BRANCH_STARTUP, true), "");
		/* the line with most of it, in few words */
		assert_string_equal(tfh_start_mostly(&w.said, TFH_BRANCH_STARTUP),
				    "100 % at a.py:3");
		w.r.found.start[0].line[0].imports =
			"/usr/lib/python3/site-packages/torch/__init__.py";
		assert_string_equal(tfh_start_mostly(&w.said, TFH_BRANCH_STARTUP),
				    "100 % importing torch");
		w.r.found.start[0].line[0].share = 0.09;
		assert_string_equal(tfh_start_mostly(&w.said, TFH_BRANCH_STARTUP), "");
		w.r.found.start[0].line[0].share = 0.4;
		assert_string_equal(tfh_start_mostly(&w.said, TFH_BRANCH_STARTUP),
				    "40 % importing torch");
		/* no line has most of it, but the lines of one function together */
		struct tfh_seen_start *s = &w.r.found.start[0];
		s->n_line = 3;
		s->line[1] = (struct tfh_start_line){.file = "/job/a.py",
						     .function = "read",
						     .line = 8,
						     .share = 0.35,
						     .samples = 35};
		s->line[2] = s->line[1];
		s->line[2].line = 9;
		s->line[2].share = 0.2;
		assert_string_equal(tfh_start_mostly(&w.said, TFH_BRANCH_STARTUP),
				    "55 % in read (a.py:8)");
		assert_string_equal(tfh_start_seen(&w.said, TFH_BRANCH_STARTUP, true),
				    "40 % importing torch (a.py:3)");
		tfh_wording_free(&w.said);
	}
}

/* Rounds that are the verdict's steps are steps whole, however often calls recur within them; time between loops of
 * other rounds stays that. */
static void test_spent_in_steps(void **state)
{
	(void)state;
	struct tfh_part_of_run tree[] = {
		{.kind = TFH_BRANCH_NONE, .count = 1, .wall_s = 10},
		{.kind = TFH_BRANCH_BEFORE, .parent = 0, .count = 1, .wall_s = 1},
		{.kind = TFH_BRANCH_LOOP, .parent = 0, .count = 80, .wall_s = 8},
		{.kind = TFH_BRANCH_STEP, .parent = 2, .count = 240, .wall_s = 3},
		{.kind = TFH_BRANCH_BETWEEN, .parent = 2, .count = 240, .wall_s = 5},
		{.kind = TFH_BRANCH_BETWEEN, .parent = 0, .count = 1, .wall_s = 1},
	};
	struct tfh_result r = {.tree = tree, .n_tree = 6, .steps.total = 80};

	assert_float_equal(tfh_spent(&r, TFH_BRANCH_STEP), 8, 1e-9);
	assert_float_equal(tfh_spent(&r, TFH_BRANCH_BETWEEN), 1, 1e-9);
	assert_float_equal(tfh_spent(&r, TFH_BRANCH_BEFORE), 1, 1e-9);
	r.steps.total = 240; /* the steps are the inner loop's rounds */
	assert_float_equal(tfh_spent(&r, TFH_BRANCH_STEP), 3, 1e-9);
	assert_float_equal(tfh_spent(&r, TFH_BRANCH_BETWEEN), 6, 1e-9);
	r.steps.total = tree[3].count = 80; /* one inner round each */
	assert_float_equal(tfh_spent(&r, TFH_BRANCH_STEP), 3, 1e-9);
	/* Some steps may be rounds of a loop around theirs, if the others are as long. */
	tree[3].kind = TFH_BRANCH_LOOP;
	tree[3].count = 77;
	tree[4] = (struct tfh_part_of_run){
		.kind = TFH_BRANCH_BETWEEN, .parent = 3, .count = 77, .wall_s = 3};
	tree[2].count = 3;
	r.steps.count = 80;
	r.steps.total_s = 3.2;
	assert_float_equal(tfh_spent(&r, TFH_BRANCH_STEP), 3, 1e-9);
	r.steps.total_s = 8;
	assert_float_equal(tfh_spent(&r, TFH_BRANCH_STEP), 0, 1e-9);
}

/* A run without a verdict asks for a longer one; of a job that failed, it says how, and asks for none. */
static void test_more_of_a_run(void **state)
{
	(void)state;
	static const struct {
		enum tfh_end end;
		int code;
		const char *todo;
	} row[] = {
		{TFH_END_NONE, 0, "record a longer run"},
		{TFH_END_EXIT, 0, "record a longer run"},
		{TFH_END_EXIT, 1,
		 "the job ended early with exit code 1: record it again once it runs to its end"},
		{TFH_END_SIGNAL, 9,
		 "signal 9 ended the job early: record it again once it runs to its end"},
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct tfh_result r = {.end = row[i].end, .end_code = row[i].code};
		struct tfh_wording w;
		r.steps.clock = TFH_STEP_CLOCK_NONE + 1;
		r.steps.total = 1;
		r.verdict.cls = r.steady.cls = TFH_CLASS_NONE;
		tfh_wording_make(&w, &r);
		assert_string_equal(w.missing_do, row[i].todo);
		tfh_wording_free(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_images),	       cmocka_unit_test(test_more_of_a_run),
		cmocka_unit_test(test_every_cause),    cmocka_unit_test(test_own_advice),
		cmocka_unit_test(test_computing_line), cmocka_unit_test(test_calls),
		cmocka_unit_test(test_nameless),       cmocka_unit_test(test_elsewhere),
		cmocka_unit_test(test_slow_steps),     cmocka_unit_test(test_hides_more),
		cmocka_unit_test(test_names),	       cmocka_unit_test(test_torch),
		cmocka_unit_test(test_unpacks),	       cmocka_unit_test(test_times),
		cmocka_unit_test(test_same_line),      cmocka_unit_test(test_ordinals),
		cmocka_unit_test(test_small_things),   cmocka_unit_test(test_called_line),
		cmocka_unit_test(test_spent_in_steps), cmocka_unit_test(test_least_waiting),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
