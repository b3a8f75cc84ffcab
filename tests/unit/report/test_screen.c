/* What must hold: if the first screen has no room for all, large rows of the run's table and further things to do are left out before
 * the first thing's instruction is. A part of the run is not merged with others into a row that is larger than the steps. The rows of a step come by their time, those of other processes on the GPU, too, and those
 * merged have the name of the largest if that is most of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "report_fixture.h"
#include "report/text_parts.h"

#define DO                                                                                         \
	"do it in another way, which takes more than one line to say in full here, as this one does"

/* A line, its worker processes, and two things to do. */
static void print(FILE *out, const struct tfh_result *r)
{
	static const char wide[] =
		"a sentence that takes a bit more than one line of eighty columns, and ends with its figure";
	struct tfh_wording words = fixture_words(r);
	struct tfh_style style = {0};

	words.text = wide;
	words.evidence[0] = wide;
	words.evidence[1] = "1 worker process, 95 % busy";
	words.tells[0] = words.tells[1] = TFH_TELLS_LINE;
	words.n_evidence = 2;
	words.advice[0] = (struct tfh_advice){"the first", "", DO, 2, 150, "at best "};
	words.advice[1] = (struct tfh_advice){"the second", "", DO, 2, 20, "at best "};
	words.n_advice = 2;
	tfh_report_screen(out, &words, &style);
}

static void test_instruction(void **state)
{
	(void)state;
	struct tfh_result r = fixture();
	struct tfh_part_of_run tree[] = {
		{.kind = TFH_BRANCH_RUN, .wall_s = 100},
		{.kind = TFH_BRANCH_BEFORE, .wall_s = 15},
		{.kind = TFH_BRANCH_TRAIN, .wall_s = 3, .count = 60},
		{.kind = TFH_BRANCH_EVALUATE, .wall_s = 16, .count = 60},
		{.kind = TFH_BRANCH_CHECKPOINT, .wall_s = 59},
		{.kind = TFH_BRANCH_AFTER, .wall_s = 7},
	};
	size_t lines = 0;

	r.tree = tree;
	r.n_tree = sizeof(tree) / sizeof(tree[0]);
	char *text = fixture_print(print, &r);
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	if (lines > TFH_SCREEN_LINES || !strstr(text, "    do it in another way") ||
	    !strstr(text, "\n  checkpoints       59.0 s  59 %") ||
	    !strstr(text, "\n  steps             3.00 s   3 %") ||
	    !strstr(text, "\n  other             22.0 s  22 %") || strstr(text, "the second"))
		fail_msg("%s", text);
	free(text);
}

static void print_times(FILE *out, const struct tfh_result *r)
{
	struct tfh_page page = {.out = out, .r = r};

	tfh_screen_times(&page, 3, false);
}

/* Three rows would be: 29 % before the first call, 28 % training, 43 % other. */
static void test_merged(void **state)
{
	(void)state;
	struct tfh_result r = fixture();
	struct tfh_part_of_run tree[] = {
		{.kind = TFH_BRANCH_RUN, .wall_s = 100},
		{.kind = TFH_BRANCH_BEFORE, .wall_s = 29},
		{.kind = TFH_BRANCH_TRAIN, .wall_s = 28, .count = 60},
		{.kind = TFH_BRANCH_EVALUATE, .wall_s = 22, .count = 60},
		{.kind = TFH_BRANCH_BETWEEN, .wall_s = 12},
		{.kind = TFH_BRANCH_AFTER, .wall_s = 9},
	};

	r.tree = tree;
	r.n_tree = sizeof(tree) / sizeof(tree[0]);
	char *text = fixture_print(print_times, &r);
	if (!strstr(text, "\n  evaluation        22.0 s  22 %") ||
	    !strstr(text, "\n  other             21.0 s  21 %"))
		fail_msg("%s", text);
	free(text);
	tree[3].wall_s = 12;
	tree[2].wall_s = 38;
	text = fixture_print(print_times, &r);
	if (!strstr(text, "\n  other             33.0 s  33 %"))
		fail_msg("%s", text);
	free(text);
}

static void print_step(FILE *out, const struct tfh_result *r)
{
	struct tfh_page page = {.out = out, .r = r};

	tfh_screen_step(&page, 4);
}

/* Of 79.0 ms of computing, 50 ms are those of others; 71.5 ms are waits for a batch. */
static void test_order(void **state)
{
	(void)state;
	struct tfh_result r = fixture();

	r.found.cause_s[TFH_CAUSE_COMPUTE_CONTENTION] = 0.05;
	char *text = fixture_print(print_step, &r);
	const char *input = strstr(text, "  input wait"), *others = strstr(text, "  others on GPU");
	const char *compute = strstr(text, "  compute");
	if (!input || !others || !compute || input > others || others > compute)
		fail_msg("%s", text);
	free(text);
}

/* On a CPU, computing is shown in its parts if there is room for all that take 5 %: not beside a wait for input of that size. */
static void test_parts(void **state)
{
	(void)state;
	struct tfh_result r = fixture();

	r.steady.cls = TFH_CLASS_COMPUTE_BOUND;
	for (int p = 0; p < TFH_PART_COUNT; p++)
		r.breakdown[p].s_per_step = 0;
	r.breakdown[TFH_PART_COMPUTE].s_per_step = 0.09;
	r.breakdown[TFH_PART_INPUT].s_per_step = 0.004;
	r.found.computed.part[TFH_COMPUTES_BACKWARD].s_per_step = 0.05;
	r.found.computed.part[TFH_COMPUTES_FORWARD].s_per_step = 0.03;
	r.found.computed.part[TFH_COMPUTES_UPDATE].s_per_step = 0.01;
	char *text = fixture_print(print_step, &r);
	if (!strstr(text, "  backward       50.0 ms") ||
	    !strstr(text, "  forward        30.0 ms") ||
	    !strstr(text, "  optimizer      10.0 ms") || strstr(text, "compute"))
		fail_msg("%s", text);
	free(text);
	r.breakdown[TFH_PART_INPUT].s_per_step = 0.02;
	text = fixture_print(print_step, &r);
	if (!strstr(text, "  compute        90.0 ms") || strstr(text, "backward"))
		fail_msg("%s", text);
	free(text);
}

/* Of the third row, 24 %, computing is 16; then host code is 13. Where three are 8 each, the row has no such name. */
static void test_named(void **state)
{
	(void)state;
	struct tfh_result r = fixture();
	static const double part[TFH_PART_COUNT] = {
		[TFH_PART_INPUT] = 0.49, [TFH_PART_LAUNCH] = 0.27, [TFH_PART_COMPUTE] = 0.16,
		[TFH_PART_HOST] = 0.05,	 [TFH_PART_SYNC] = 0.03,
	};
	struct tfh_part_of_run tree[] = {{.kind = TFH_BRANCH_RUN, .wall_s = 100},
					 {.kind = TFH_BRANCH_TRAIN, .wall_s = 100, .count = 100}};

	r.tree = tree;
	r.n_tree = sizeof(tree) / sizeof(tree[0]);
	r.steps.count = 100;
	r.steps.total_s = 100;
	for (int p = 0; p < TFH_PART_COUNT; p++)
		r.breakdown[p].s_per_step = r.breakdown[p].share = part[p];
	char *text = fixture_print(print_times, &r);
	if (!strstr(text, "  compute etc.    240 ms  24 %"))
		fail_msg("%s", text);
	free(text);
	r.breakdown[TFH_PART_COMPUTE].s_per_step = 0.08;
	r.breakdown[TFH_PART_HOST].s_per_step = 0.13;
	text = fixture_print(print_times, &r);
	if (!strstr(text, "  host code etc. "))
		fail_msg("%s", text);
	free(text);
	r.breakdown[TFH_PART_SYNC].s_per_step = 0.08;
	r.breakdown[TFH_PART_HOST].s_per_step = 0.08;
	text = fixture_print(print_times, &r);
	if (!strstr(text, "  other           240 ms  24 %"))
		fail_msg("%s", text);
	free(text);
}

static void print_sampled(FILE *out, const struct tfh_result *r)
{
	struct tfh_page page = {.out = out, .r = r};

	tfh_screen_sampled(&page, 6);
	tfh_text_tree(&page);
}

/* Lines of a few samples each are told by those that call them. A run of which no part is known has no table of parts. */
static void test_sampled(void **state)
{
	(void)state;
	struct tfh_result r = fixture();
	struct tfh_part_of_run run = {.kind = TFH_BRANCH_RUN, .wall_s = 10};
	struct tfh_seen_node node[] = {{"/job/fit.py", "fit", 9, 0, 10, 0, 20},
				       {"/job/fit.py", "back", 20, 0, 6, 0, 12},
				       {"/job/fit.py", "ahead", 30, 0, 4, 0, 8},
				       {"/job/layers.py", "pad", 40, 1, 2, 2, 5},
				       {"/job/layers.py", "dot", 50, 1, 2, 2, 4}};

	r.tree = &run;
	r.n_tree = 1;
	r.found.node = node;
	r.found.n_node = sizeof(node) / sizeof(node[0]);
	r.found.sampled =
		(struct tfh_sampled){.samples = 20, .function = "", .wall_s = 10, .n_line = 1};
	r.found.sampled.line[0] = (struct tfh_sampled_line){.file = "/job/layers.py",
							    .function = "pad",
							    .line = 40,
							    .share = 0.2,
							    .samples = 5};
	char *text = fixture_print(print_sampled, &r);
	if (!strstr(text, "60 %    6.00 s  fit.py:20 back: with what it calls") ||
	    !strstr(text, "40 %    4.00 s  fit.py:30 ahead: with what it calls") ||
	    strstr(text, "elsewhere") || strstr(text, "pad") || strstr(text, "WHERE THE RUN WENT"))
		fail_msg("%s", text);
	free(text);
	r.found.sampled.line[0].share = 0.7;
	text = fixture_print(print_sampled, &r);
	if (!strstr(text, "70 %    7.00 s  layers.py:40 pad") || !strstr(text, "elsewhere"))
		fail_msg("%s", text);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_instruction), cmocka_unit_test(test_merged),
		cmocka_unit_test(test_order),	    cmocka_unit_test(test_named),
		cmocka_unit_test(test_parts),	    cmocka_unit_test(test_sampled)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
