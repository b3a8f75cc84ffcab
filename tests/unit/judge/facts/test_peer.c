/*
 * A job that waits at a socket before each copy to the device waits for a batch. But if it has fetched results since the copy
 * before, and the device of another process of the run does as much, both exchange results (a halo): it waits for that process,
 * and no gain is predicted, since the pace is that process's. It waits for a batch if either does not hold.
 */
#include "../devgen.h"

static struct tfh_process pair[2];
static uint64_t ops_of_peer;

static void gpu_of(void *arg, uint32_t p, struct tfh_gpu_info *out)
{
	dg_gpu(arg, 0, out);
	out->ops = p ? ops_of_peer : ((struct dg *)arg)->n;
}

/* Steps of 9 ms: 6 ms at the socket, a copy, 2 ms of computing, results. */
static struct tfh_result *judge(bool fetches, double peer)
{
	struct dg *d = dg_new();
	struct tfh_result *r = NULL;
	struct tfh_err err = {0};

	for (int i = 0; i < 120; i++) {
		gen_sample(d->g, 0, d->now[0] + fmod(i * 0.618, 1) * 6, TFT_STATE_SOCKET, 0, 10);
		dg_code(d, 0, 6);
		dg_copy(d, 0, 1, TFH_DIR_H2D, 1 << 16, 0.1);
		for (int k = 0; k < 4; k++)
			dg_launch(d, 0, 1, 0.5);
		if (fetches)
			dg_copy(d, 0, 1, TFH_DIR_D2H, 1 << 16, 0.1);
		dg_sync(d, 0, 1);
	}
	struct tfh_feed *f = dg_feed(d);
	pair[0] = pair[1] = d->g->process;
	pair[1].pid++;
	pair[1].events = 0;
	f->processes = pair;
	f->n_processes = 2;
	f->gpu = gpu_of;
	ops_of_peer = (uint64_t)(peer * (double)d->n);
	if (tfh_analyze_feed(f, &r, &err))
		print_error("%s\n", err.text);
	dg_free(d);
	assert_non_null(r);
	return r;
}

static void test_exchange(void **state)
{
	(void)state;
	struct tfh_result *r = judge(true, 1.01);

	gen_expect(r, TFH_CLASS_HOST_BOUND, TFH_CAUSE_HOST_WAIT);
	gen_part(r, TFH_PART_HOST, 6);
	const struct tfh_whatif *w = dg_whatif(r, TFH_REMOVE_HOST);
	assert_non_null(w);
	assert_non_null(w->no_bound);
	assert_true(isnan(w->step_s) && isnan(w->ceiling_speedup));
	w = dg_whatif(r, TFH_REMOVE_TRANSFER); /* its own copies */
	assert_true(!w || !w->no_bound);
	tfh_result_free(r);
}

static void test_batches(void **state)
{
	static const struct {
		bool fetches;
		double peer;
	} row[] = {{false, 1}, {true, 0}, {true, 0.5}};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct tfh_result *r = judge(row[i].fetches, row[i].peer);
		gen_expect(r, TFH_CLASS_INPUT_BOUND, TFH_CAUSE_INPUT_REMOTE);
		tfh_result_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_exchange),
					   cmocka_unit_test(test_batches)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
