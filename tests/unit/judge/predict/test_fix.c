/*
 * What a fix removes: places of the program, what goes with the copies, and what is left.
 */
#include "../analyze_gen.h"
#include "judge/predict/predict.h"

static uint32_t line_of_stack(void *arg, uint32_t process, uint32_t stack,
			      struct tfh_model_line *frame, uint32_t most)
{
	(void)arg, (void)process, (void)most;
	frame[0] = (struct tfh_model_line){"/job/train.py", "step", stack, false};
	return 1;
}

/* What a line does besides its copies, and the memory that it allocates for them, may go with them: the step without copies is then a
 * range, and a fix may leave 5 % of the step. It is a point where that is done elsewhere, and the fix may leave as much as a point's interval
 * has room for. */
static void test_copies_at_line(void **state)
{
	const struct tfh_feed feed = {.lines = line_of_stack};
	const struct tfh_facts facts = {.feed = &feed};
	struct tfh_accounts accounts = {.facts = &facts, .judged_steps = 2};

	(void)state;
	for (uint32_t line = 6; line <= 8; line++) {
		double gone = line == 6 ? 0.001 : line == 7 ? 0.0022 : 0;
		struct tfh_result r = {.verdict = {.cls = TFH_CLASS_TRANSFER_BOUND,
						   .cause = TFH_CAUSE_TRANSFER_H2D_PAGEABLE},
				       .found = {.line = {.file = "/job/train.py",
							  .function = "step",
							  .line = line}},
				       .n_whatif = 1,
				       .n_place = 1};
		accounts.alloc_site[0] = (struct tfh_site_use){.stack = 6, .ns = 1};
		r.found.cause_s[TFH_CAUSE_HOST_ALLOC] = 0.001;
		r.breakdown[TFH_PART_TRANSFER].s_per_step = 0.016;
		r.whatif[0] = (struct tfh_whatif){.remove = TFH_REMOVE_TRANSFER,
						  .step_s = 0.004,
						  .low_s = 0.0038,
						  .high_s = 0.0041,
						  .floor_s = 0.0007,
						  .speedup = 4};
		r.place[0] = (struct tfh_place_gain){.file = "/job/train.py",
						     .function = "step",
						     .line = 7,
						     .first_line = 7,
						     .last_line = 7,
						     .s_per_step = 0.002,
						     .off_s = 0.0002};
		tfh_fix_gains(&accounts, &r);
		assert_true(isnan(r.whatif[0].step_s) == (gone > 0));
		assert_float_equal(r.whatif[0].low_s, 0.0038 - gone, 1e-9);
		assert_float_equal(r.whatif[0].high_s,
				   gone > 0 ? 0.0041 + 0.1 * 0.016 : 0.0038 + 0.18 * 0.004, 1e-9);
		if (line == 7)
			assert_float_equal(r.whatif[0].ceiling_speedup, 10, 1e-6);
	}
}

/* The calls that a place makes may disappear with it. Of modules that it compiles and loads that is certain, so both ends of the range are
 * lower. Calls of other lines stay. */
static void test_calls_of_place(void **state)
{
	const struct tfh_feed feed = {.lines = line_of_stack};
	const struct tfh_facts facts = {.feed = &feed};
	struct tfh_copy_use copy = {.blocking = 10};
	struct tfh_accounts accounts = {
		.facts = &facts, .judged_steps = 10, .train_steps = 10, .recompile_ns = 20000000};

	(void)state;
	accounts.copy.v = &copy;
	accounts.copy.n = 1;
	for (uint32_t line = 7; line <= 8; line++) {
		struct tfh_result r = {
			.verdict = {.cls = TFH_CLASS_HOST_BOUND, .cause = TFH_CAUSE_HOST_COMPILE},
			.n_place = 1,
			.line_place = 1};
		copy.site[0] = (struct tfh_site_use){.stack = line, .ns = 1};
		accounts.load_site[0] = (struct tfh_site_use){.stack = line, .ns = 1};
		r.breakdown[TFH_PART_HOST].s_per_step = 0.009;
		r.breakdown[TFH_PART_TRANSFER].s_per_step = 0.001;
		r.place[0] = (struct tfh_place_gain){
			.file = "/job/train.py",
			.function = "step",
			.line = 7,
			.first_line = 7,
			.last_line = 7,
			.gain = {
				.step_s = NAN, .low_s = 0.004, .high_s = 0.006, .floor_s = 0.0005}};
		tfh_fix_gains(&accounts, &r);
		assert_float_equal(r.place[0].gain.low_s, line == 7 ? 0.001 : 0.004, 1e-9);
		assert_float_equal(r.place[0].gain.high_s, line == 7 ? 0.004 : 0.006, 1e-9);
	}
}

/* At a line that waits for another process for 6 ms and works for 3, the work may stay: the step without the waits is the estimate,
 * and the end of the range. Where the line only waits, the prediction stays. */
static void test_work_beside_wait(void **state)
{
	const struct tfh_feed feed = {.lines = line_of_stack};
	const struct tfh_facts facts = {.feed = &feed};
	const struct tfh_accounts accounts = {
		.facts = &facts, .judged_steps = 10, .train_steps = 10};

	(void)state;
	for (int works = 0; works < 2; works++) {
		struct tfh_result r = {
			.verdict = {.cls = TFH_CLASS_HOST_BOUND, .cause = TFH_CAUSE_HOST_WAIT},
			.n_place = 1,
			.line_place = 1};
		r.breakdown[TFH_PART_HOST].s_per_step = 0.009;
		r.breakdown[TFH_PART_COMPUTE].s_per_step = 0.001;
		r.found.cause_s[TFH_CAUSE_HOST_WAIT] = works ? 0.006 : 0.009;
		r.place[0] = (struct tfh_place_gain){.file = "/job/train.py",
						     .function = "step",
						     .line = 7,
						     .s_per_step = 0.009,
						     .off_s = 0.0002,
						     .gain = {.step_s = 0.001,
							      .about_s = 0.001,
							      .low_s = 0.0009,
							      .high_s = 0.0012}};
		tfh_fix_gains(&accounts, &r);
		const struct tfh_whatif *w = &r.place[0].gain;
		assert_int_equal(isnan(w->step_s), works);
		assert_float_equal(w->low_s, 0.0009, 1e-9);
		assert_float_equal(w->about_s, works ? 0.004 : 0.001, 1e-9);
		assert_float_equal(w->high_s, works ? 0.0042 : 0.0012, 1e-9);
	}
}

/* The library's call that launches, in a line of the program. */
static uint32_t launch_of_stack(void *arg, uint32_t process, uint32_t stack,
				struct tfh_model_line *frame, uint32_t most)
{
	frame[0] = (struct tfh_model_line){"/lib/dispatcher.py", "call", 687, true};
	return 1 + line_of_stack(arg, process, stack, frame + 1, most);
}

/* Launches that copy their arguments there and back: with arrays of the device, the copies, the waits for them and their memory go, too.
 * Copies in one direction only at a line, or by another library, stay. */
static void test_arguments(void **state)
{
	const struct tfh_feed feed = {.lines = launch_of_stack};
	const struct tfh_facts facts = {.feed = &feed};
	struct tfh_copy_use copy[] = {{.dir = TFH_DIR_H2D, .blocking = 10},
				      {.dir = TFH_DIR_D2H, .blocking = 10}};
	struct tfh_accounts accounts = {.facts = &facts, .judged_steps = 10, .train_steps = 10};

	(void)state;
	accounts.copy.v = copy;
	accounts.wait_site[0] = (struct tfh_site_use){.stack = 7, .ns = 1};
	for (int i = 0; i < 4; i++) {
		struct tfh_result r = {
			.verdict = {.cls = TFH_CLASS_HOST_BOUND, .cause = TFH_CAUSE_HOST_LAUNCH},
			.n_whatif = 1};
		r.found.line.callee_file = i == 2 ? "/lib/other.py" : "/lib/dispatcher.py";
		accounts.copy.n = i == 1 ? 1 : 2;
		copy[0].site[0] = (struct tfh_site_use){.stack = 7, .ns = 1};
		copy[1].site[0] = (struct tfh_site_use){.stack = i == 3 ? 8 : 7, .ns = 1};
		r.breakdown[TFH_PART_HOST].s_per_step = 0.006;
		r.breakdown[TFH_PART_TRANSFER].s_per_step = 0.001;
		r.found.cause_s[TFH_CAUSE_HOST_SYNC] = 0.002;
		r.whatif[0] = (struct tfh_whatif){.remove = TFH_REMOVE_LAUNCH,
						  .step_s = 0.005,
						  .about_s = 0.005,
						  .low_s = 0.0045,
						  .high_s = 0.0055,
						  .floor_s = 0.0007};
		tfh_fix_gains(&accounts, &r);
		assert_true(isnan(r.whatif[0].step_s) == !i);
		assert_float_equal(r.whatif[0].about_s, i ? 0.005 : 0.002, 1e-9);
		assert_float_equal(r.whatif[0].low_s, i ? 0.0045 : 0.0015, 1e-9);
	}
}

/* ---- stretches of lines ---- */

/* The frame of a stack is a line of the loop. */
/* Lines that follow each other without a call between them are removed together; a call ends the stretch. */
static void test_stretch(void **state)
{
	(void)state;
	struct gen *g = gen_new();
	double t = 100;

	g->feed.place = g->feed.lines = line_of_stack;
	for (int i = 0; i < 400; i++, t += 12) {
		gen_sample(g, 0, t + 0.01 + fmod(i * 4.9, 7.9), TFT_STATE_RUNNING,
			   i % 4   ? 12
			   : i % 8 ? 11
				   : 14,
			   8);
		gen_cpu(g, 0, t + 8, t + 8, 16);
		gen_copy(g, TFH_FN_cuMemcpyHtoD_v2, t + 8.01, t + 8.1, 1 << 20, false);
		gen_call(g, 0, TFH_FN_cuLaunchKernel, t + 8.11, t + 8.12)->w[0] = 1;
		gen_cpu(g, 0, t + 8.13, t + 8.13, 0);
		gen_sample(g, 0, t + 8.2 + fmod(i * 2.3, 3), TFT_STATE_RUNNING, 17, 3);
		gen_cpu(g, 0, t + 11.5, t + 11.5, 18);
		gen_call(g, 0, TFH_FN_cuStreamSynchronize, t + 11.51, t + 11.9);
		gen_cpu(g, 0, t + 11.95, t + 11.95, 0);
	}
	struct tfh_result *r = gen_judge(g);
	assert_int_equal(r->n_place, 2);
	assert_int_equal(r->place[0].line, 12);
	assert_int_equal(r->place[0].first_line, 11);
	assert_int_equal(r->place[0].last_line, 14);
	assert_float_equal(r->place[0].s_per_step / r->place[1].s_per_step, 8.0 / 3, 0.05);
	assert_int_equal(r->place[1].first_line, 17);
	assert_int_equal(r->place[1].last_line, 17);
	assert_int_equal(r->line_place, 1);
	tfh_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies_at_line),	 cmocka_unit_test(test_calls_of_place),
		cmocka_unit_test(test_work_beside_wait), cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_stretch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
