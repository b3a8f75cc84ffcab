/*
 * The segments of a process lie on one time line, in order of their numbers, even if some of them
 * have no clock readings and the rate in HEAD is a poor estimate. Consecutive chunks of which only
 * the sketches are left form one span; repeated state does not. Segments that do not exist are
 * missing, and the time of their records is a hole, even if a thread was idle around it; those with
 * sketches, or from before an exec, are not. A chunk with a valid header and an invalid payload
 * becomes a hole when a pass reaches it. How far readings of the clocks contradict each other is known, whether one is
 * too late or too early.
 */
#include "../../format/format_fixture.h"

#include <sys/stat.h>

#include "model/model.h"

#define SEGMENTS 12
/* The counter has run for hours before, at 2 GHz; HEAD says 0.01 % more. */
#define START (50000ull * 1000000000)
#define RATE 2ull
#define CALLS 100

static char dir[240];

static uint64_t ticks(uint64_t ns)
{
	return START + ns * RATE;
}

static struct tft_writer *segment(uint32_t n)
{
	struct tft_head h = sample_head();
	struct tft_writer *w;
	char path[512];

	h.segment = n;
	h.start_ticks = START;
	h.tick_hz = RATE * 1000100000ull;
	snprintf(path, sizeof(path), "%s/p.node7.4711.%u.tft", dir, n);
	assert_int_equal(tft_writer_create(path, NULL, &h, &w), 0);
	return w;
}

/* A call each millisecond, and state repeated from the start. */
static void calls(struct tft_writer *w, uint32_t n)
{
	struct tfh_rec rec[CALLS] = {{0}}, old = {.kind = TFT_CALL, .flags = TFT_F_REPEAT};
	struct tft_batch b = {rec, CALLS, 1, 7, (uint64_t)n * CALLS}, repeated = {&old, 1, 0, 0, n};

	old.t_begin = old.t_end = ticks(1000);
	old.seq = n;
	for (uint32_t i = 0; i < CALLS; i++) {
		uint64_t ns = ((uint64_t)n * CALLS + i + 1) * 1000000;
		rec[i].kind = TFT_CALL;
		rec[i].fn = TFH_FN_cuLaunchKernel;
		rec[i].seq = n * CALLS + i;
		rec[i].t_begin = ticks(ns - 500000);
		rec[i].t_end = ticks(ns);
	}
	assert_int_equal(tft_write_events(w, &repeated, 1, 0), 0);
	assert_int_equal(tft_write_events(w, &b, 1, 0), 0);
}

static void clocks(struct tft_writer *w, uint64_t ns)
{
	struct tft_clock_triple t = {ticks(ns), 7000 + ns, 1700000000000000000ull + ns};

	assert_int_equal(tft_write_clocks(w, &t, 1), 0);
}

static struct tfh_run *opened(void)
{
	const char *path = dir;
	struct tfh_run *run;
	struct tfh_err err = {0};

	if (tfh_run_open(&path, 1, &run, &err))
		fail_msg("%s", err.text);
	return run;
}

static void empty_directory(void)
{
	char command[1024];

	snprintf(command, sizeof(command), "rm -rf '%s' && mkdir '%s'", dir, dir);
	assert_int_equal(system(command), 0);
}

static void test_one_clock(void **state)
{
	struct tfh_merge *m;
	struct tfh_event ev;
	struct tfh_err err = {0};
	uint64_t n = 0;

	(void)state;
	empty_directory();
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		struct tft_writer *w = segment(i);
		if (i == 2 || i == 10)
			clocks(w, (uint64_t)i * CALLS * 1000000);
		calls(w, i);
		assert_int_equal(tft_writer_finish(w, i == SEGMENTS - 1), 0);
	}
	struct tfh_run *run = opened();
	assert_int_equal(tfh_merge_open(run, 0, &m, &err), 0);
	while (tfh_merge_next(m, &ev)) {
		int64_t want = (int64_t)(++n * 1000000);
		assert_true(ev.t1 - want < 1000 && want - ev.t1 < 1000);
		assert_int_equal(ev.number, n - 1);
	}
	assert_int_equal(n, SEGMENTS * CALLS);
	tfh_merge_close(m);
	tfh_run_close(run);
}

static int add(void *arg, const struct tfh_digest *d)
{
	uint64_t *seen = arg;

	*seen += d->launches;
	assert_int_equal(d->n_fn, 1);
	assert_string_equal(d->fn[0].fn->name, "cuLaunchKernel");
	assert_int_equal(d->fn[0].count, CALLS);
	assert_true(d->fn[0].ns / CALLS > 499000 && d->fn[0].ns / CALLS < 501000);
	return 0;
}

/* Segments 1 to 5 are deleted while 11 is written. */
static void test_discarded_spans(void **state)
{
	const struct tfh_discarded_span *s;
	uint64_t launches = 0;

	(void)state;
	test_one_clock(state);
	struct tft_writer *w = segment(SEGMENTS);
	calls(w, SEGMENTS);
	for (uint32_t i = 1; i <= 5; i++) {
		char path[512];
		struct tft_reader *r;
		struct tfh_err err;
		snprintf(path, sizeof(path), "%s/p.node7.4711.%u.tft", dir, i);
		assert_int_equal(tft_open(path, &r, &err), 0);
		assert_int_equal(tft_write_digest(w, r), 0);
		tft_close(r);
		unlink(path);
	}
	assert_int_equal(tft_writer_finish(w, true), 0);
	struct tfh_run *run = opened();
	assert_int_equal(tfh_run_discarded_spans(run, &s), 1);
	assert_int_equal(s->events, 5 * CALLS);
	/* The clock of segment 2 is gone with it: by one reading and the estimate, 0.01 % off. */
	assert_true(s->t0 > 101000000 - 300000 && s->t0 < 101000000 + 300000);
	assert_true(s->t1 > 600000000 - 300000 && s->t1 < 600000000 + 300000);
	assert_int_equal(tfh_run_digests(run, 0, add, &launches), 0);
	assert_int_equal(launches, 5 * CALLS);
	const struct tfh_hole *hole;
	assert_int_equal(tfh_run_holes(run, &hole), 0);
	tfh_run_close(run);
}

/* A call of thread 2 every 400 ms, the second of them in segment 4. */
static void idle_thread(struct tft_writer *w, uint32_t n)
{
	struct tfh_rec rec = {.kind = TFT_CALL, .fn = TFH_FN_cuLaunchKernel, .seq = n / 4};
	struct tft_batch b = {&rec, 1, 2, 8, n / 4};

	rec.t_begin = ticks((uint64_t)n * CALLS * 1000000 + 1000000);
	rec.t_end = ticks((uint64_t)n * CALLS * 1000000 + 2000000);
	assert_int_equal(tft_write_events(w, &b, 1, 0), 0);
}

static void test_missing(void **state)
{
	const struct tfh_hole *hole;
	const struct tfh_process *p;

	(void)state;
	empty_directory();
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		struct tft_writer *w = i == 3 || i == 4 || i == 9 ? NULL : segment(i);
		if (!w)
			continue;
		clocks(w, (uint64_t)i * CALLS * 1000000);
		calls(w, i);
		if (i % 4 == 0)
			idle_thread(w, i);
		assert_int_equal(tft_writer_finish(w, i == SEGMENTS - 1), 0);
	}
	struct tfh_run *run = opened();
	assert_int_equal(tfh_run_processes(run, &p), 1);
	assert_int_equal(p->segments, SEGMENTS - 3);
	assert_int_equal(p->segments_missing, 3);
	assert_int_equal(tfh_run_holes(run, &hole), 2);
	for (int i = 0; i < 2; i++) {
		bool first = hole[i].count > CALLS;
		int64_t t0 = first ? 300000000 : 900000000, t1 = first ? 501000000 : 1001000000;
		assert_int_equal(hole[i].count, first ? 2 * CALLS + 1 : CALLS);
		assert_in_range(hole[i].t0 - t0 + 1000, 0, 2000);
		assert_in_range(hole[i].t1 - t1 + 1000, 0, 2000);
	}
	tfh_run_close(run);
}

/* Two programs of one process: the numbers of files go on, those of records begin anew. */
static void test_exec(void **state)
{
	const struct tfh_hole *hole;
	const struct tfh_process *p;

	(void)state;
	empty_directory();
	for (uint32_t i = 0; i < 2; i++) {
		struct tft_head h = sample_head();
		struct tft_writer *w;
		char path[512];
		h.segment = i;
		h.start_ticks = START + i * 1000;
		h.tick_hz = RATE * 1000000000ull;
		snprintf(path, sizeof(path), "%s/p.node7.4711.%u.tft", dir, i);
		assert_int_equal(tft_writer_create(path, NULL, &h, &w), 0);
		calls(w, 0);
		assert_int_equal(tft_writer_finish(w, true), 0);
	}
	struct tfh_run *run = opened();
	assert_int_equal(tfh_run_processes(run, &p), 2);
	assert_int_equal(p[0].segments_missing + p[1].segments_missing, 0);
	assert_int_equal(tfh_run_holes(run, &hole), 0);
	tfh_run_close(run);
}

/* Turns a bit of the payload of a segment's last event chunk. */
static void damage(uint32_t n)
{
	struct tft_reader *r;
	struct tfh_err err;
	char path[512];

	snprintf(path, sizeof(path), "%s/p.node7.4711.%u.tft", dir, n);
	assert_int_equal(tft_open(path, &r, &err), 0);
	uint32_t i = tft_chunk_count(r) - 1;
	while (tft_chunk(r, i)->type != TFT_EVNT)
		i--;
	long at = (long)tft_chunk(r, i + 1)->offset - 3;
	tft_close(r);
	FILE *f = fopen(path, "r+");
	assert_non_null(f);
	assert_int_equal(fseek(f, at, SEEK_SET), 0);
	int c = fgetc(f);
	assert_int_equal(fseek(f, at, SEEK_SET), 0);
	fputc(c ^ 4, f);
	assert_int_equal(fclose(f), 0);
}

static void test_damaged_chunk(void **state)
{
	const struct tfh_process *process;
	const struct tfh_hole *hole;
	struct tfh_merge *m;
	struct tfh_event ev;
	struct tfh_err err = {0};

	(void)state;
	empty_directory();
	for (uint32_t i = 0; i < 4; i++) {
		struct tft_writer *w = segment(i);
		clocks(w, (uint64_t)i * CALLS * 1000000);
		calls(w, i);
		assert_int_equal(tft_writer_finish(w, i == 3), 0);
	}
	damage(2);
	struct tfh_run *run = opened();
	assert_int_equal(tfh_run_holes(run, &hole), 0);
	for (int pass = 0; pass < 2; pass++) {
		uint64_t n = 0;
		assert_int_equal(tfh_merge_open(run, 0, &m, &err), 0);
		while (tfh_merge_next(m, &ev))
			n += ev.kind == TFT_CALL;
		assert_int_equal(tfh_merge_error(m, &err), 0);
		tfh_merge_close(m);
		assert_int_equal(n, 3 * CALLS);
		assert_int_equal(tfh_run_holes(run, &hole), 1);
	}
	assert_int_equal(hole->count, CALLS);
	assert_true(hole->t0 >= 200 * 1000000 && hole->t0 <= 202 * 1000000);
	assert_true(hole->t1 >= 299 * 1000000 && hole->t1 <= 301 * 1000000);
	assert_int_equal(tfh_run_processes(run, &process), 1);
	assert_int_equal(process->bad_chunks, 1);
	tfh_run_close(run);
}

/* The second reading of five is 20 us late, or early; the same of the fourth and 50 us. */
static void test_clock_residual(void **state)
{
	static const int64_t off_ns[2][5] = {{0, 20000, 0, -50000, 0}, {0, -20000, 0, 50000, 0}};
	const struct tfh_process *process;

	(void)state;
	for (int k = 0; k < 2; k++) {
		empty_directory();
		struct tft_writer *w = segment(0);
		for (uint64_t i = 0; i < 5; i++) {
			uint64_t ns = i * 1000000000;
			struct tft_clock_triple t = {ticks(ns),
						     7000000 + ns + (uint64_t)off_ns[k][i], ns};
			assert_int_equal(tft_write_clocks(w, &t, 1), 0);
		}
		calls(w, 0);
		assert_int_equal(tft_writer_finish(w, true), 0);
		struct tfh_run *run = opened();
		assert_int_equal(tfh_run_processes(run, &process), 1);
		assert_int_equal(process->clock_residual_ns, 50000);
		tfh_run_close(run);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_damaged_chunk),
					   cmocka_unit_test(test_one_clock),
					   cmocka_unit_test(test_discarded_spans),
					   cmocka_unit_test(test_missing),
					   cmocka_unit_test(test_exec),
					   cmocka_unit_test(test_clock_residual)};

	test_path(dir, sizeof(dir), "segments");
	int rc = cmocka_run_group_tests(tests, NULL, NULL);
	empty_directory();
	rmdir(dir);
	return rc;
}
