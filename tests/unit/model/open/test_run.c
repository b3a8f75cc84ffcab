/* A run directory of two segments of one process and one of another: all records come once, in
 * order of end time, with names and copy directions resolved, pinned or pageable. The contents of
 * run.json and end.json are known; holes, samples and calls in flight are found; broken JSON and
 * foreign files cause no harm. A thread's memory does not depend on its index. */
#include <dirent.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/sample.h"
#include "format/tft_write.h"
#include "model/model.h"

#define TICKS_PER_US 3000ull
#define START 1000000000ull

static char dir[256];

static struct tft_head head_of(uint32_t pid, uint32_t segment)
{
	return (struct tft_head){.version = TFT_VERSION,
				 .pid = pid,
				 .ppid = 1,
				 .rank = -1,
				 .world = -1,
				 .local_rank = -1,
				 .segment = segment,
				 .host = "node1",
				 .exe = "python3",
				 .command = "python3 train.py",
				 .boot_id = "b",
				 .tfhook_version = "t",
				 .job = "",
				 .start_realtime_ns = 5000000000ull,
				 .start_ticks = START,
				 .tick_hz = TICKS_PER_US * 1000000,
				 .fn_count = TFH_FN_COUNT,
				 .fn = tfh_fn_table,
				 .journal_path = "",
				 .journal_start = pid * 10};
}

static uint64_t us(uint64_t n)
{
	return START + n * TICKS_PER_US;
}

static struct tfh_rec call(enum tfh_fn fn, uint64_t t0, uint64_t t1, uint64_t w0, uint64_t w1,
			   uint64_t w2)
{
	return (struct tfh_rec){.t_begin = us(t0),
				.t_end = us(t1),
				.fn = (uint16_t)fn,
				.kind = TFT_CALL,
				.w = {w0, w1, w2}};
}

static void write_clocks(struct tft_writer *w)
{
	/* the counter runs 50 parts in a million fast */
	struct tft_clock_triple t[3];

	for (uint64_t i = 0; i < 3; i++) {
		t[i].ticks = START + i * TICKS_PER_US * 1000000;
		t[i].monotonic_ns = 100000000000ull + i * 1000050000;
		t[i].realtime_ns = 5000000000ull + i * 1000050000;
	}
	assert_int_equal(tft_write_clocks(w, t, 3), 0);
}

static struct tft_writer *begin(const char *name, uint32_t pid, uint32_t segment)
{
	struct tft_head h = head_of(pid, segment);
	struct tft_writer *w;
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(tft_writer_create(path, NULL, &h, &w), 0);
	write_clocks(w);
	return w;
}

static void events(struct tft_writer *w, uint32_t thread, uint64_t first, const struct tfh_rec *r,
		   uint32_t n)
{
	struct tft_batch b = {
		.records = r, .count = n, .thread = thread, .tid = 100 + thread, .first = first};

	assert_int_equal(tft_write_events(w, &b, 1, 7), 0);
}

static void text_file(const char *name, const char *text)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void first_segment(void)
{
	struct tft_writer *w = begin("p.node1.50.0.tft", 50, 0);
	struct tfh_rec name[3] = {0}, main_thread[4], other[2];
	const char *text =
		"Iterator::Root::Prefetch::ParallelMapV2::BatchV2"; /* 48 bytes: two EXT records */

	name[0] = (struct tfh_rec){.t_begin = us(1),
				   .t_end = us(1),
				   .fn = TFT_NAME_STAGE,
				   .kind = TFT_NAME,
				   .flags = TFT_F_EXT,
				   .stream = 5,
				   .w = {77, 0, strlen(text)}};
	for (int i = 0; i < 2; i++) {
		name[1 + i] = (struct tfh_rec){.t_begin = us(1),
					       .t_end = us(1),
					       .fn = (uint16_t)i,
					       .kind = TFT_EXT,
					       .result = (uint16_t)(strlen(text) - 36 * (size_t)i)};
		char *at = (char *)&name[1 + i] + offsetof(struct tfh_rec, stream);
		memcpy(at, text + 36 * i, strlen(text + 36 * i) < 36 ? strlen(text + 36 * i) : 36);
	}
	events(w, 1, 0, name, 3);
	main_thread[0] = call(TFH_FN_cuMemAlloc_v2, 10, 11, 4096, 0x1000, 0);
	main_thread[1] = call(TFH_FN_cuMemHostAlloc, 12, 13, 4096, 0x900000, 0);
	main_thread[2] =
		call(TFH_FN_cuMemcpy, 20, 30, 100, 0x1010, 0x900100); /* pinned to device */
	main_thread[3] =
		call(TFH_FN_cuMemcpyDtoH_v2, 40, 60, 100, 0x700000, 0x1010); /* to pageable */
	main_thread[0].kind = main_thread[1].kind = TFT_ALLOC;
	events(w, 1, 3, main_thread, 4);
	other[0] = call(TFH_FN_cuLaunchKernel, 5, 25, 9, 0, 0);
	other[1] = call(TFH_FN_tf_stage_getnext, 41, 59, 0, 5, 6 * TICKS_PER_US);
	events(w, 2, 0, other, 2);
	struct tft_loss loss = {
		.thread = 2, .cause = 1, .count = 7, .t_first = us(70), .t_last = us(90)};
	assert_int_equal(tft_write_loss(w, &loss, 1, 7), 0);
	struct {
		struct tft_sample s;
		struct tft_sample_thread t[6];
	} sample = {{us(0), 1000, 0, 0, 0, 2, 6},
		    {{1, 101, 0, 500},
		     {TFT_SAMPLE_NO_THREAD, TFT_SAMPLE_FAULTS, 100, 9000000000},
		     {TFT_SAMPLE_NO_THREAD, TFT_SAMPLE_SYSTEM, 1000000, 800},
		     {TFT_SAMPLE_NO_THREAD, TFT_SAMPLE_MEMORY, 5000000, 4096},
		     {TFT_SAMPLE_NO_THREAD, TFT_SAMPLE_IO_BYTES, 7000, 800},
		     {TFT_SAMPLE_NO_THREAD, TFT_SAMPLE_IO_CALLS, 70, 8}}};
	assert_int_equal(tft_write_chunk(w, TFT_SAMP, &sample, sizeof(sample)), 0);
	sample.s.ticks = us(1000000);
	sample.s.cpu_ns = 500001000;
	sample.t[1].run_ns = 350;
	sample.t[2].run_ns = 21000000;
	sample.t[4].run_ns = 9000;
	sample.t[5].delay_ns = 11;
	assert_int_equal(tft_write_chunk(w, TFT_SAMP, &sample, sizeof(sample)), 0);
	static const char note[] =
		"journal=x\nunhooked=cuNewThing\nunhooked=cuOther\nunhooked=cuNewThing\n";
	assert_int_equal(tft_write_chunk(w, TFT_NOTE, note, sizeof(note) - 1), 0);
	assert_int_equal(tft_writer_finish(w, false), 0);
}

static void second_segment(void)
{
	struct tft_writer *w = begin("p.node1.50.1.tft", 50, 1);
	struct tfh_rec r[3], repeated = call(TFH_FN_cuMemAlloc_v2, 95, 95, 4096, 0x1000, 0), open;

	repeated.kind = TFT_ALLOC;
	repeated.flags = TFT_F_REPEAT;
	events(w, 0, 0, &repeated, 1);
	r[0] = call(TFH_FN_cuMemcpyDtoH_v2, 40, 60, 100, 0x700000,
		    0x1010); /* is in the first segment, too */
	r[1] = call(TFH_FN_cuMemFreeHost, 100, 101, 0, 0x900000, 0);
	r[2] = call(TFH_FN_cuMemcpyHtoDAsync_v2, 110, 120, 50, 0x1000,
		    0x900100); /* no longer pinned */
	events(w, 1, 6, r, 3);
	open = (struct tfh_rec){.t_begin = us(130),
				.t_end = us(5000130),
				.fn = TFH_FN_cuCtxSynchronize,
				.kind = TFT_OPEN,
				.ctx = 1,
				.w = {0, 101, 0}};
	events(w, TFT_THREAD_SALVAGE, 0, &open, 1);
	assert_int_equal(tft_writer_finish(w, true), 0);
}

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "%s/tfh-model-XXXXXX",
		 getenv("TFH_TMP") ? getenv("TFH_TMP") : "/tmp");
	assert_non_null(mkdtemp(dir));
	first_segment();
	second_segment();
	struct tft_writer *w = begin("p.node1.60.0.tft", 60, 0);
	struct tfh_rec r = call(TFH_FN_cuLaunchKernel, 31, 35, 1, 0, 0);
	events(w, 1, 0, &r, 1);
	assert_int_equal(tft_writer_finish(w, true), 0);
	text_file("foreign.tft", "not a trace");
	text_file(
		"run.json",
		"{ \"schema\": \"tfhook.run/1\", \"env\": {\"command\": [\"no\"], \"a\": \"}\"},\n"
		" \"command\": [\"python3\", \"a \\\"b\\\" \\u00e9\", \"--x\"], \"host\": "
		"\"node1\" }");
	text_file("end.json", "{\"how\": \"signal\", \"code\": null, \"signal\": 9, \"pid\": 50, "
			      "\"wall_s\": 12.5}");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[600];
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		unlink(path);
	}
	closedir(d);
	return rmdir(dir);
}

static struct tfh_run *open_run(void)
{
	const char *paths[] = {dir};
	struct tfh_run *run = NULL;
	struct tfh_err err = {0};

	if (tfh_run_open(paths, 1, &run, &err))
		print_error("%s\n", err.text);
	assert_non_null(run);
	return run;
}

static void test_what_is_said(void **state)
{
	(void)state;
	struct tfh_run *run = open_run();
	const char *const *argv;
	const struct tfh_process *p;
	const struct tfh_hole *hole;
	const struct tfh_sample *sample;
	const struct tfh_in_flight *flight;
	int number;

	assert_int_equal(tfh_run_command(run, &argv), 3);
	assert_string_equal(argv[0], "python3");
	assert_string_equal(argv[1], "a \"b\" \xc3\xa9");
	assert_int_equal(tfh_run_end(run, &number), TFH_END_SIGNAL);
	assert_int_equal(number, 9);
	assert_int_equal(tfh_run_wall_ns(run), 12500000000ll);
	assert_string_equal(tfh_run_host(run), "node1");
	assert_int_equal(tfh_run_processes(run, &p), 2);
	assert_int_equal(p[0].pid, 50);
	assert_int_equal(p[0].segments, 2);
	assert_int_equal(p[0].dropped, 7);
	assert_true(p[0].has_gpu && p[0].has_tf && p[1].has_gpu && !p[1].has_tf);
	assert_int_equal(tfh_run_holes(run, &hole), 1);
	assert_int_equal(hole[0].count, 7);
	assert_int_equal(tfh_run_samples(run, 0, &sample), 2);
	assert_true(sample[1].cpu_s > 0.4999 && sample[1].cpu_s < 0.5001);
	assert_int_equal(sample[1].faults, 250);
	assert_float_equal(sample[1].fault_s, 800e-9, 1e-12);
	assert_float_equal(sample[1].system_s, 0.02, 1e-9);
	assert_int_equal(sample[1].io_bytes, 2000);
	assert_int_equal(sample[1].io_calls, 3);
	assert_int_equal(sample[1].resident_bytes, 5000000);
	assert_int_equal(sample[1].page_bytes, 4096);
	assert_true(sample[1].run_delay_s < 1); /* what is no thread's is no waiting */
	const char *const *unhooked;
	assert_int_equal(tfh_run_unhooked(run, &unhooked), 2);
	assert_int_equal(tfh_run_in_flight(run, &flight), 1);
	assert_string_equal(flight[0].fn, "cuCtxSynchronize");
	assert_true(flight[0].open_s > 4.99 && flight[0].open_s < 5.01);
	tfh_run_close(run);
}

/* Twice: a second pass over the same run gives the same. */
static void test_one_time_line(void **state)
{
	(void)state;
	static const struct {
		enum tfh_fn fn;
		double t1_us;
		int dir, pageable;
	} expected[] = {
		{TFH_FN_cuMemAlloc_v2, 11, 0, 0},
		{TFH_FN_cuMemHostAlloc, 13, 0, 0},
		{TFH_FN_cuLaunchKernel, 25, 0, 0},
		{TFH_FN_cuMemcpy, 30, TFH_DIR_H2D, 0},
		{TFH_FN_tf_stage_getnext, 59, 0, 0},
		{TFH_FN_cuMemcpyDtoH_v2, 60, TFH_DIR_D2H, 1},
		{TFH_FN_cuMemFreeHost, 101, 0, 0},
		{TFH_FN_cuMemcpyHtoDAsync_v2, 120, TFH_DIR_H2D, 1},
		{TFH_FN_cuCtxSynchronize, 5000130, 0, 0},
	};
	struct tfh_run *run = open_run();

	for (int pass = 0; pass < 2; pass++) {
		struct tfh_merge *m;
		struct tfh_event ev;
		size_t n = 0;
		assert_int_equal(tfh_merge_open(run, 0, &m, NULL), 0);
		for (; tfh_merge_next(m, &ev); n++) {
			assert_true(n < sizeof(expected) / sizeof(*expected));
			assert_string_equal(ev.fn->name, tfh_fn_table[expected[n].fn].name);
			double want = expected[n].t1_us * 1000 * 1.00005;
			assert_true((double)ev.t1 > want - 3 && (double)ev.t1 < want + 3);
			assert_int_equal(ev.dir, expected[n].dir);
			assert_int_equal(ev.pageable, expected[n].pageable);
			if (ev.fn->family == TFH_FAM_STAGE) {
				assert_string_equal(
					tfh_run_name(run, 0, TFT_NAME_STAGE, (uint32_t)ev.w[1],
						     NULL, NULL),
					"Iterator::Root::Prefetch::ParallelMapV2::BatchV2");
				assert_true(ev.w[2] > 5990 &&
					    ev.w[2] < 6010); /* ticks have become nanoseconds */
			}
		}
		assert_int_equal(n, sizeof(expected) / sizeof(*expected));
		assert_int_equal(tfh_merge_error(m, NULL), 0);
		tfh_merge_close(m);
	}
	/* all processes together */
	struct tfh_merge *m;
	struct tfh_event ev;
	int64_t last = 0;
	size_t n = 0;
	assert_int_equal(tfh_merge_open(run, UINT32_MAX, &m, NULL), 0);
	for (; tfh_merge_next(m, &ev); n++, last = ev.t1)
		assert_true(ev.t1 >= last);
	assert_int_equal(n, sizeof(expected) / sizeof(*expected) + 1);
	tfh_merge_close(m);
	tfh_run_close(run);
}

/* Closed before its end, a pass gives everything back. */
static void test_early_close(void **state)
{
	(void)state;
	struct tfh_run *run = open_run();
	struct tfh_merge *m;
	struct tfh_event ev;

	assert_int_equal(tfh_merge_open(run, 0, &m, NULL), 0);
	assert_true(tfh_merge_next(m, &ev));
	tfh_merge_close(m);
	tfh_run_close(run);
}

static void test_nothing_there(void **state)
{
	(void)state;
	const char *none[] = {"/nonexistent/tfhook"};
	char foreign[600];
	const char *file[] = {foreign};
	struct tfh_run *run;
	struct tfh_err err;

	snprintf(foreign, sizeof(foreign), "%s/foreign.tft", dir);
	assert_int_not_equal(tfh_run_open(none, 1, &run, &err), 0);
	assert_int_not_equal(tfh_run_open(file, 1, &run, &err), 0);
	assert_true(strlen(err.text) > 0);
}

/* Four files of one call each by a process' millionth thread. */
static void test_late_thread(void **state)
{
	const struct tfh_thread_info *thread;
	struct tfh_rec rec = {.t_begin = us(1), .t_end = us(2), .kind = TFT_CALL};
	const char *path = dir;
	struct tfh_run *run;
	struct tfh_err err = {0};
	char command[1024], name[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s' && mkdir '%s'", dir, dir);
	assert_int_equal(system(command), 0);
	for (uint32_t i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "p.node1.%u.0.tft", 90 + i);
		struct tft_writer *w = begin(name, 90 + i, 0);
		events(w, (1 << 20) - 1, 0, &rec, 1);
		assert_int_equal(tft_writer_finish(w, true), 0);
	}
	struct mallinfo2 before = mallinfo2();
	assert_int_equal(tfh_run_open(&path, 1, &run, &err), 0);
	struct mallinfo2 after = mallinfo2();
	assert_true(after.uordblks + after.hblkhd < before.uordblks + before.hblkhd + (4 << 20));
	assert_int_equal(tfh_run_threads(run, &thread), 4);
	assert_int_equal(thread[3].index, (1 << 20) - 1);
	tfh_run_close(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_said), cmocka_unit_test(test_one_time_line),
		cmocka_unit_test(test_early_close),  cmocka_unit_test(test_nothing_there),
		cmocka_unit_test(test_late_thread),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
