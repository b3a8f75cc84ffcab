/*
 * Every pass over a process' events is the same, whatever an earlier one has left: the first chunks
 * unpacked, up to a bound, also after passes that stopped early and passes over other processes.
 * Ticks are converted alike one by one and many at once.
 */
#include "../../format/format_fixture.h"

#include <sys/stat.h>

#include "model/opened.h"
#include "model/timeline/ticks.h"

#define CHUNKS 32
#define CALLS 200
#define TEXTS 60000 /* fill a chunk with 3 MB that no event comes of */
#define KEPT (64u << 20)

static char dir[240];

static void write_chunk(struct tft_writer *w, uint32_t number)
{
	static struct tfh_rec rec[CALLS + TEXTS];
	struct tft_batch b = {rec, CALLS + TEXTS, 1, 4711, number * (CALLS + TEXTS)};

	memset(rec, 0, sizeof(rec));
	for (uint32_t i = 0; i < CALLS + TEXTS; i++) {
		rec[i].t_begin = 1000 * (number * CALLS + (i < CALLS ? i : CALLS - 1)) + 1;
		rec[i].t_end = rec[i].t_begin + 10 + i % 7 * (i < CALLS);
		rec[i].fn = i < CALLS && i % 3 ? TFH_FN_cuLaunchKernel : TFH_FN_cuCtxSynchronize;
		rec[i].kind = i < CALLS ? TFT_CALL : TFT_EXT;
		rec[i].seq = b.first + i;
		for (uint32_t k = 0; k < 3 && i >= CALLS; k++)
			rec[i].w[k] = i * 0x9e3779b97f4a7c15ull + k;
	}
	assert_int_equal(tft_write_events(w, &b, 1, 0), 0);
}

static void write_process(uint32_t pid, uint32_t chunks)
{
	struct tft_clock_triple clock[2] = {{0, 7, 1700000000000000000ull},
					    {1ull << 33, (1ull << 33) + 7, 1700000008589934592ull}};
	struct tft_head h = sample_head();
	struct tft_writer *w;
	char path[300];

	h.pid = pid;
	h.segment = 0;
	h.start_ticks = 0;
	h.tick_hz = 1000000000;
	h.ticks_are_ns = true;
	snprintf(path, sizeof(path), "%s/p.node7.%u.0.tft", dir, pid);
	assert_int_equal(tft_writer_create(path, NULL, &h, &w), 0);
	assert_int_equal(tft_write_clocks(w, clock, 2), 0);
	for (uint32_t i = 0; i < chunks; i++)
		write_chunk(w, i);
	assert_int_equal(tft_writer_finish(w, true), 0);
}

/* Reads up to `most` events; what they hold goes into *sum. Returns their number. */
static uint32_t read_events(struct tfh_run *run, uint32_t process, uint32_t most, uint64_t *sum)
{
	struct tfh_err err = {0};
	struct tfh_merge *m;
	struct tfh_event ev;
	uint32_t n = 0;

	*sum = 0;
	assert_int_equal(tfh_merge_open(run, process, &m, &err), 0);
	for (; n < most && tfh_merge_next(m, &ev); n++)
		*sum = *sum * 31 + (uint64_t)ev.t0 * 7 + (uint64_t)ev.t1 * 5 + ev.number +
		       ev.fn->family;
	assert_int_equal(tfh_merge_error(m, &err), 0);
	tfh_merge_close(m);
	assert_true(run->kept_bytes <= KEPT);
	return n;
}

static void test_passes(void **state)
{
	(void)state;
	static const uint32_t stops[] = {UINT32_MAX,	 1,	     UINT32_MAX, 7 * CALLS,
					 17 * CALLS + 3, UINT32_MAX, UINT32_MAX};
	const char *path = dir;
	struct tfh_err err = {0};
	uint64_t first, sum, part, small;
	struct tfh_run *run;

	mkdir(dir, 0755);
	write_process(4711, CHUNKS);
	write_process(4712, 3);
	assert_int_equal(tfh_run_open(&path, 1, &run, &err), 0);
	assert_int_equal(read_events(run, 0, UINT32_MAX, &first), CHUNKS * CALLS);
	assert_true(run->kept_bytes > KEPT / 2);
	assert_true(run->proc[0].chunk[0].unpacked && !run->proc[0].chunk[CHUNKS - 1].unpacked);
	for (size_t i = 0; i < sizeof(stops) / sizeof(*stops); i++) {
		uint32_t n = read_events(run, 0, stops[i], &sum);
		assert_int_equal(n, stops[i] < CHUNKS * CALLS ? stops[i] : CHUNKS * CALLS);
		if (n == CHUNKS * CALLS)
			assert_true(sum == first);
		else
			part = sum;
		if (n < CHUNKS * CALLS && read_events(run, 0, n, &sum) == n)
			assert_true(sum == part);
		if (i == 4) {
			assert_int_equal(read_events(run, 1, UINT32_MAX, &small), 3 * CALLS);
			assert_null(run->proc[0].chunk[0].unpacked);
			assert_non_null(run->proc[1].chunk[2].unpacked);
		}
	}
	tfh_run_close(run);
}

static void test_ticks(void **state)
{
	(void)state;
	uint64_t ticks[64], seed = 1;
	int64_t ns[64];

	for (uint32_t k = 0; k < 2000; k++) {
		struct tfh_tick_line l = {k % 50, (int64_t)(k * 1234567) - 1000000,
					  0.2 + k % 97 * 0.21};
		uint32_t n = k % 65;
		bool within = k % 5;
		for (uint32_t i = 0; i < n; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			ticks[i] = (l.block << TFH_LINE_BITS) +
				   (seed >> 20) % (1u << (TFH_LINE_BITS + !within));
		}
		bool all = true;
		for (uint32_t i = 0; i < n; i++)
			all &= ticks[i] >> TFH_LINE_BITS == l.block;
		if (!tfh_ticks_ns(&l, ticks, n, ns)) {
			assert_true(!all || l.rate >= 16);
			continue;
		}
		assert_true(all);
		for (uint32_t i = 0; i < n; i++)
			assert_true(ns[i] == tfh_tick_ns(&l, ticks[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_passes),
					   cmocka_unit_test(test_ticks)};
	char command[300];

	test_path(dir, sizeof(dir), "passes");
	int rc = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command) ? 1 : rc;
}
