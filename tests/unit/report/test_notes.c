/* The notes below a verdict: what an input pipeline could deliver, page faults and changes that come first, and what a busy
 * machine means for the remedy; and why no line is named where checkpoints are to blame. */
#include "report/words/remedy.h"
#include "report_job.h"

#include "base/priced.h"
#include "judge/verdict/verdict.h"

/* The report says what an input pipeline could deliver where that is the next limit; where it is the limit, what reading ahead gains,
 * unless the advice has a bound with workers, which is lower if processors are few. */
static void test_supply(void **state)
{
	static const struct {
		enum tfh_class cls;
		double headroom;
		const char *says;
		uint32_t workers;
	} row[] = {
		{TFH_CLASS_COMPUTE_BOUND, 1.04, NULL, 0},
		{TFH_CLASS_COMPUTE_BOUND, 1.3,
		 "feed steps 1.3 times as fast: making a batch takes 20.5 ms, a usual step 26.6 ms",
		 0},
		{TFH_CLASS_COMPUTE_BOUND, 150, NULL, 0},
		{TFH_CLASS_INPUT_BOUND, 1.1, "reads ahead would make steps 1.1 times as fast", 0},
		/* the rest of a step takes four times as long as a batch */
		{TFH_CLASS_INPUT_BOUND, 5, "reads ahead would make steps 1.25 times as fast", 0},
		{TFH_CLASS_INPUT_BOUND, 5, NULL, 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct words w;
		begin(&w, row[i].cls, TFH_CAUSE_NONE);
		w.r.supply = (struct tfh_supply){.basis = TFH_SUPPLY_ON_REQUEST,
						 .period_s = 0.02046,
						 .headroom = row[i].headroom};
		w.r.found.workers.more.to = row[i].workers;
		tfh_note_supply(&w.said);
		assert_int_equal(w.said.n_remark, row[i].says != NULL);
		if (row[i].says && !strstr(w.said.remark[0], row[i].says))
			fail_msg("%s", w.said.remark[0]);
		tfh_wording_free(&w.said);
	}
}

/* Page faults that are much of a step, and a change that makes the mean step one that never happened, are notes for any
 * first screen, before the others; a small share or a small change is not. */
static bool said(const struct words *w, const char *text)
{
	for (uint32_t i = 0; i < w->said.n_evidence; i++)
		if (!strcmp(w->said.evidence[i], text))
			return true;
	return false;
}

static void test_first_notes(void **state)
{
	(void)state;
	struct words w;

	for (int much = 0; much < 2; much++) {
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
		w.r.found.machine.busy = w.r.found.machine.processors = 2;
		tfh_note_machine(&w.said);
		w.r.found.fault.pages = 1000;
		w.r.found.fault.cost_s = much ? 4e-3 : 1e-3; /* of 10 ms */
		tfh_note_faults(&w.said);
		assert_int_equal(w.said.n_remark, 2);
		assert_int_equal(w.said.n_first, much);
		assert_non_null(
			strstr(w.said.remark[!much], "1000 page faults cost a step of 10.0 ms"));
		tfh_wording_free(&w.said);

		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
		tfh_note_machine(&w.said);
		w.r.n_change = 1;
		w.r.change[0] = (struct tfh_change){
			.step = 122, .at_s = 2, .from_s = 2e-3, .to_s = much ? 14e-3 : 2.6e-3};
		w.said.text = "";
		tfh_explain_lead(&w.said);
		assert_int_equal(w.said.n_first, much);
		assert_non_null(strstr(w.said.remark[0],
				       "slower from step 122 on, 2.00 s into the run: steps take"));
		w.r.change[0].until = 400;
		tfh_explain_lead(&w.said);
		assert_non_null(strstr(w.said.remark[1], "steps grow steadily from 2.00 ms to"));
		w.r.change[0].until = 0;
		w.r.change[0].evaluates = 100; /* which training does not count */
		tfh_explain_lead(&w.said);
		assert_non_null(strstr(w.said.remark[2], "slower from training step 22 on"));
		assert_null(strstr(w.said.remark[2], "other programs"));
		w.r.change[0].part = TFH_PART_HOST;
		w.r.quality.crowded = true;
		w.r.found.contended.own = 0.4;
		w.r.found.contended.busy = 2;
		tfh_explain_lead(&w.said);
		assert_non_null(strstr(w.said.remark[3], "other programs on the CPUs"));
		tfh_wording_free(&w.said);
	}
}

/* Busy CPUs speak against more threads or workers only where those would be a remedy, and never beside advice to use more. */
static void test_busy_machine(void **state)
{
	(void)state;
	static const struct {
		enum tfh_class cls;
		enum tfh_cause cause;
		uint32_t workers;
		const char *end, *todo;
	} row[] = {
		{TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_CODE, 0, "average", NULL},
		{TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP, 0,
		 "average: more threads or loader workers will not help", "cache() it"},
		{TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP, 0, "average",
		 "map(..., num_parallel_calls=tf.data.AUTOTUNE)"},
		{TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_MAP, 2, "average", NULL},
		{TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_CODE, 0,
		 "average: more threads will not help", NULL},
		{TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU, 0,
		 "average: more threads will not help", NULL},
		{TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_DENSE, 0, "average", NULL},
		{TFH_CLASS_TRANSFER_BOUND, TFH_CAUSE_TRANSFER_D2H, 0, "average", NULL},
	};
	struct words w;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		begin(&w, row[i].cls, row[i].cause);
		w.r.found.machine.busy = w.r.found.machine.processors = 2;
		w.r.found.workers.more.to = row[i].workers;
		w.r.found.contended.own = i ? 0 : 0.7; /* one thread at a time */
		if (row[i].todo)
			tfh_advise(&w.said, "slow", "why", row[i].todo, TFH_REMOVE_INPUT);
		tfh_note_machine(&w.said);
		assert_int_equal(w.said.n_remark, 1);
		const char *end = strstr(w.said.remark[0], "average");
		assert_string_equal(end, row[i].end);
		tfh_wording_free(&w.said);
	}
}

/* Who had the CPUs while the steps waited for one is said once, with the machine's number of them. */
static void test_busy_told(void **state)
{
	(void)state;
	struct words w;

	begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
	w.r.found.machine.busy = w.r.found.machine.processors = 2;
	w.r.found.contended = (struct tfh_contended){0.2, 2e-3, 1.9, 0.3};
	tfh_note_machine(&w.said);
	assert_int_equal(w.said.n_remark, 0);
	assert_string_equal(tfh_who_had_cpus(&w.said),
			    "CPUs in use: 0.30 by this job, 1.60 by others, of 2");
	tfh_wording_free(&w.said);
}

/* Where the gain is that of a whole function, the row of its line has the function's time, too (of all causes), and the advice has
 * its name. */
static void test_whole_function(void **state)
{
	static const char *const row[] = {NULL, "; all of Env.step: 4.00 ms",
					  "; all of Env.step: 5.10 ms"};

	(void)state;
	struct words w;

	for (int k = 0; k < 3; k++) {
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
		w.r.found.line = (struct tfh_seen_line){.file = "/job/env.py",
							.function = "Env.step",
							.line = 19,
							.s_per_step = 1.2e-3,
							.of_s = 5e-3,
							.samples = 40};
		w.r.place[0] = (struct tfh_place_gain){.file = "/job/env.py",
						       .function = "Env.step",
						       .whole = k,
						       .s_per_step = k == 2 ? 5.1e-3 : 4e-3};
		w.r.n_place = w.r.line_place = 1;
		const char *line = tfh_verdict_line(&w.said),
			   *todo = tfh_line_advice(&w.said, TFH_CAUSE_HOST_PYTHON);
		assert_true(row[k] ? strstr(line, row[k]) != NULL : !strstr(line, "all of"));
		assert_non_null(strstr(todo, k ? "make Env.step (env.py:19) faster"
					       : "make env.py:19 faster"));
		tfh_wording_free(&w.said);
	}
}

/* Stalls that the first screen's table shows are explained there. */
static void test_stalls(void **state)
{
	(void)state;
	struct tfh_part_of_run run = {.kind = TFH_BRANCH_RUN, .wall_s = 20};
	struct words w;

	for (int much = 0; much < 2; much++) {
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_DENSE);
		w.r.tree = &run;
		w.r.n_tree = 1;
		w.r.found.stall.n = 8;
		w.r.found.stall.total_s = much ? 2.3 : 0.3;
		tfh_note_steps(&w.said);
		assert_int_equal(w.said.n_first, much);
		tfh_wording_free(&w.said);
	}
}

/* A setting of the number of threads is no remedy where the CPUs are busy, nor where the program waits. */
static void test_threads(void **state)
{
	(void)state;
	static const struct {
		enum tfh_cause cause;
		double busy;
		uint32_t said;
	} row[] = {{TFH_CAUSE_HOST_PYTHON, 0, 1},
		   {TFH_CAUSE_HOST_PYTHON, 2, 0},
		   {TFH_CAUSE_HOST_WAIT, 0, 0}};
	struct words w;
	uint64_t threads = 0;

	for (uint32_t i = 0; i < tfh_priced_count; i++)
		threads |= (uint64_t)!strcmp(tfh_priced[i].variable, "OMP_NUM_THREADS") << i;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		begin(&w, TFH_CLASS_HOST_BOUND, row[i].cause);
		w.r.found.machine.busy = row[i].busy;
		w.r.found.priced = threads;
		tfh_note_priced(&w.said);
		assert_int_equal(w.said.n_remark, row[i].said);
		tfh_wording_free(&w.said);
	}
}

/* Evaluation is said to take longer than training only if it also takes longer together with the steps of which nothing tells
 * whether they train. */
static void test_long_evaluation(void **state)
{
	(void)state;
	struct tfh_part_of_run tree[] = {
		{.kind = TFH_BRANCH_RUN, .wall_s = 20},
		{.kind = TFH_BRANCH_TRAIN, .wall_s = 1, .count = 50},
		{.kind = TFH_BRANCH_EVALUATE, .wall_s = 2, .count = 50},
		{.kind = TFH_BRANCH_STEP, .count = 50},
	};
	struct words w;

	for (int k = 0; k < 2; k++) {
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_DENSE);
		tree[3].wall_s = k ? 12 : 0.5;
		w.r.tree = tree;
		w.r.n_tree = sizeof(tree) / sizeof(tree[0]);
		w.said.text = "the device is busy";
		tfh_explain_lead(&w.said);
		assert_int_equal(strstr(w.said.text, "evaluation takes 2.0 times as long") != NULL,
				 !k);
		tfh_wording_free(&w.said);
	}
}

/* If the loop waits for a DataLoader before each epoch, more workers would make that longer. The first epoch waits, too. */
static void test_loader_between(void **state)
{
	(void)state;
	struct words w;
	struct tfh_part_of_run tree[] = {{.kind = TFH_BRANCH_RUN, .wall_s = 4, .count = 1},
					 {.kind = TFH_BRANCH_STARTUP, .wall_s = 0.5, .count = 1}};

	begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
	w.r.recurring[0] = (struct tfh_recurring){.kind = TFH_SEGMENT_BETWEEN,
						  .cls = TFH_CLASS_INPUT_BOUND,
						  .cause = TFH_CAUSE_INPUT_DATALOADER,
						  .count = 13,
						  .total_s = 1,
						  .blocked_s = 1};
	w.r.n_recurring = w.r.lead = 1;
	w.r.recurs_s = 2;
	w.r.tree = tree;
	w.r.n_tree = 2;
	w.said.text = "computing takes long";
	tfh_explain_lead(&w.said);
	assert_true(w.said.n_advice > 0);
	assert_float_equal(w.said.advice[0].saved_s, 14.0 / 13, 1e-9);
	assert_non_null(strstr(w.said.advice[0].todo, "persistent_workers=True"));
	tfh_wording_free(&w.said);
}

/* Evaluation that takes longer than training: if a line of the program has what blocks it, the line is the one to change, and that
 * time is saved at best; otherwise all of the evaluation may be left out. */
static void test_evaluation(void **state)
{
	(void)state;
	struct words w;
	struct tfh_part_of_run tree[] = {
		{.kind = TFH_BRANCH_RUN, .wall_s = 20, .count = 1},
		{.kind = TFH_BRANCH_STEP, .wall_s = 4, .count = 100, .runs = 1},
		{.kind = TFH_BRANCH_EVALUATE, .wall_s = 10, .count = 500, .runs = 1},
		{.kind = TFH_BRANCH_BETWEEN, .wall_s = 1, .count = 4, .runs = 1}};

	for (int own = 0; own < 2; own++) {
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
		w.r.recurring[0] = (struct tfh_recurring){.kind = TFH_SEGMENT_EVAL,
							  .cls = TFH_CLASS_HOST_BOUND,
							  .cause = TFH_CAUSE_HOST_PYTHON,
							  .count = 4,
							  .total_s = 10,
							  .blocked_s = 6};
		w.r.n_recurring = w.r.lead = 1;
		w.r.recurs_s = 15;
		w.r.steps.total = 100;
		w.r.tree = tree;
		w.r.n_tree = 4;
		w.r.found.line = (struct tfh_seen_line){
			.file = "/job/train.py", .function = "score", .line = 7, .not_own = !own};
		w.said.text = "computing takes long";
		tfh_explain_lead(&w.said);
		assert_true(w.said.n_advice > 0);
		assert_float_equal(w.said.advice[0].saved_s, own ? 6 : 11, 1e-9);
		assert_non_null(strstr(w.said.advice[0].todo,
				       own ? "make train.py:7 faster" : "evaluate less often"));
		assert_true(said(&w,
				 "evaluation takes 2.5 times as long as training: 10.0 s of this "
				 "run against 4.00 s; it has 5.0 times as many steps"));
		tfh_wording_free(&w.said);
	}
}

/* If evaluations and steps lose time for the same cause, one item has what both lose; otherwise each has its own. */
static void test_one_cause(void **state)
{
	(void)state;
	struct words w;

	for (int same = 0; same < 2; same++) {
		begin(&w, TFH_CLASS_INPUT_BOUND,
		      same ? TFH_CAUSE_INPUT_MAP : TFH_CAUSE_INPUT_DECODE);
		w.r.recurring[0] = (struct tfh_recurring){.kind = TFH_SEGMENT_EVAL,
							  .cls = TFH_CLASS_INPUT_BOUND,
							  .cause = TFH_CAUSE_INPUT_MAP,
							  .count = 4,
							  .total_s = 10,
							  .blocked_s = 6};
		w.r.n_recurring = w.r.lead = 1;
		w.r.recurs_s = 15;
		w.said.text = "waits for its batch";
		struct tfh_remedy m = tfh_remedy_in(&w.r, w.r.steady.cause);
		tfh_advise_run(&w.said, m.finding, "more workers", 2);
		tfh_explain_lead(&w.said);
		assert_int_equal(w.said.n_advice, same ? 1 : 2);
		assert_float_equal(w.said.advice[0].saved_s, same ? 8 : 6, 1e-9);
		assert_int_equal(!strcmp(w.said.advice[0].todo, "more workers"), same);
		tfh_wording_free(&w.said);
	}
}

/* Steps that compile save what they take longer than the others at best; if the others compile nearly as much, no figure is
 * given: what they take once it stays is unknown. */
static void test_compiled_again(void **state)
{
	(void)state;
	struct words w;

	for (int every = 0; every < 2; every++) {
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_COMPILE);
		w.r.recurring[0] = (struct tfh_recurring){.kind = TFH_SEGMENT_COMPILE,
							  .cls = TFH_CLASS_HOST_BOUND,
							  .cause = TFH_CAUSE_HOST_COMPILE,
							  .count = 20,
							  .total_s = 8,
							  .blocked_s = 8};
		w.r.recurring[1] = w.r.recurring[0];
		w.r.recurring[1].kind = TFH_SEGMENT_TRAIN;
		w.r.recurring[1].blocked_s = every ? 6 : 1;
		w.r.n_recurring = 2;
		w.r.lead = 1;
		w.r.recurs_s = 10;
		w.said.text = "steps compile";
		tfh_explain_lead(&w.said);
		assert_true(w.said.n_advice > 0);
		assert_int_equal(w.said.advice[0].saved_s == 8, !every);
		assert_int_equal(tfh_lead_no_bound(&w.r) != NULL, every);
		tfh_wording_free(&w.said);
	}
}

/* If checkpoints that no sample saw hold the run up for longer than its steps compute, the first screen says that no line is known:
 * the row is about the verdict, not about the steps. */
static void test_line_of_checkpoints(void **state)
{
	(void)state;
	struct words w;

	for (int lead = 0; lead < 2; lead++) {
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_DENSE);
		w.r.recurring[0] = (struct tfh_recurring){.kind = TFH_SEGMENT_CHECKPOINT,
							  .cls = TFH_CLASS_HOST_BOUND,
							  .cause = TFH_CAUSE_HOST_CHECKPOINT,
							  .count = 7,
							  .total_s = 1.5,
							  .blocked_s = 1.5};
		w.r.n_recurring = 1;
		w.r.recurs_s = 2.5;
		w.r.verdict = w.r.steady;
		w.r.lead = (uint32_t)lead;
		if (lead)
			w.r.verdict.cls = TFH_CLASS_HOST_BOUND;
		tfh_wording_make(&w.said, &w.r);
		assert_int_equal(strncmp(w.said.text, "checkpoints take 60 %", 21) == 0, lead);
		assert_int_equal(w.said.no_line != NULL, lead);
		tfh_wording_free(&w.said);
	}
}

/* Steps whose number of launches repeats are said to accumulate gradients only if an optimizer's kernel is not launched in each. */
static void test_accumulates(void **state)
{
	(void)state;
	static const struct {
		const char *kernel;
		double calls;
		bool accumulates;
	} row[] = {
		{"fused_adam", 0.25, true}, {"fused_adam", 1, false}, {"vorticity", 0.25, false}};
	struct words w;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_DENSE);
		w.kernel[1].name = row[i].kernel;
		w.kernel[1].calls_per_step = row[i].calls;
		w.r.pattern.per_update = 4;
		tfh_note_steps(&w.said);
		assert_int_equal(w.said.n_remark, 1);
		assert_int_equal(strstr(w.said.remark[0], "accumulated") != NULL,
				 row[i].accumulates);
		assert_non_null(strstr(w.said.remark[0], "4 steps"));
		tfh_wording_free(&w.said);
	}
}

/* Where only an optimizer's updates show the steps, and most of the time is what comes before each n-th, the note says what is counted. */
static void test_updates(void **state)
{
	(void)state;
	struct words w;

	for (int k = 0; k < 3; k++) {
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
		w.r.found.slow.every = 20;
		w.r.found.slow.longer_s = 0.57;
		w.r.found.slow.share = k ? 0.9 : 0.2;
		w.r.steps.clock_name = k == 2 ? "train" : "Optimizer.step";
		tfh_note_steps(&w.said);
		bool says = false;
		for (uint32_t i = 0; i < w.said.n_remark; i++)
			says |= strstr(w.said.remark[i], "steps are updates by the optimizer") !=
				NULL;
		assert_int_equal(says, k == 1);
		tfh_wording_free(&w.said);
	}
}

/* What a run imports is a note if it ended by itself, mostly did something else than its steps, and advice does not tell it; of one
 * that was killed it is a note with any other line, also if only samples show its steps. */
static void test_before_steps(void **state)
{
	static const struct {
		double before, steps; /* of 10 s */
		const char *imports;
		enum tfh_end end;
		bool told;
	} row[] = {{4, 4, "/v/torch/__init__.py", TFH_END_EXIT, true},
		   {4, 6, "/v/torch/__init__.py", TFH_END_EXIT, false},
		   {6, 4, "/v/torch/__init__.py", TFH_END_EXIT, false}, /* has advice */
		   {4, 4, NULL, TFH_END_EXIT, false},			/* has advice */
		   {4, 6, NULL, TFH_END_SIGNAL, true}};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(row) / sizeof(row[0]); i++) {
		size_t k = i / 2;
		struct tfh_part_of_run tree[] = {
			{.kind = TFH_BRANCH_RUN, .wall_s = 10},
			{.kind = TFH_BRANCH_STARTUP, .wall_s = row[k].before},
			{.kind = TFH_BRANCH_STEP, .wall_s = row[k].steps}};
		struct words w;
		begin(&w, TFH_CLASS_COMPUTE_BOUND, TFH_CAUSE_COMPUTE_CPU);
		w.r.verdict = w.r.steady;
		w.r.end = row[k].end;
		w.r.tree = tree;
		w.r.n_tree = 3;
		w.r.found.start[TFH_SEEN_STARTUP] = (struct tfh_seen_start){
			.kind = TFH_BRANCH_STARTUP,
			.wall_s = row[k].before,
			.samples = 100,
			.n_line = 1,
			.line = {{"train.py", "main", 2, row[k].imports, 0.9, 90}}};
		if (i % 2)
			w.r.found.sampled =
				(struct tfh_sampled){.samples = 400,
						     .function = "",
						     .loop = {.file = "train.py", .function = "f"}};
		tfh_wording_make(&w.said, &w.r);
		bool told = false;
		for (uint32_t n = 0; n < w.said.n_remark; n++)
			told |= !strncmp(w.said.remark[n], "start-up (", 10);
		assert_int_equal(told, row[k].told);
		tfh_wording_free(&w.said);
	}
}

/* Of a run that was killed before it came to its steps, the first note says how little of it these are, and the confidence in a
 * verdict on these is low. */
static void test_killed_early(void **state)
{
	(void)state;
	for (int killed = 0; killed < 2; killed++) {
		struct tfh_part_of_run tree[] = {{.kind = TFH_BRANCH_RUN, .wall_s = 10},
						 {.kind = TFH_BRANCH_STARTUP, .wall_s = 9.95},
						 {.kind = TFH_BRANCH_STEP, .wall_s = 0.05}};
		struct words w;
		begin(&w, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_PYTHON);
		w.r.end = killed ? TFH_END_SIGNAL : TFH_END_EXIT;
		w.r.verdict = w.r.steady;
		w.r.verdict.confidence = TFH_CONFIDENCE_MEDIUM;
		w.r.tree = tree;
		w.r.n_tree = 3;
		w.r.recurs_s = 0.05;
		tfh_doubt_killed(&w.r);
		assert_int_equal(w.r.verdict.confidence,
				 killed ? TFH_CONFIDENCE_LOW : TFH_CONFIDENCE_MEDIUM);
		tfh_wording_make(&w.said, &w.r);
		assert_int_equal(w.said.n_first, killed);
		bool told = false;
		for (uint32_t i = 0; i < w.said.n_remark; i++)
			told |= strstr(w.said.remark[i],
				       "the steps are 0.5 % of the run's 10.0 s") != NULL;
		assert_true(told);
		tfh_wording_free(&w.said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_steps),
		cmocka_unit_test(test_killed_early),
		cmocka_unit_test(test_supply),
		cmocka_unit_test(test_updates),
		cmocka_unit_test(test_first_notes),
		cmocka_unit_test(test_busy_machine),
		cmocka_unit_test(test_busy_told),
		cmocka_unit_test(test_whole_function),
		cmocka_unit_test(test_stalls),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_long_evaluation),
		cmocka_unit_test(test_loader_between),
		cmocka_unit_test(test_evaluation),
		cmocka_unit_test(test_one_cause),
		cmocka_unit_test(test_compiled_again),
		cmocka_unit_test(test_accumulates),
		cmocka_unit_test(test_line_of_checkpoints),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
