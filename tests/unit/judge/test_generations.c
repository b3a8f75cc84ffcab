/* Which processes were started together: all ranks once more after one failed, with fewer ranks or more; but not the workers of a data
 * loader, nor a rank that was started again alone, nor ranks that begin late. The start whose ranks recorded most is judged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "judge/generations.h"

#define NONE TFH_NO_GENERATION

static struct tfh_process rank_of(int32_t rank, int32_t world, int64_t begin, int64_t end)
{
	return (struct tfh_process){.rank = rank,
				    .world = world,
				    .start_ns = begin,
				    .heard_ns = end,
				    .events = (uint64_t)(end - begin),
				    .has_tf = true};
}

static void expect(const struct tfh_process *p, const uint32_t *of, uint32_t n, uint32_t count,
		   uint32_t judged)
{
	struct tfh_generations g;

	assert_int_equal(tfh_generations_find(p, n, &g), 0);
	assert_int_equal(g.n, count);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(g.of[i], of[i]);
		assert_int_equal(tfh_generations_other(&g, i),
				 count > 1 && of[i] != NONE && of[i] != judged);
	}
	if (count)
		assert_int_equal(g.judged, judged);
	tfh_generations_free(&g);
}

static void started_once(void **state)
{
	/* Rank 2 begins late, one process has no rank, and rank 0 ended early. */
	const struct tfh_process p[] = {rank_of(0, 3, 10, 40), rank_of(1, 3, 12, 100),
					rank_of(-1, -1, 0, 100), rank_of(2, 3, 60, 100)};

	(void)state;
	expect(p, (uint32_t[]){0, 0, NONE, 0}, 4, 1, 0);
	expect(p, NULL, 0, 0, 0);
}

static void with_fewer(void **state)
{
	/* In no order, as files of a directory are; the first two of them have numbers of the first start. */
	const struct tfh_process p[] = {rank_of(1, 2, 61, 200), rank_of(0, 2, 60, 200),
					rank_of(0, 4, 10, 30),	rank_of(1, 4, 10, 50),
					rank_of(2, 4, 11, 50),	rank_of(3, 4, 11, 50)};

	(void)state;
	expect(p, (uint32_t[]){1, 1, 0, 0, 0, 0}, 6, 2, 1);
}

static void with_more(void **state)
{
	/* A rank that the first start did not have comes first; the first start did more. */
	const struct tfh_process p[] = {rank_of(0, 2, 10, 100), rank_of(1, 2, 10, 100),
					rank_of(2, 3, 110, 150), rank_of(0, 3, 111, 150),
					rank_of(1, 3, 111, 150)};

	(void)state;
	expect(p, (uint32_t[]){0, 0, 1, 1, 1}, 5, 2, 0);
}

static void twice(void **state)
{
	const struct tfh_process p[] = {rank_of(0, 2, 10, 30), rank_of(1, 2, 10, 30),
					rank_of(0, 2, 40, 60), rank_of(1, 2, 40, 60),
					rank_of(0, 2, 70, 90), rank_of(1, 2, 70, 90)};

	(void)state;
	expect(p, (uint32_t[]){0, 0, 1, 1, 2, 2}, 6, 3, 2); /* of equal ones the last */
}

static void workers(void **state)
{
	/* One after another, with the rank of the process that started them. */
	const struct tfh_process p[] = {rank_of(0, 2, 10, 100), rank_of(1, 2, 10, 100),
					rank_of(0, 2, 15, 30),	rank_of(0, 2, 35, 50),
					rank_of(1, 2, 35, 50),	rank_of(0, 2, 55, 70)};

	(void)state;
	expect(p, (uint32_t[]){0, 0, 0, 0, 0, 0}, 6, 1, 0);
}

static void one_alone(void **state)
{
	/* Rank 2 is started again while the others go on. */
	const struct tfh_process p[] = {rank_of(0, 3, 10, 100), rank_of(1, 3, 10, 100),
					rank_of(2, 3, 10, 40), rank_of(2, 3, 50, 100)};

	(void)state;
	expect(p, (uint32_t[]){0, 0, 0, 0}, 4, 1, 0);
}

static void one_stays(void **state)
{
	/* A process of the first start hangs until the end. */
	const struct tfh_process p[] = {rank_of(0, 4, 10, 30),	rank_of(1, 4, 10, 200),
					rank_of(2, 4, 10, 31),	rank_of(3, 4, 10, 31),
					rank_of(0, 2, 40, 190), rank_of(1, 2, 40, 190)};

	(void)state;
	expect(p, (uint32_t[]){0, 0, 0, 0, 1, 1}, 6, 2, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(started_once), cmocka_unit_test(with_fewer),
		cmocka_unit_test(with_more),	cmocka_unit_test(twice),
		cmocka_unit_test(workers),	cmocka_unit_test(one_alone),
		cmocka_unit_test(one_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
