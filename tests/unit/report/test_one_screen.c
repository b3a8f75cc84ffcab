/* What must hold: the first screen is one, whatever there is to say. What there is no room for is left out whole, and so that the rest
 * still makes sense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "report_fixture.h"

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
	fixture_lines_fit(text);
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
	fixture_lines_fit(text);
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
	fixture_lines_fit(text);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_verdict_screen), cmocka_unit_test(screen_is_one),
		cmocka_unit_test(steps_are_shown),   cmocka_unit_test(balanced_screen),
		cmocka_unit_test(sure_is_whole),     cmocka_unit_test(list_is_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
