/* The text report: the verdict and its evidence come first, no line of the first screen exceeds 80
 * columns, values that were not measured are never printed as numbers, and percentages add up to
 * 100. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "report_fixture.h"

static void print_long_path(FILE *out, const struct tfh_result *r)
{
	struct tfh_wording words = fixture_words(r);
	struct tfh_style style = {0};

	words.text =
		"slow: (Iterator::Root::Prefetch::FlatMap::ForeverRepeat::ParallelBatch::Filter::"
		"ParallelInterleaveV4::FlatMap::Generator): 5 ms";
	tfh_report_text(out, &words, &style);
}

static void print_missing(FILE *out, const struct tfh_result *r)
{
	struct tfh_wording words = {.r = r,
				    .missing = "only 3 steps were recorded",
				    .missing_do = "let it run for 20 steps or more"};
	struct tfh_style style = {0};

	tfh_report_text(out, &words, &style);
}

static void print_verdict(FILE *out, const struct tfh_result *r)
{
	struct tfh_wording words = fixture_words(r);
	struct tfh_style style = {0};

	tfh_report_verdict(out, &words, &style, "tfhook: ");
}

static void lines_fit(const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		if (len > 80)
			fail_msg("%zu columns: %.*s", len, (int)len, text);
		text += len + (text[len] == '\n');
	}
}

static void verdict_first(void **state)
{
	(void)state;
	struct tfh_result r = fixture();
	char *text = fixture_print(fixture_text, &r);
	const char *begin =
		"train.py   8 ranks, 2 hosts   2,140 steps   6m12s   exit 0   2025-11-20\n\n"
		"INPUT-BOUND (high)   input.map   41 % of training time\n"
		"  the training loop waits 71.6 ms of a 174 ms step";

	if (getenv("TFH_SHOW"))
		puts(text);
	assert_int_equal(strncmp(text, begin, strlen(begin)), 0);
	assert_non_null(
		strstr(text, "  without it 102 ms per step (95.0 to 110 ms; 1.70x faster)\n"));
	lines_fit(text);
	free(text);
}

/* The step table's shares are of the columns shown and add to 100 in every row. */
static void rows_add_up(void **state)
{
	(void)state;
	struct tfh_result r = fixture();
	char *text = fixture_print(fixture_text, &r);
	const char *row = strstr(text, "  input-bound ");
	int input, transfer, compute, host;
	double share;

	assert_non_null(row);
	assert_int_equal(sscanf(row, " input-bound 2,098 175 ms 302 ms %lf%% %d%% %d%% %d%% %d%%",
				&share, &input, &transfer, &compute, &host),
			 5);
	assert_int_equal(input + transfer + compute + host, 100);
	assert_non_null(strstr(text, "  compute          79.0 ms  45 %"));
	free(text);
}

/* No zeros for what is unknown: a rate, a kernel's time, pinned-ness. */
static void unknown_is_not_zero(void **state)
{
	(void)state;
	struct tfh_result r = fixture();
	char *text = fixture_print(fixture_text, &r);
	const char *d2h = strstr(text, "D2H  cuMemcpyDtoH_v2");

	assert_non_null(d2h);
	assert_non_null(strstr(d2h, "n/a"));
	assert_non_null(strstr(
		text,
		"no copies                        -                                -     1.06x"));
	/* what an asynchronous stage was waited for is not its own time */
	assert_null(strstr(text, "1.20 us"));
	assert_null(strstr(text, " 0.00"));
	assert_null(strstr(text, "nan"));
	free(text);
}

/* A stage's path that is longer than a line goes on in the next one, behind a "::". */
static void long_paths_fit(void **state)
{
	(void)state;
	struct tfh_result r = fixture();
	char *text = fixture_print(print_long_path, &r);
	lines_fit(text);
	assert_non_null(strstr(text, "::\n"));
	assert_non_null(strstr(text, "FlatMap::Generator): 5 ms\n"));
	free(text);
}

/* A kernel of next to no time has the widest share. */
static void tiny_kernels_fit(void **state)
{
	(void)state;
	struct tfh_result r = fixture();
	r.kernels[0].share_of_busy = 1e-6;
	char *text = fixture_print(fixture_text, &r);
	assert_non_null(strstr(text, " <0.01 %\n"));
	lines_fit(text);
	free(text);
}

/* Of several ranks each has a line; the one reported and the late one are marked. */
static void ranks_have_lines(void **state)
{
	(void)state;
	struct tfh_result r = fixture();
	struct tfh_rank rank[2] = {{.rank = 0,
				    .host = "node1",
				    .cls = TFH_CLASS_COMMUNICATION_BOUND,
				    .cause = TFH_CAUSE_COMMUNICATION_JITTER,
				    .process = 7,
				    .step_s = 0.2,
				    .jitter_s = 0.05,
				    .late_s = 0},
				   {.rank = 12,
				    .host = "a-host-with-a-long-name.example",
				    .straggler = true,
				    .cls = TFH_CLASS_HOST_BOUND,
				    .cause = TFH_CAUSE_HOST_PYTHON,
				    .step_s = 0.2,
				    .late_s = NAN}};

	r.rank = rank;
	r.n_rank = 2;
	r.process = 7;
	char *text = fixture_print(fixture_text, &r);
	assert_non_null(strstr(text, "     0 node1          communication.jitter     200 ms    "
				     "50.0 ms      0 ns <-\n"));
	assert_non_null(strstr(text, "    12 a-host..xample host.python              200 ms       "
				     "0 ns       n/a late\n"));
	lines_fit(text);
	free(text);
	r.n_rank = 1;
	text = fixture_print(fixture_text, &r);
	assert_null(strstr(text, "RANKS"));
	free(text);
}

/* Of ranks that did not end together the one that stopped first stands above the calls in flight,
 * which name their rank. */
static void silent_rank_is_named(void **state)
{
	(void)state;
	struct tfh_result r = fixture();
	struct tfh_rank rank[3] = {
		{.rank = 3, .process = 0, .host = "a"},
		{.rank = 4, .process = 0, .host = "a", .silent_s = 1.5},
		{.rank = 5, .process = 0, .host = "a", .silent_s = 2, .closed = true}};

	r.rank = rank;
	r.n_rank = 3;
	r.end = TFH_END_EXIT;
	r.end_code = 1;
	fixture_in_flight = 1;
	char *text = fixture_print(fixture_text, &r);
	assert_non_null(strstr(text,
			       "THE JOB FAILED: exit code 1\n"
			       "  rank 4 stopped first: it recorded nothing in the last 1.50 "
			       "s, while others\n    went on or waited\n"
			       "  rank 5 had exited 2.00 s before the last one stopped\n"
			       "  in flight: cuCtxSynchronize stream 7 of rank 3 on thread 4711"));
	lines_fit(text);
	free(text);
	r.end_code = 0;
	text = fixture_print(fixture_text, &r);
	assert_null(strstr(text, "stopped first"));
	free(text);
	fixture_in_flight = 0;
}

/* A job that was killed: the calls in flight stand above the verdict. */
static void in_flight_is_shown(void **state)
{
	(void)state;
	struct tfh_result r = fixture();

	r.end = TFH_END_SIGNAL;
	r.end_code = 9;
	fixture_in_flight = 1;
	char *text = fixture_print(fixture_text, &r);
	const char *end = strstr(
		text,
		"ENDED BY SIGNAL 9 (Killed)\n"
		"  in flight: cuCtxSynchronize stream 7 on thread 4711 python3, for 12.3 s\n");
	assert_non_null(end);
	assert_true(end < strstr(text, "INPUT-BOUND"));
	free(text);
	/* One that the recording ends with has no time that anybody measured. */
	double known = fixture_open[0].open_s;
	fixture_open[0].open_s = 0;
	text = fixture_print(fixture_text, &r);
	assert_non_null(strstr(text, "stream 7 on thread 4711 python3, just begun\n"));
	free(text);
	fixture_open[0].open_s = known;
	fixture_in_flight = 0;
}

/* Without a verdict the report says what is missing and what would give one; no share, no gain. */
static void no_verdict(void **state)
{
	(void)state;
	struct tfh_result r = fixture();

	r.steady = r.verdict = (struct tfh_verdict){.cls = TFH_CLASS_UNCLASSIFIED,
						    .cause = TFH_CAUSE_NONE,
						    .share = NAN,
						    .confidence = TFH_CONFIDENCE_NONE,
						    .tier = 'C'};
	r.n_whatif = 0;
	char *text = fixture_print(print_missing, &r);
	assert_non_null(strstr(text, "\nUNCLASSIFIED\n  missing: only 3 steps were recorded\n"
				     "  to get a verdict: let it run for 20 steps or more\n"));
	assert_null(strstr(text, "faster"));
	lines_fit(text);
	free(text);
}

static void print_missing_screen(FILE *out, const struct tfh_result *r)
{
	struct tfh_wording words = {.r = r,
				    .missing = "only 3 steps were recorded",
				    .missing_do = "let it run for 20 steps or more",
				    .advice = {{"evaluation: 40.0 s", NULL, "evaluate less often",
						NAN, 40, "at best "}},
				    .n_advice = 1};
	struct tfh_style style = {0};

	tfh_report_screen(out, &words, &style);
}

/* Without a verdict the screen still says where the run went, and what else would shorten it. */
static void no_verdict_screen(void **state)
{
	struct tfh_part_of_run tree[] = {{TFH_BRANCH_RUN, .name = "", .wall_s = 60},
					 {TFH_BRANCH_STARTUP, .name = "", .wall_s = 20},
					 {TFH_BRANCH_EVALUATE, .name = "", .wall_s = 40}};

	(void)state;
	struct tfh_result r = fixture();
	r.verdict.cls = TFH_CLASS_UNCLASSIFIED;
	r.tree = tree;
	r.n_tree = 3;
	char *text = fixture_print(print_missing_screen, &r);
	assert_non_null(strstr(text, "\n  evaluation        40.0 s  67 %"));
	assert_non_null(
		strstr(text, "\n  1 let it run for 20 steps or more\n  2 evaluation: 40.0 s "));
	lines_fit(text);
	free(text);
}

static void short_verdict(void **state)
{
	(void)state;
	struct tfh_result r = fixture();
	char *text = fixture_print(print_verdict, &r);
	unsigned lines = 0;

	for (const char *p = text; *p; p = strchr(p, '\n') + 1) {
		assert_int_equal(strncmp(p, "tfhook: ", 8), 0);
		lines++;
	}
	assert_in_range(lines, 2, 9);
	lines_fit(text);
	free(text);
}

/* All there may be to say at once, in sentences that no screen has room for. */
static void print_crowded(FILE *out, const struct tfh_result *r)
{
	static const char longer[] =
		"a sentence that goes on and on, about a_function_whose_name_alone_is_longer_than_a_line_of_"
		"eighty_columns_could_ever_be_without_a_blank and what it does, how often, and why, and so on";
	struct tfh_wording words = fixture_words(r);
	struct tfh_style style = {0};

	words.text = longer;
	for (uint32_t i = 0; i < TFH_REPORT_EVIDENCE; i++) {
		words.evidence[i] = longer;
		words.tells[i] = i < 2 ? TFH_TELLS_WHY : TFH_TELLS_LINE;
	}
	words.n_evidence = TFH_REPORT_EVIDENCE;
	for (uint32_t i = 0; i < TFH_REPORT_ADVICE; i++)
		words.advice[i] = (struct tfh_advice){longer, longer, longer, 2, 20, "at best "};
	words.n_advice = TFH_REPORT_ADVICE;
	for (uint32_t i = 0; i < TFH_REPORT_REMARKS; i++)
		words.remark[i] = longer;
	words.n_remark = TFH_REPORT_REMARKS;
	tfh_report_screen(out, &words, &style);
}

/* Little of everything, but each row takes two lines. */
static void print_wide(FILE *out, const struct tfh_result *r)
{
	static const char wide[] =
		"a sentence that takes a bit more than one line of eighty columns, "
		"and ends with its figure";
	struct tfh_wording words = fixture_words(r);
	struct tfh_style style = {0};

	words.text = wide;
	words.evidence[0] = wide;
	words.tells[0] = TFH_TELLS_LINE;
	words.n_evidence = 1;
	words.advice[0] = (struct tfh_advice){wide, wide, wide, 2, 20, "at best "};
	words.n_advice = 1;
	words.remark[0] = wide;
	words.n_remark = words.n_first = 1;
	tfh_report_screen(out, &words, &style);
}

static void one_screen(const char *text)
{
	size_t lines = 0;

	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	if (lines > TFH_SCREEN_LINES)
		fail_msg("%zu lines:\n%s", lines, text);
	lines_fit(text);
}

static void print_list(FILE *out, const struct tfh_result *r)
{
	struct tfh_wording words = fixture_words(r);
	struct tfh_style style = {0};

	words.text =
		"34 % of the computing is matrix products with tensor cores, 21 % elementwise "
		"operations, 17 % copies and conversions of type, 9 % normalisation (of two kinds, and more), 6 % reductions over rows and columns of "
		"large tensors, 5 % embeddings, 4 % the optimizer with all its states, 2 % random numbers, 1 % "
		"everything else that no other kind has";
	words.no_line = "cuMemcpyHtoDAsync_v2: 537 MB per call, 0.9123 calls per step, 8.10 GB/s";
	tfh_report_screen(out, &words, &style);
}

/* A list that is too long ends with a whole item, and a rate stays beside its unit. */
static void list_is_whole(void **state)
{
	(void)state;
	struct tfh_result r = fixture();
	char *text = fixture_print(print_list, &r);

	if (!strstr(text, "columns of large tensors, 5 % embeddings, ..\n") ||
	    !strstr(text, "           8.10 GB/s\n"))
		fail_msg("%s", text);
	lines_fit(text);
	free(text);
}

/* What there is no room for is left out whole: no line of what the result rests on ends in dots. */
static void sure_is_whole(void **state)
{
	(void)state;
	struct tfh_result r = fixture();

	r.quality.crowded = true;
	r.quality.overhead_share = 0.004;
	char *text = fixture_print(fixture_screen, &r);
	char *sure = strstr(text, "SURE");
	assert_non_null(sure);
	assert_non_null(strstr(sure, "a crowded"));
	if (strstr(sure, " ..\n"))
		fail_msg("%s", text);
	free(text);
}

/* The first screen is one, whatever there is to say: its head, the tables and what it rests on are always on it. */
static void screen_is_one(void **state)
{
	(void)state;
	struct tfh_result r = fixture();
	struct tfh_rank rank[2] = {{.rank = 3, .process = 0, .host = "a"},
				   {.rank = 4, .process = 0, .host = "a", .silent_s = 1.5}};
	char *text = fixture_print(fixture_screen, &r);

	one_screen(text);
	assert_non_null(strstr(text, "\nINPUT-BOUND (high)   input.map   41 % of training time\n"));
	assert_non_null(strstr(text, "  gain     step 174 -> 102 ms (95.0 to 110 ms), 1.70x"));
	assert_non_null(strstr(text, "WHERE A STEP GOES (174 ms on average)\n"
				     "  compute        79.0 ms  45 %  ####\n"));
	assert_non_null(
		strstr(text, "\nSURE   2,098 of 2,130 steps agree, 98 % of training time; "));
	free(text);
	/* a few steps with most of the time do not disagree with the others, nor does one in each round */
	struct tfh_class_count all = r.steps.classes[r.verdict.cls];
	static const char *const few[] = {
		"\nSURE   20 of 2,130 steps are input-bound, 75 % of training time; ",
		"\nSURE   20 of 2,130 steps are input-bound, 40 % of training time; "};
	for (int k = 0; k < 2; k++) {
		r.steps.classes[r.verdict.cls] =
			(struct tfh_class_count){.count = 20, .time_share = k ? 0.4 : 0.75};
		r.steps.rounds = k ? 20 : 0;
		text = fixture_print(fixture_screen, &r);
		assert_non_null(strstr(text, few[k]));
		free(text);
	}
	r.steps.rounds = 0;
	r.steps.classes[r.verdict.cls] = all;
	text = fixture_print(print_crowded, &r);
	one_screen(text);
	assert_non_null(strstr(text, " ..\n"));
	free(text);
	r.end = TFH_END_SIGNAL;
	r.end_code = 2;
	text = fixture_print(print_wide, &r);
	one_screen(text); /* how to do it is left out before rows are cut */
	assert_null(strstr(text, " ..\n"));
	free(text);
	r.rank = rank;
	r.n_rank = 2;
	r.end = TFH_END_SIGNAL;
	r.end_code = 11;
	fixture_in_flight = 1;
	text = fixture_print(print_crowded, &r);
	one_screen(text);
	assert_non_null(
		strstr(text, "ENDED BY SIGNAL 11 (Segmentation fault)\n  rank     rank 4 stopped"));
	assert_non_null(strstr(text, "\nINPUT-BOUND (high)"));
	assert_non_null(strstr(text, "\nSURE   2,098 of 2,130"));
	fixture_in_flight = 0;
	free(text);
	/* About something else than the steps: what the run gains, and the steps' own verdict. */
	r.lead = 1;
	r.steady = r.verdict;
	text = fixture_print(print_crowded, &r);
	one_screen(text);
	assert_non_null(strstr(text, "  gain     run 6m12s -> at best 5m52s\n"));
	assert_non_null(strstr(text, "\nSURE   2,098 of 2,130 judged steps agree on the"));
	free(text);
}

/* The run's table always has the steps, even if all else took longer, and a tenth of the run that took longer. */
static void steps_are_shown(void **state)
{
	(void)state;
	struct tfh_result r = fixture();
	struct tfh_part_of_run tree[] = {
		{.kind = TFH_BRANCH_RUN, .wall_s = 100},
		{.kind = TFH_BRANCH_BEFORE, .wall_s = 30},
		{.kind = TFH_BRANCH_STARTUP, .wall_s = 20},
		{.kind = TFH_BRANCH_TRAIN, .wall_s = 0.3, .count = 60},
		{.kind = TFH_BRANCH_EVALUATE, .wall_s = 14.7, .count = 60},
		{.kind = TFH_BRANCH_CHECKPOINT, .wall_s = 15},
		{.kind = TFH_BRANCH_AFTER, .wall_s = 20},
	};
	r.tree = tree;
	r.n_tree = sizeof(tree) / sizeof(tree[0]);
	char *text = fixture_print(fixture_screen, &r);
	if (!strstr(text, "\n  steps             300 ms   0 %") ||
	    !strstr(text, "\n  after last call   20.0 s  20 %") || strstr(text, "\n  other  "))
		fail_msg("%s", text);
	one_screen(text);
	free(text);
}

/* Where nothing blocks, that is the verdict, and what there is to gain is little. */
static void balanced_screen(void **state)
{
	(void)state;
	struct tfh_result r = fixture();

	r.verdict.cls = TFH_CLASS_BALANCED;
	r.verdict.cause = TFH_CAUSE_NONE;
	char *text = fixture_print(fixture_screen, &r);
	one_screen(text);
	assert_non_null(strstr(text, "\nBALANCED (high)\n"));
	assert_non_null(strstr(text, "  gain     at most 2.20x without cheaper computing\n"));
	free(text);
	r.n_whatif = 0;
	r.breakdown[TFH_PART_COMPUTE].share = 0.998; /* not "1.00x" */
	text = fixture_print(fixture_screen, &r);
	assert_non_null(strstr(text, "  gain     none without cheaper computing\n"));
	free(text);
}

/* Sums are named as such, and do not stand below the heading of the medians. */
static void sums_of_steps(void **state)
{
	(void)state;
	struct tfh_result r = fixture();

	char *text = fixture_print(fixture_text, &r);
	assert_non_null(strstr(
		text,
		"  warmup              10   not counted: 14.2 s in all, first and last steps\n"));
	assert_non_null(strstr(text, "not counted: 4.40 s in all, every 700 steps\n"));
	free(text);
}

static void print_steps(FILE *out, const struct tfh_result *r)
{
	tfh_report_steps_text(out, r);
}

/* Texts count from the process's start, however long it took until the first record. */
static void times_count_from_the_start(void **state)
{
	(void)state;
	struct tfh_result r = fixture();
	struct tfh_part_of_run tree[] = {
		{.kind = TFH_BRANCH_RUN, .begin_s = -1.75, .wall_s = 100},
		{.kind = TFH_BRANCH_BEFORE, .begin_s = -1.75, .wall_s = 1.75}};
	struct tfh_step step = {.index = 7, .start_s = 0.5, .dur_s = 0.1};

	r.tree = tree;
	r.n_tree = 2;
	r.step = &step;
	r.n_step = 1;
	r.startup[TFH_PHASE_STEADY] = 0.5;
	char *text = fixture_print(print_steps, &r);
	assert_non_null(strstr(text, "       7     2.25 s    100 ms"));
	free(text);
	text = fixture_print(fixture_text, &r);
	assert_non_null(strstr(text, "steady 2.25 s"));
	free(text);
}

/* A result with nothing in it prints without a crash and without tables. */
static void empty_result(void **state)
{
	(void)state;
	struct tfh_result r;

	memset(&r, 0, sizeof(r));
	r.verdict.cls = TFH_CLASS_UNCLASSIFIED;
	r.verdict.cause = TFH_CAUSE_NONE;
	r.steady = r.verdict;
	r.verdict.share = NAN;
	r.verdict.tier = 'C';
	r.end = TFH_END_NONE;
	r.steps.clock = TFH_STEP_CLOCK_NONE;
	char *text = fixture_print(fixture_text, &r);
	assert_null(strstr(text, "WHERE A STEP GOES"));
	assert_null(strstr(text, "STEPS  "));
	free(text);
	r.steps.count = 1; /* of which nothing is known */
	text = fixture_print(fixture_screen, &r);
	assert_non_null(strstr(text, "SURE   no step could be judged"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdict_first),
		cmocka_unit_test(rows_add_up),
		cmocka_unit_test(unknown_is_not_zero),
		cmocka_unit_test(long_paths_fit),
		cmocka_unit_test(ranks_have_lines),
		cmocka_unit_test(silent_rank_is_named),
		cmocka_unit_test(in_flight_is_shown),
		cmocka_unit_test(no_verdict),
		cmocka_unit_test(no_verdict_screen),
		cmocka_unit_test(short_verdict),
		cmocka_unit_test(empty_result),
		cmocka_unit_test(sums_of_steps),
		cmocka_unit_test(times_count_from_the_start),
		cmocka_unit_test(screen_is_one),
		cmocka_unit_test(steps_are_shown),
		cmocka_unit_test(balanced_screen),
		cmocka_unit_test(sure_is_whole),
		cmocka_unit_test(list_is_whole),
		cmocka_unit_test(tiny_kernels_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
