/* A slow step whose path is not known, because no digest has its exchanges, is put down to the rank that exceeded its own usual time
 * most, whatever its number; to none if no rank's excess explains half of the step's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ranks/ranks_parts.h"

enum { RANKS = 4 };

/* The rank that a step of 3 s is put down to, by the ranks' own times; a usual one is 1 s. */
static uint32_t rank_of(const double own_s[RANKS], double *over_s)
{
	struct tfh_ranks_host host = {.offset_s = NAN};
	struct tfh_ranks_in_step in[RANKS] = {{0}};
	struct tfh_ranks_rank rank[RANKS] = {{0}};
	struct tfh_ranks job = {.host = &host,
				.hosts = 1,
				.rank = rank,
				.n = RANKS,
				.steps_kept = 1,
				.asked = true,
				.usual_s = 1};

	for (uint32_t i = 0; i < RANKS; i++) {
		in[i] = (struct tfh_ranks_in_step){
			.end_ns = 3000000000, .wall_s = 3, .own_s = own_s[i]};
		rank[i].in_step = &in[i];
		rank[i].usual_s = 1;
	}
	assert_int_equal(tfh_ranks_find_steps(&job), 0);
	assert_int_equal(job.steps_kept, 1);
	*over_s = job.slowest[0].over_s;
	return job.slowest[0].rank;
}

static void test_slowest(void **state)
{
	double over;

	(void)state;
	assert_int_equal(rank_of((double[RANKS]){1, 2.2, 2.9, 2.5}, &over), 2);
	assert_true(fabs(over - 1.9) < 1e-9);
	assert_int_equal(rank_of((double[RANKS]){2.9, 2.2, 1, 1}, &over), 0);
	assert_int_equal(rank_of((double[RANKS]){1.5, 1.2, 1.9, 1}, &over), UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_slowest)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
