/* What must hold: backward passes that two lines of the program call by turns are one step, whatever
 * their sizes; also if one of the lines comes only in every second iteration, if there are three, if
 * the first stacks are unknown, or without an optimizer. Passes of two lines in long series, or in
 * random order, are steps of their own. */
#include "../analyze_gen.h"

enum { PASSES = 240, UPDATE = 3, D = 7, G = 8, E = 9 };

/* Line of each pass, 0: no stack. */
typedef uint32_t (*line_fn)(unsigned i);

static unsigned steps_of(line_fn line, bool optimizer)
{
	struct gen *g = gen_new();
	unsigned seed = 1;
	double t = 0;

	g->name[TFT_NAME_STRING][UPDATE] = "Optimizer.step#SGD.step";
	g->name[TFT_NAME_OP][1] = "Engine::execute";
	for (unsigned i = 0; i < PASSES; i++) {
		seed = seed * 1103515245 + 12345;
		double back = 1 + (seed >> 16 & 1023) / 1024.0;
		struct tfh_event *ev = gen_call(g, 0, TFH_FN_torch_backward, t + 1, t + 1 + back);
		ev->w[0] = 1;
		ev->stack = line(i);
		t += 1.1 + back;
		if (!optimizer)
			continue;
		ev = gen_call(g, 0, TFH_FN_torch_range, t, t + 0.5);
		ev->kind = TFT_RANGE;
		ev->w[0] = UPDATE;
		t += 0.5;
	}
	struct tfh_result *r = gen_judge(g);
	unsigned steps = (unsigned)r->steps.total;
	assert_int_equal(r->steps.clock, optimizer ? TFH_STEP_CLOCK_MARK : TFH_STEP_CLOCK_EXEC);
	gen_closed(r);
	tfh_result_free(r);
	return steps;
}

static uint32_t by_turns(unsigned i)
{
	return i % 2 ? G : D;
}

static uint32_t unknown_first(unsigned i)
{
	return i < 5 || i == 100 ? 0 : by_turns(i);
}

static uint32_t every_second(unsigned i)
{
	return i % 3 == 2 ? G : D;
}

static uint32_t of_three(unsigned i)
{
	return D + i % 3;
}

/* First one model alone, then two by turns. */
static uint32_t after_another(unsigned i)
{
	return i < 60 ? E : by_turns(i);
}

static uint32_t in_series(unsigned i)
{
	return i / 10 % 2 ? G : D;
}

static uint32_t once_a_series(unsigned i)
{
	return i % 40 == 39 ? G : D;
}

static uint32_t at_random(unsigned i)
{
	return (i * 2654435761u >> 13) % 3 ? D : G;
}

static uint32_t of_one(unsigned i)
{
	(void)i;
	return D;
}

static void test_turns(void **state)
{
	(void)state;
	for (int optimizer = 0; optimizer < 2; optimizer++) {
		assert_int_equal(steps_of(by_turns, optimizer), PASSES / 2);
		assert_int_equal(steps_of(unknown_first, optimizer), PASSES / 2);
		assert_int_equal(steps_of(every_second, optimizer), PASSES / 3 * 2);
		assert_int_equal(steps_of(of_three, optimizer), PASSES / 3);
		assert_int_equal(steps_of(after_another, optimizer), 60 + (PASSES - 60) / 2);
	}
}

static void test_no_turns(void **state)
{
	(void)state;
	for (int optimizer = 0; optimizer < 2; optimizer++) {
		assert_int_equal(steps_of(in_series, optimizer), PASSES);
		assert_int_equal(steps_of(once_a_series, optimizer), PASSES);
		assert_int_equal(steps_of(at_random, optimizer), PASSES);
		assert_int_equal(steps_of(of_one, optimizer), PASSES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_no_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
