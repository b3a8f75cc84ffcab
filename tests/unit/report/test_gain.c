/* What the text report says of a gain: a prediction, an estimate, a bound or none, each for what it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "report_fixture.h"
#include "report/text_parts.h"
#include "report/words/remedy.h"

/* Where not even a bound of the gain is known, the screen says so and why; if the time that goes is known, about what the run
 * would take, as DO NEXT does; at most that, where the rest can only get faster. */
static void gain_without_bound(void **state)
{
	(void)state;
	struct tfh_result r = fixture();
	uint32_t i = 0;

	while (tfh_remove_part(r.whatif[i].remove) != tfh_cause_part(r.verdict.cause))
		i++;
	r.whatif[i].step_s = r.whatif[i].ceiling_speedup = r.whatif[i].speedup = NAN;
	r.whatif[i].no_bound = "it is compiled anew each time";
	char *text = fixture_print(fixture_screen, &r);
	assert_non_null(strstr(text, "  gain     no estimate: it is compiled anew each time\n"));
	free(text);
	r.whatif[i].about_s = 0.110;
	r.whatif[i].high_s = 0.174;
	r.whatif[i].saved_s = 0.25 * tfh_run_s(&r);
	text = fixture_print(fixture_screen, &r);
	char *row = strstr(text, "  gain     run ");
	assert_non_null(row);
	assert_non_null(strstr(row, " -> about "));
	assert_non_null(strstr(row, "; no figure for a step: it is"));
	assert_null(strstr(text, "no estimate"));
	free(text);
	r.whatif[i].high_s = 0.110;
	text = fixture_print(fixture_screen, &r);
	assert_non_null(strstr(text, " -> at most "));
	assert_non_null(strstr(text, " if that work goes; no figure"));
	free(text);
}

/* The fix of code is that of its line. Launches come from everywhere in the step, and one graph replaces all of them, whichever line
 * makes most. */
static void gain_of_the_fix(void **state)
{
	(void)state;
	struct tfh_result r = fixture();

	r.verdict.cls = r.steady.cls = TFH_CLASS_HOST_BOUND;
	r.n_whatif = 1;
	r.n_place = r.line_place = 1;
	r.whatif[0].step_s = r.whatif[0].speedup = NAN;
	r.place[0] =
		(struct tfh_place_gain){.file = "a.py", .function = "f", .line = 7, .whole = true};
	r.place[0].gain = r.whatif[0];
	r.place[0].gain.about_s = 0.110;
	r.whatif[0].about_s = 0.120;
	for (int k = 0; k < 2; k++) {
		r.verdict.cause = r.steady.cause =
			k ? TFH_CAUSE_HOST_LAUNCH : TFH_CAUSE_HOST_PYTHON;
		r.whatif[0].remove = k ? TFH_REMOVE_LAUNCH : TFH_REMOVE_HOST;
		char *text = fixture_print(fixture_screen, &r);
		assert_non_null(strstr(text, k ? " -> about 120 ms" : " -> about 110 ms"));
		free(text);
	}
}

static void place_screen(FILE *out, const struct tfh_result *r)
{
	struct tfh_wording words = fixture_words(r);
	struct tfh_style style = {0};

	words.place[0] = "compiling at train_the_large_model_now.py:1234";
	tfh_report_screen(out, &words, &style);
}

/* The place without which a step is told keeps its line, however long its file's name. */
static void place_of_the_gain(void **state)
{
	(void)state;
	struct tfh_result r = fixture();

	r.verdict.cls = r.steady.cls = TFH_CLASS_HOST_BOUND;
	r.verdict.cause = r.steady.cause = TFH_CAUSE_HOST_COMPILE;
	r.found.sampled.samples = 100;
	r.n_place = r.line_place = r.n_whatif = 1;
	r.place[0] = (struct tfh_place_gain){.file = "/job/train_the_large_model_now.py",
					     .function = "main",
					     .line = 1234,
					     .first_line = 1234,
					     .last_line = 1234,
					     .gain = r.whatif[0]};
	r.whatif[0].remove = TFH_REMOVE_HOST;
	r.whatif[0].low_s = 0.001;
	char *text = fixture_print(place_screen, &r);
	if (!strstr(text, "compiling at train_the_large_model_now.py:1234: step "))
		fail_msg("%s", text);
	free(text);
}

/* A range too wide for a prediction still has a step with everything else as it was; a bound that is none stands beside it. */
static void about_that_time(void **state)
{
	(void)state;
	struct tfh_result r = fixture();

	r.whatif[0].step_s = r.whatif[0].speedup = NAN;
	r.whatif[0].about_s = 0.110;
	r.whatif[0].high_s = 0.130;
	for (int k = 0; k < 2; k++) {
		char *text = fixture_print(fixture_screen, &r);
		assert_non_null(strstr(text, k ? " -> about 110 ms (at best 101 ms), 1.58x"
					       : " -> about 110 ms (95.0 to 130 ms), 1.58x"));
		free(text);
		r.whatif[0].high_s = 0.174;
		r.steps.total_s *=
			1.3; /* with what is no usual step: the bound is of the same step */
	}
}

/* A bound that is that of nothing but compute tells nothing of the part that it is given for. */
static void bounds_that_tell(void **state)
{
	(void)state;
	struct tfh_result r = fixture();

	r.whatif[0] =
		(struct tfh_whatif){TFH_REMOVE_TRANSFER, NAN, NAN, NAN, NAN, NAN, 1.12, 9, NULL, 0};
	for (int k = 0; k < 2; k++) {
		r.whatif[1] = r.whatif[0];
		r.whatif[1].remove = TFH_REMOVE_EVERYTHING_BUT_COMPUTE;
		r.whatif[1].ceiling_speedup = k ? 1.12 : 1.5;
		char *text = fixture_print(fixture_text, &r);
		assert_non_null(strstr(text, "  nothing but compute"));
		assert_true((strstr(text, "  no copies") == NULL) == k);
		free(text);
	}
}

/* Advice with a gain of more time than the steps compute for comes before that about the computing, which has none; advice about what
 * blocks stays the first, unless the run was killed before it came to its steps. */
static void larger_gain_first(void **state)
{
	static const struct {
		enum tfh_class cls;
		double part; /* of the run that the other advice saves; the steps compute for a half of it */
		bool first;
		double steps; /* of a killed run, seconds of 10; 0: it was not killed */
	} row[] = {{TFH_CLASS_COMPUTE_BOUND, 0.6, true, 0},
		   {TFH_CLASS_COMPUTE_BOUND, 0.4, false, 0},
		   {TFH_CLASS_HOST_BOUND, 0.6, false, 0},
		   {TFH_CLASS_HOST_BOUND, 0.6, false, 5},
		   {TFH_CLASS_HOST_BOUND, 0.6, true, 0.5}};

	(void)state;
	for (size_t k = 0; k < sizeof(row) / sizeof(*row); k++) {
		const struct tfh_advice *order[TFH_REPORT_ADVICE];
		struct tfh_result r = fixture();
		double wall = tfh_run_s(&r);
		struct tfh_part_of_run tree[] = {{.kind = TFH_BRANCH_RUN, .wall_s = 10},
						 {.kind = TFH_BRANCH_STEP, .wall_s = row[k].steps}};
		if (row[k].steps > 0) {
			r.end = TFH_END_SIGNAL;
			r.tree = tree;
			r.n_tree = 2;
		}
		r.steady.cls = row[k].cls;
		r.steady.cause = TFH_CAUSE_NONE;
		r.steps.total_s = wall;
		r.breakdown[TFH_PART_COMPUTE].share = 0.5;
		struct tfh_wording words = {.r = &r, .n_advice = 2};
		words.advice[0] = (struct tfh_advice){.how = "", .saved_s = NAN};
		words.advice[1] = (struct tfh_advice){.how = "", .saved_s = row[k].part * wall};
		assert_int_equal(tfh_next_order(&words, order), 2);
		assert_ptr_equal(order[0], &words.advice[row[k].first]);
	}
}

/* Steps that only compute on a processor do not get as fast as their fastest ones by a change of something else: that factor stands
 * beside the one of what else they do. On a device it is that of the replay. */
static void bound_of_processor(void **state)
{
	(void)state;
	for (int k = 0; k < 2; k++) {
		struct tfh_result r = fixture();
		r.verdict.cls = TFH_CLASS_COMPUTE_BOUND;
		r.verdict.cause = TFH_CAUSE_COMPUTE_CPU;
		r.breakdown[TFH_PART_COMPUTE].share = 0.8;
		r.n_whatif = 1;
		r.whatif[0].step_s = r.whatif[0].speedup = NAN;
		r.whatif[0].ceiling_speedup = 1.9;
		r.found.cpu_only = k;
		char *text = fixture_print(fixture_screen, &r);
		assert_non_null(strstr(text, k ? "at most 1.25x without cheaper"
					       : "at most 1.90x without"));
		assert_int_equal(strstr(text, "(1.90x if all") != NULL, k);
		free(text);
	}
}

/* No bound is below what the report itself predicts for a part of the steps, nor seems to deny what else the run could gain. */
static void bound_of_all(void **state)
{
	static const struct {
		double about, part; /* of the step, of the run that other advice saves */
		const char *row;
		double steps;	/* of the run, 0: most of it */
		uint32_t alike; /* processes that do the same */
	} row[] = {
		{0.8, 0, "  gain     at most 1.50x without cheaper computing\n", 0, 0},
		{0.4, 0, "  gain     at most 2.50x without cheaper computing\n", 0, 0},
		{0.8, 0.2, "  gain     at most 1.50x without cheaper computing\n", 0, 0},
		{0.8, 0.5, "  gain     at most 1.50x in the steps without cheaper computing\n", 0,
		 0},
		/* what takes longer than the steps comes first */
		{0.8, 0.5,
		 "  gain     run 6m12s -> at best 3m06s, 2.00x (DO NEXT 1); at most 1.50x", 0.4, 0},
		{0.8, 0.2,
		 "  gain     run 6m12s -> at best 2m29s, 2.50x (DO NEXT 1); at most 1.50x", 0.1, 2},
		{0.8, 0, "  gain     at most 1.50x without cheaper computing; DO NEXT 1 makes it",
		 0, 0}};

	(void)state;
	for (size_t k = 0; k < sizeof(row) / sizeof(*row); k++) {
		struct tfh_result r = fixture();
		double step = tfh_step_s(&r);
		r.verdict.cls = TFH_CLASS_COMPUTE_BOUND;
		r.verdict.cause = TFH_CAUSE_COMPUTE_DENSE;
		r.breakdown[TFH_PART_COMPUTE].share = 1 / 1.5;
		r.n_whatif = 1;
		r.whatif[0].step_s = r.whatif[0].speedup = NAN;
		r.whatif[0].ceiling_speedup = 1.2;
		r.whatif[0].about_s = row[k].about * step;
		r.found.alike = row[k].alike;
		if (row[k].steps > 0)
			r.steps.total_s = row[k].steps * tfh_run_s(&r);
		struct tfh_wording words = fixture_words(&r);
		words.n_advice = 1;
		words.misuse = k + 1 == sizeof(row) / sizeof(*row); /* it makes computing dearer */
		words.advice[0] = (struct tfh_advice){
			"start-up", "", "", NAN, row[k].part * tfh_run_s(&r), ""};
		struct tfh_style style = {0};
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);
		tfh_report_screen(out, &words, &style);
		fclose(out);
		if (!strstr(text, row[k].row))
			fail_msg("%s", text);
		free(text);
	}
}

/* Where hardly anything else has room, a second thing to do matters more than instructions or a third row of the tables. */
static void second_thing(void **state)
{
	static const char wide[] = "a sentence that takes a bit more than one line of eighty "
				   "columns, and ends with its figure";
	struct tfh_result r = fixture();
	struct tfh_wording words = fixture_words(&r);
	struct tfh_style style = {0};
	char *text = NULL;
	size_t size;

	(void)state;
	words.text = wide;
	for (uint32_t i = 0; i < 2; i++) {
		words.evidence[i] = wide;
		words.tells[i] = TFH_TELLS_LINE;
		words.remark[i] = wide;
		words.advice[i] =
			(struct tfh_advice){i ? "start-up" : "code", wide, wide, 20, 0, ""};
	}
	words.n_evidence = words.n_advice = 2;
	words.n_remark = words.n_first = 1;
	FILE *out = open_memstream(&text, &size);
	tfh_report_screen(out, &words, &style);
	fclose(out);
	assert_non_null(strstr(text, "\n  2 start-up"));
	free(text);
}

/* An estimate in an interval many times as wide is no figure: the interval is given alone. */
static void wide_interval(void **state)
{
	(void)state;
	for (int wide = 0; wide < 2; wide++) {
		struct tfh_result r = fixture();
		uint32_t i = 0;
		while (tfh_remove_part(r.whatif[i].remove) != tfh_cause_part(r.verdict.cause))
			i++;
		r.whatif[i].step_s = r.whatif[i].speedup = NAN;
		r.whatif[i].about_s = 0.01;
		r.whatif[i].low_s = 0.004;
		r.whatif[i].high_s = wide ? 0.06 : 0.03;
		char *text = fixture_print(fixture_screen, &r);
		assert_int_equal(strstr(text, " ms -> 4.00 to 60.0 ms") != NULL, wide);
		assert_int_equal(strstr(text, "about 10.0 ms (4.00 to 30.0 ms)") != NULL, !wide);
		free(text);
	}
}

/* PyTorch and TensorFlow are known by their calls: where none was seen, advice is not in their terms, although no list of software was
 * recorded. */
static void framework_by_calls(void **state)
{
	(void)state;
	struct tfh_result r = fixture();

	r.run = (struct tfh_run *)&r; /* never read */
	r.found.torch = r.found.imported = false;
	assert_int_equal(tfh_framework(&r), TFH_FRAMEWORK_OTHER);
	fixture_processes[0].has_tf = true;
	assert_int_equal(tfh_framework(&r), TFH_FRAMEWORK_UNKNOWN);
	fixture_processes[0].has_tf = false;
	r.found.torch = true;
	assert_int_equal(tfh_framework(&r), TFH_FRAMEWORK_TORCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gain_without_bound), cmocka_unit_test(gain_of_the_fix),
		cmocka_unit_test(bound_of_processor), cmocka_unit_test(about_that_time),
		cmocka_unit_test(larger_gain_first),  cmocka_unit_test(second_thing),
		cmocka_unit_test(bounds_that_tell),   cmocka_unit_test(bound_of_all),
		cmocka_unit_test(wide_interval),      cmocka_unit_test(framework_by_calls),
		cmocka_unit_test(place_of_the_gain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
