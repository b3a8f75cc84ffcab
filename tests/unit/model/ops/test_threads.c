/*
 * CUPTI identifies the threads of its records by pthread_self(), and the thread's name record,
 * which may come long after its first calls, tells which thread that is. In a first pass over ops,
 * the calls of two threads cannot be told apart until then; once a pass over the events has read
 * the names, every op has its call from the first one on.
 */
#include "../../format/format_fixture.h"

#include <sys/stat.h>

#include "format/table.h"
#include "model/ops/ops.h"

#define MS 1000000ull
#define CALLS 1500
#define NAMED 1400 /* the names come behind so many calls of each thread: 14 s */
#define PTHREAD(thread) (0x5000u + (thread))

static char dir[240];

/* Call i of a thread: each 10 ms, the second thread's a little later. */
static uint64_t begin_of(uint32_t thread, uint32_t i)
{
	return (i + 1) * 10 * MS + thread * MS / 100;
}

static void write_calls(struct tft_writer *w, uint32_t first, uint32_t n)
{
	static struct tfh_rec rec[2][CALLS];
	struct tft_batch b[2];

	memset(rec, 0, sizeof(rec));
	for (uint32_t t = 0; t < 2; t++) {
		for (uint32_t k = 0; k < n; k++) {
			rec[t][k].t_begin = begin_of(t + 1, first + k);
			rec[t][k].t_end = rec[t][k].t_begin + MS;
			rec[t][k].fn = TFH_FN_cuLaunchKernel;
			rec[t][k].kind = TFT_CALL;
			rec[t][k].seq = first + k;
		}
		b[t] = (struct tft_batch){rec[t], n, t + 1, 4711 + t, first};
	}
	assert_int_equal(tft_write_events(w, b, 2, 0), 0);
}

static void write_names(struct tft_writer *w)
{
	struct tfh_rec rec[4] = {{0}};
	struct tft_batch b = {rec, 4, 0, 0, 0};

	for (uint32_t t = 0; t < 2; t++) {
		struct tfh_rec *name = &rec[2 * t], *text = name + 1;
		name->kind = TFT_NAME;
		name->fn = TFT_NAME_THREAD;
		name->flags = TFT_F_EXT;
		name->stream = t + 1;
		name->w[0] = 4711 + t;
		name->w[1] = PTHREAD(t + 1);
		name->w[2] = text->result = 1;
		text->kind = TFT_EXT;
		text->stream = 'a' + t;
		for (uint32_t i = 0; i < 2; i++) {
			name[i].seq = 2 * t + i;
			name[i].t_begin = name[i].t_end = begin_of(2, NAMED) - MS;
		}
	}
	assert_int_equal(tft_write_events(w, &b, 1, 0), 0);
}

static void write_table(struct tft_writer *w, uint32_t type, const struct tft_table *t,
			const void *rows, const struct tft_gpu_span *span)
{
	struct tft_table_pair pair[2] = {{0, 0}, {100000 * MS, 100000 * MS}};
	struct tft_table_extra extra = {.heap = "\0k",
					.heap_bytes = 3,
					.pair = pair,
					.pairs = 2,
					.span = span,
					.spans = span != NULL};
	void *out = malloc(tft_table_bound(t, 2 * CALLS, &extra));

	assert_non_null(out);
	size_t n = tft_table_pack(t, rows, 2 * CALLS, &extra, out);
	assert_int_equal(tft_write_chunk(w, type, out, (uint32_t)n), 0);
	free(out);
}

/* CUPTI's record lies within the call; the op runs behind it. Both threads' calls overlap, so times
 * alone do not tell them apart. */
static void write_device(struct tft_writer *w)
{
	static struct tft_gpu_row op[2 * CALLS];
	static struct tft_drvr_row call[2 * CALLS];
	struct tft_gpu_span span = {0, 100000 * MS, TFT_GPU_SPAN_NODES};

	for (uint32_t i = 0; i < 2 * CALLS; i++) {
		uint64_t t = begin_of(i % 2 + 1, i / 2);
		call[i] = (struct tft_drvr_row){.start = t + 1000,
						.end = t + MS - 1000,
						.correlation = i + 1,
						.tid = PTHREAD(i % 2 + 1)};
		op[i] = (struct tft_gpu_row){.start = t + 2 * MS,
					     .end = t + 3 * MS,
					     .correlation = i + 1,
					     .kind = TFH_OP_KERNEL,
					     .name = 1};
	}
	write_table(w, TFT_GPUS, &tft_gpus, op, &span);
	write_table(w, TFT_DRVR, &tft_drvr, call, NULL);
}

static void write_run(void)
{
	struct tft_clock_triple clock[2] = {{0, 7, 1700000000000000000ull},
					    {100000 * MS, 100000 * MS + 7, 1700000100000000000ull}};
	struct tft_head h = sample_head();
	struct tft_writer *w;
	char path[300];

	mkdir(dir, 0755);
	h.segment = 0;
	h.start_ticks = 0;
	h.tick_hz = 1000 * MS;
	h.ticks_are_ns = true;
	snprintf(path, sizeof(path), "%s/p.node7.4711.0.tft", dir);
	assert_int_equal(tft_writer_create(path, NULL, &h, &w), 0);
	assert_int_equal(tft_write_clocks(w, clock, 2), 0);
	write_calls(w, 0, NAMED);
	write_names(w);
	write_calls(w, NAMED, CALLS - NAMED);
	write_device(w);
	assert_int_equal(tft_writer_finish(w, true), 0);
}

/* Ops that have the call with their own number. */
static uint32_t joined(struct tfh_run *run)
{
	struct tfh_err err = {0};
	struct tfh_ops *ops;
	struct tfh_op op;
	uint32_t n = 0, all = 0;

	assert_int_equal(tfh_ops_open(run, 0, &ops, &err), 0);
	for (; tfh_ops_next(ops, &op); all++) {
		uint32_t i = op.correlation - 1;
		if (op.call == UINT64_MAX)
			continue;
		assert_int_equal(op.call, i / 2);
		assert_int_equal(op.issue0, (int64_t)begin_of(i % 2 + 1, i / 2) + op.t0 -
						    (int64_t)(begin_of(i % 2 + 1, i / 2) + 2 * MS));
		n++;
	}
	assert_int_equal(tfh_ops_error(ops, &err), 0);
	assert_int_equal(all, 2 * CALLS);
	tfh_ops_close(ops);
	return n;
}

static void test_names_behind(void **state)
{
	const char *path = dir;
	struct tfh_err err = {0};
	struct tfh_merge *m;
	struct tfh_event ev;
	struct tfh_run *run;

	(void)state;
	write_run();
	assert_int_equal(tfh_run_open(&path, 1, &run, &err), 0);
	assert_true(joined(run) < 2 * CALLS);
	assert_int_equal(tfh_merge_open(run, 0, &m, &err), 0);
	while (tfh_merge_next(m, &ev))
		;
	tfh_merge_close(m);
	for (int pass = 0; pass < 2; pass++)
		assert_int_equal(joined(run), 2 * CALLS);
	tfh_run_close(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names_behind)};
	char command[300];

	test_path(dir, sizeof(dir), "threads");
	int rc = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command) ? 1 : rc;
}
