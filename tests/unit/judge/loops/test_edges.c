/* A step is counted whose begin and end are at the two ends of the run: a batch that is sent after the launches, or one ahead. The
 * same launches without a batch, to warm up, are no step; nor are weights that are sent first. */
#include "../analyze_gen.h"

#define STEPS 60

static double t;

static void call(struct gen *g, enum tfh_fn fn, uint64_t w0)
{
	gen_call(g, 0, fn, t, t + 0.02)->w[0] = w0;
	t += 0.03;
}

static void up(struct gen *g, uint64_t bytes)
{
	gen_copy(g, TFH_FN_cuMemcpyHtoDAsync_v2, t, t + 0.02, bytes, false);
	t += 0.03;
}

static void fetch(struct gen *g)
{
	gen_copy(g, TFH_FN_cuMemcpyDtoHAsync_v2, t, t + 0.02, 65536, false);
	t += 0.03;
}

static void launch(struct gen *g)
{
	for (uint64_t k = 1; k <= 5; k++)
		call(g, TFH_FN_cuLaunchKernel, k);
}

static void wait(struct gen *g)
{
	gen_call(g, 0, TFH_FN_cuStreamSynchronize, t, t + 3);
	t += 3.01;
}

enum shape {
	SENT_LAST,
	AHEAD,
	WEIGHTS_AHEAD,
	WAITS_BEHIND,
	NO_LAST_WAIT,
	DEVICES,
	WARM_UP,
	WEIGHTS,
	CUT,
	SHAPES
};

static void step(struct gen *g, enum shape shape, int i)
{
	switch (shape) {
	case SENT_LAST: /* the edges of a mesh that another process sent */
		launch(g);
		fetch(g);
		wait(g);
		up(g, 65536);
		break;
	case AHEAD:
	case WEIGHTS_AHEAD:
		if (i + 1 < STEPS)
			up(g, 65536);
		launch(g);
		wait(g);
		break;
	case WAITS_BEHIND: /* for the step before */
		launch(g);
		if (i)
			wait(g);
		break;
	case NO_LAST_WAIT:
		launch(g);
		if (i + 1 < STEPS)
			wait(g);
		break;
	case DEVICES: /* two devices, which need what both found */
		for (int k = 0; k < 2; k++) {
			call(g, TFH_FN_cuLaunchKernel, 7);
			fetch(g);
			wait(g);
		}
		for (int k = 0; k < 2; k++) {
			up(g, 8192);
			call(g, TFH_FN_cuLaunchKernel, 9);
		}
		break;
	default:
		up(g, 65536);
		launch(g);
		if (shape != CUT || i + 1 < STEPS)
			fetch(g);
		wait(g);
	}
}

static void test_edges(void **state)
{
	(void)state;
	for (enum shape shape = 0; shape < SHAPES; shape++) {
		struct gen *g = gen_new();

		t = 100;
		if (shape == WARM_UP) {
			launch(g);
			wait(g);
		}
		if (shape == WEIGHTS || shape == WEIGHTS_AHEAD)
			for (int k = 0; k < 3; k++)
				up(g, 1 << 20);
		if (shape == AHEAD || shape == WEIGHTS_AHEAD)
			up(g, 65536);
		for (int i = 0; i < STEPS; i++)
			step(g, shape, i);
		if (shape != NO_LAST_WAIT)
			wait(g);
		struct tfh_result *r = gen_judge(g);
		if (r->steps.total != STEPS)
			print_error("shape %d\n", shape);
		assert_int_equal(r->steps.total, STEPS);
		gen_closed(r);
		tfh_result_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_edges)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
