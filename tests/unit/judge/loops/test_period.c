/* Synthetic jobs with nothing but driver calls, in all shapes of training: the number of steps is
 * the job's own, evaluations are not counted as steps, and the median step is right within 2 %.
 * Events are read exactly twice, once for the facts and once for the accounts. */
#include "period_jobs.h"

/* Requests come at random and are of two sizes: each is a step. */
static void test_server(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 10; seed++) {
		struct job j = job_new();
		j.seed = seed;
		for (int i = 0; i < 40; i++) {
			j.now += 0.1 * draw(&j, 200);
			up(&j, draw(&j, 2) ? 50000 : 200000);
			kernel(&j, F, 64, 1 + 0.01 * draw(&j, 200));
			kernel(&j, F, 64, 1);
			fetch(&j, 4000);
		}
		tfh_result_free(judge(&j, 40, 0));
	}
}

/* Sentences of any length, layers of any number. */
static void test_ragged(void **state)
{
	(void)state;
	struct job j = job_new();

	for (int i = 0; i < 60; i++) {
		uint32_t n = 2 + draw(&j, 6);
		up(&j, 100 * n + draw(&j, 100));
		up(&j, 8 * n);
		train(&j, n, 0.2);
		fetch(&j, 4);
	}
	tfh_result_free(judge(&j, 60, 0));
}

/* Waits for each of 30 kernels of a step make no 30 steps of it; nor do those for its layers. */
static void test_waits_inside(void **state)
{
	(void)state;
	struct job j = job_new();

	for (int i = 0; i < 20; i++) {
		for (int l = 0; l < 30; l++) {
			kernel(&j, F, 64, 0.1);
			wait(&j);
		}
		kernel(&j, UPDATE, 64, 0.1);
		kernel(&j, UPDATE, 64, 0.1);
	}
	wait(&j);
	tfh_result_free(judge(&j, 20, 30 * 0.11 + 0.2));
	j = job_new();
	for (int i = 0; i < 30; i++) {
		for (uint32_t l = 0; l < 6; l++) {
			kernel(&j, F + l, 64, 0.2);
			wait(&j);
		}
		for (uint32_t l = 6; l--;) {
			kernel(&j, B + l, 64, 0.4);
			wait(&j);
		}
		kernel(&j, UPDATE, 64, 0.1);
		wait(&j);
	}
	tfh_result_free(judge(&j, 30, 6 * 0.6 + 0.1 + 13 * 0.01));
}

/* Losses are fetched one by one; the data lie on the device. */
static void test_fetches_inside(void **state)
{
	(void)state;
	struct job j = job_new();

	for (int i = 0; i < 40; i++) {
		for (int h = 0; h < 4; h++) {
			kernel(&j, F, 64, 0.2);
			kernel(&j, F + 1, 64, 0.2);
			kernel(&j, LOSS, 64, 0.1);
			fetch(&j, 4);
		}
		back(&j, 4, 0.4);
		update(&j);
		wait(&j);
	}
	tfh_result_free(judge(&j, 40, 0));
}

/* Numbers are sent up one by one beside the batch. */
static void test_scalars(void **state)
{
	(void)state;
	struct job j = job_new();

	for (int i = 0; i < 40; i++) {
		up(&j, 200000);
		there(&j, 4, 0.2);
		back(&j, 4, 0.4);
		for (int k = 0; k < 6; k++) {
			up(&j, 8);
			kernel(&j, UPDATE, 64, 0.05);
		}
	}
	wait(&j);
	tfh_result_free(judge(&j, 40, 0));
}

/* Another model, another batch size, another module: the steps go on. */
static void test_changes(void **state)
{
	(void)state;
	struct job j = job_new();

	for (int i = 0; i < 80; i++) {
		up(&j, i < 40 ? 100000 : 150000);
		train(&j, i < 40 ? 4 : 6, 0.2);
		fetch(&j, 4);
	}
	struct tfh_result *r = judge(&j, 80, 0);
	assert_int_equal(r->pattern.per_update, 1);
	tfh_result_free(r);
	j = job_new();
	for (int i = 0; i < 75; i++) {
		j.module = (uint32_t)i / 25;
		up(&j, 1000 + 1000 * (uint64_t)(i / 25));
		train(&j, 4, 0.2 + 0.1 * (i / 25));
		fetch(&j, 4);
	}
	tfh_result_free(judge(&j, 75, 0));
}

/* Nothing but launches, and a layer's kernels come again and again. */
static void test_launches(void **state)
{
	(void)state;
	struct job j = job_new();

	for (int i = 0; i < 90; i++) {
		train(&j, 4, 0.2);
		if (i == 9)
			wait(&j);
		j.now += 2;
	}
	wait(&j);
	tfh_result_free(judge(&j, 90, 2.06));
	j = job_new();
	for (int i = 0; i < 60; i++) {
		kernel(&j, OTHER, 64, 0.1);
		for (int l = 0; l < 12; l++)
			there(&j, 6, 0.02);
		kernel(&j, METRIC, 64, 0.1);
	}
	wait(&j);
	tfh_result_free(judge(&j, 60, 74 * 0.005));
}

/* Every tenth step writes a log: with a wait of its own, and there is no other. */
static void test_log(void **state)
{
	(void)state;
	for (int often = 0; often < 2; often++) {
		struct job j = job_new();
		for (int i = 0; i < 80; i++) {
			if (!often)
				up(&j, 100000);
			train(&j, 4, 0.2);
			if (often)
				wait(&j);
			if (i % 10 == 9) {
				kernel(&j, METRIC, 1, 0.1);
				fetch(&j, 64);
			}
		}
		tfh_result_free(judge(&j, 80, 0));
	}
}

/* Steps that are each waited for, and every tenth of which computes a number and reads it: before its wait, or behind it where the step
 * has a batch. It is no update of the ten, unless its kernel is called one. A picture of ten parts is the step. */
static void test_reports(void **state)
{
	(void)state;
	enum { BEFORE, NO_BATCH, BEHIND, READ_TWICE, NAMED, TILES, KINDS };
	for (int kind = 0; kind < KINDS; kind++) {
		struct job j = job_new();
		if (kind == NAMED)
			j.g->name[TFT_NAME_FUNCTION][METRIC] = "sgd_step";
		for (int i = 0; i < 400; i++) {
			bool tenth = i % 10 == (kind == TILES ? 9 : 0);
			if (kind != NO_BATCH)
				up(&j, 65536);
			train(&j, 4, 0.2);
			if (kind == READ_TWICE)
				fetch(&j, 4);
			else if (kind >= BEHIND && kind != NAMED)
				wait(&j);
			if (tenth) {
				kernel(&j, METRIC, 1, 0.1);
				fetch(&j, kind == TILES ? 1000000 : 1024);
			} else if (kind < BEHIND || kind == NAMED) {
				wait(&j);
			}
		}
		tfh_result_free(judge(&j, kind < NAMED ? 400 : 40, 0));
	}
}

/* Each step is one graph, and the loss is read each fifteenth step. Before there was a graph, a step was launched kernel by kernel. */
static void graph(struct job *j, uint64_t handle, uint64_t kernels)
{
	struct tfh_event *ev = gen_call(j->g, 0, TFH_FN_cuGraphLaunch, j->now, j->now + 0.01);

	ev->w[0] = handle;
	ev->w[2] = kernels;
	j->now += 0.01;
	j->busy = fmax(j->busy, j->now) + 2;
}

static void test_graphs(void **state)
{
	(void)state;
	struct job j = job_new();

	/* The first step is launched kernel by kernel: the losses are read behind 15 steps each. */
	train(&j, 4, 0.2);
	for (int i = 0; i < 89; i++) {
		graph(&j, 7, 0);
		if (i % 15 == 13)
			fetch(&j, 4);
	}
	tfh_result_free(judge(&j, 90, 0));
	/* More graphs than that before each of many waits are a loop inside a step. */
	j = job_new();
	for (int i = 0; i < 200; i++) {
		for (int k = 0; k < 40; k++)
			graph(&j, 7, 0);
		fetch(&j, 4);
	}
	tfh_result_free(judge(&j, 200, 0));
	/* A step of two graphs of different size, and sometimes a third one; and steps that take turns with two graphs
	 * of the same size. */
	j = job_new();
	for (int i = 0; i < 60; i++) {
		graph(&j, 7, 40);
		graph(&j, 8, 12);
		if (i % 12 == 11)
			graph(&j, 9, 5);
		fetch(&j, 4);
	}
	tfh_result_free(judge(&j, 60, 0));
	j = job_new();
	for (int i = 0; i < 60; i++) {
		graph(&j, 7 + i % 2, 40);
		if (i % 4 == 3)
			fetch(&j, 4);
	}
	tfh_result_free(judge(&j, 60, 0));
}

/* Simulations: a step is a kernel for each of many cells and one for their border; every hundredth step is waited for. Where two
 * kernels in turn are all that is between two waits, they are a solver's loop inside a step: they are small. */
static void test_few_functions(void **state)
{
	(void)state;
	struct job j = job_new();

	for (int i = 0; i < 1200; i++) {
		for (int k = 0; k < 250; k++)
			kernel(&j, F, 64, 0.001);
		kernel(&j, B, 1, 0.001);
		if (i % 100 == 99)
			fetch(&j, 4);
	}
	tfh_result_free(judge(&j, 1200, 0));
	j = job_new();
	for (int i = 0; i < 1200; i++) {
		kernel(&j, F, 64, 0.001);
		kernel(&j, B, 64, 0.001);
		if (i % 100 == 99)
			fetch(&j, 4);
	}
	tfh_result_free(judge(&j, 12, 0));
}

/* A step is one kernel that is waited for; each eighth one also makes a picture, which takes the host long. The picture makes no
 * step of the eight, nor an evaluation of the seven. */
static void test_picture(void **state)
{
	(void)state;
	struct job j = job_new();

	for (int i = 0; i < 400; i++) {
		kernel(&j, OTHER, 9, 4);
		if (i % 8 == 7) {
			kernel(&j, METRIC, 9, 0.5);
			wait(&j);
			j.now += 90;
			continue;
		}
		wait(&j);
		j.now += 0.1;
	}
	tfh_result_free(judge(&j, 400, 4.1));
}

/* An agent plays sixteen moves with one kernel, and then trains three times with more: each training is a step, and no move is. */
static void test_moves(void **state)
{
	(void)state;
	struct job j = job_new();

	for (int i = 0; i < 15; i++) {
		for (int k = 0; k < 16; k++) {
			kernel(&j, OTHER, 4, 0.1);
			fetch(&j, 4096);
			j.now += 1;
		}
		for (int k = 0; k < 3; k++) {
			kernel(&j, F, 4, 1);
			kernel(&j, B, 4, 2);
			kernel(&j, OTHER, 4, 0.1);
			wait(&j);
		}
	}
	tfh_result_free(judge(&j, 45, 0));
}

/* A prompt goes up for each request, and each of its sixty tokens is a step. Gradients of sixteen parts, each with a loss that is read, are one
 * step with the update behind them; few waits between two batches make no steps. */
static void test_inside_batches(void **state)
{
	(void)state;
	struct job j = job_new();

	for (int i = 0; i < 8; i++) {
		up(&j, 4096);
		kernel(&j, F, 64, 3);
		fetch(&j, 32000);
		for (int k = 0; k < 60; k++) {
			there(&j, 12, 0.1);
			fetch(&j, 32000);
			j.now += 2;
		}
	}
	tfh_result_free(judge(&j, 480, 0));
	for (int parts = 4; parts <= 16; parts += 12) {
		j = job_new();
		for (int i = 0; i < 40; i++) {
			up(&j, 400000);
			for (int k = 0; k < parts; k++) {
				there(&j, 4, 0.1);
				back(&j, 4, 0.2);
				fetch(&j, 4);
			}
			for (int k = 0; k < 6; k++)
				update(&j);
		}
		wait(&j);
		tfh_result_free(judge(&j, 40, 0));
	}
}

/* Epochs with an evaluation behind each; five trials, each with a module of its own; without
 * copies. */
static void test_evaluation(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		struct job j = job_new();
		for (uint32_t epoch = 0; epoch < 5; epoch++) {
			j.module = kind == 1 ? epoch : 0;
			for (int i = 0; i < 20; i++) {
				if (kind < 2)
					up(&j, 100000);
				train(&j, 4, 0.3);
				fetch(&j, 4);
			}
			for (int i = 0; i < 7; i++) {
				if (kind < 2)
					up(&j, 100000);
				there(&j, 4, 0.3);
				fetch(&j, 400);
			}
		}
		struct tfh_result *r = judge(&j, 100, 0);
		assert_int_equal(evaluations(r), 5);
		tfh_result_free(r);
	}
}

/* Two updates of one network, one of the other: they are one step of the three, and four
 * batches whose gradients are gathered are one, too. */
static void test_in_turn(void **state)
{
	(void)state;
	struct job j = job_new();

	for (int i = 0; i < 40; i++) {
		for (int k = 0; k < 2; k++) {
			up(&j, 100000);
			kernel(&j, OTHER, 64, 0.5);
			kernel(&j, OTHER + 1, 64, 0.5);
			kernel(&j, OTHER + 2, 64, 0.1);
			kernel(&j, OTHER + 2, 64, 0.1);
		}
		up(&j, 8000);
		kernel(&j, F, 64, 1);
		kernel(&j, OTHER, 64, 0.5);
		kernel(&j, B, 64, 1);
		update(&j);
		fetch(&j, 4);
	}
	tfh_result_free(judge(&j, 40, 0));
	j = job_new();
	for (int i = 0; i < 80; i++) {
		up(&j, 100000);
		there(&j, 4, 0.2);
		back(&j, 4, 0.4);
		if (i % 4 == 3) {
			update(&j);
			fetch(&j, 4);
		}
	}
	struct tfh_result *r = judge(&j, 20, 0);
	assert_int_equal(r->pattern.inner, 4);
	assert_int_equal(evaluations(r), 0);
	tfh_result_free(r);
}

/* Three steps are the whole run. */
static void test_three(void **state)
{
	(void)state;
	struct job j = job_new();

	for (int i = 0; i < 3; i++) {
		up(&j, 1000);
		kernel(&j, F, 64, 1);
		fetch(&j, 4);
	}
	tfh_result_free(judge(&j, 3, 0));
}

/* What hardly comes again is no step: two fills in a long recording of other things. */
static void test_no_steps(void **state)
{
	(void)state;
	struct job j = job_new();

	for (int i = 0; i < 2000; i++) {
		kernel(&j, 1000 + (uint32_t)i / 3 + draw(&j, 40), 1 + draw(&j, 4000), 0.02);
		if (i % 400 == 0)
			for (int k = 0; k < 3; k++) {
				kernel(&j, OTHER, 1, 0.01);
				wait(&j);
			}
	}
	struct tfh_result *r = gen_judge(j.g);
	assert_int_equal(r->steps.clock, TFH_STEP_CLOCK_NONE);
	tfh_result_free(r);
}

/* A checkpoint is a batch, too: updates come every eighth batch, though one in 20 writes one. */
static void test_turns_and_checkpoints(void **state)
{
	(void)state;
	struct job j = job_new();

	for (int i = 0; i < 160; i++) {
		up(&j, 100000);
		there(&j, 4, 0.2);
		back(&j, 4, 0.4);
		if (i % 8 == 7)
			update(&j);
		fetch(&j, 4);
		if (i % 20 == 19) {
			gen_copy(j.g, TFH_FN_cuMemcpyDtoH_v2, j.now, j.now + 20, 100000000, true);
			j.now += 20;
		}
	}
	struct tfh_result *r = judge(&j, 160, 0);
	assert_int_equal(r->pattern.per_update, 8);
	tfh_result_free(r);
}

/* After every `every` steps a picture is rendered: a forward pass, read and written for 30 ms. Only names show that it is no step: without
 * them, it may be one whose update was skipped. */
static void pictures(int every, bool named, uint64_t steps)
{
	struct job j = job_new();

	for (uint32_t l = 0; l < 3; l++)
		j.g->name[TFT_NAME_FUNCTION][F + l] = "hash_encode";
	j.g->name[TFT_NAME_FUNCTION][B] = named ? "grad_scatter" : "scatter";
	j.g->name[TFT_NAME_FUNCTION][UPDATE] = named ? "adam" : "kernel_7";
	for (int i = 1; i <= 200; i++) {
		there(&j, 3, 0.5);
		kernel(&j, B, 64, 1);
		kernel(&j, UPDATE, 64, 0.3);
		fetch(&j, 4);
		if (i % every)
			continue;
		there(&j, 3, 0.5);
		fetch(&j, 5000000);
		j.now += 30;
	}
	struct tfh_result *r = gen_judge(j.g);
	assert_int_equal(r->steps.total, steps);
	tfh_result_free(r);
}

static void test_pictures(void **state)
{
	(void)state;
	pictures(10, true, 200);
	pictures(4, true, 200);
	pictures(10, false, 220);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_server),
		cmocka_unit_test(test_pictures),
		cmocka_unit_test(test_ragged),
		cmocka_unit_test(test_waits_inside),
		cmocka_unit_test(test_fetches_inside),
		cmocka_unit_test(test_scalars),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_launches),
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_reports),
		cmocka_unit_test(test_graphs),
		cmocka_unit_test(test_few_functions),
		cmocka_unit_test(test_inside_batches),
		cmocka_unit_test(test_evaluation),
		cmocka_unit_test(test_in_turn),
		cmocka_unit_test(test_no_steps),
		cmocka_unit_test(test_three),
		cmocka_unit_test(test_picture),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_turns_and_checkpoints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
