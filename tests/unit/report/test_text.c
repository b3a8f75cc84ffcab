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
	fixture_lines_fit(text);
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
	fixture_lines_fit(text);
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
	fixture_lines_fit(text);
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
	fixture_lines_fit(text);
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
	fixture_lines_fit(text);
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
	fixture_lines_fit(text);
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
	fixture_lines_fit(text);
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
		cmocka_unit_test(verdict_first),       cmocka_unit_test(rows_add_up),
		cmocka_unit_test(unknown_is_not_zero), cmocka_unit_test(long_paths_fit),
		cmocka_unit_test(ranks_have_lines),    cmocka_unit_test(silent_rank_is_named),
		cmocka_unit_test(in_flight_is_shown),  cmocka_unit_test(no_verdict),
		cmocka_unit_test(short_verdict),       cmocka_unit_test(empty_result),
		cmocka_unit_test(sums_of_steps),       cmocka_unit_test(times_count_from_the_start),
		cmocka_unit_test(tiny_kernels_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
