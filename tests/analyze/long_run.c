/*
 * Writes the recording of a long run without running it: for memory and speed of the analysis.
 *
 *	long_run DIR STEPS LAUNCHES CLOCK [THREADS]
 *
 * Each step is a get-next, a copy to the device, LAUNCHES launches and a wait, by a few
 *microseconds each; every 50th step is three times as long. CLOCK: `iterator`; `period` (no
 *get-next); `mark` (no get-next, marked steps); `long` (as iterator, waits take 150 ms). THREADS:
 *so many threads come and go beside it, with one get-next stage call each.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fn.h"
#include "format/tft_write.h"

#define SEGMENT_BYTES (256ull << 20)
#define US 1000ull
#define START 1000000000000ull
#define MAIN 1
/* Records are handed over in chunks as the recorder does. */
#define CHUNK 65536

struct gen {
	const char *dir, *clock;
	struct tft_writer *w;
	uint32_t segment, n;
	struct tfh_rec rec[CHUNK];
	uint64_t number, t;
	uint64_t seed;
};

static void check(int rc, const char *what)
{
	if (rc) {
		fprintf(stderr, "%s: %s\n", what, strerror(-rc));
		exit(1);
	}
}

static uint64_t below(struct gen *g, uint64_t n)
{
	g->seed = g->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (g->seed >> 33) % n;
}

static void open_segment(struct gen *g)
{
	char path[4096];
	struct tft_head head = {.pid = 4711,
				.ppid = 1,
				.rank = -1,
				.world = -1,
				.local_rank = -1,
				.segment = g->segment,
				.host = "node",
				.exe = "/usr/bin/python3",
				.command = "python3 train.py",
				.boot_id = "1",
				.tfhook_version = "1",
				.job = "",
				.start_realtime_ns = 1700000000000000000ull,
				.start_ticks = START,
				.tick_hz = 1000000000ull,
				.ticks_are_ns = true,
				.fn = tfh_fn_table,
				.fn_count = TFH_FN_COUNT,
				.journal_path = ""};
	struct tft_clock_triple clock = {START, START, 1700000000000000000ull};

	snprintf(path, sizeof(path), "%s/p.node.4711.%u.tft", g->dir, g->segment++);
	check(tft_writer_create(path, NULL, &head, &g->w), path);
	check(tft_write_clocks(g->w, &clock, 1), path);
}

static void flush(struct gen *g, bool end)
{
	struct tft_batch b = {g->rec, g->n, MAIN, 4711, g->number - g->n};

	if (!g->w)
		open_segment(g);
	if (g->n)
		check(tft_write_events(g->w, &b, 1, 0), "write");
	g->n = 0;
	if (!end && tft_writer_bytes(g->w) < SEGMENT_BYTES)
		return;
	check(tft_writer_finish(g->w, end), "close");
	g->w = NULL;
}

static struct tfh_rec *call(struct gen *g, enum tfh_fn fn, uint64_t pause, uint64_t ns)
{
	if (g->n == CHUNK)
		flush(g, false);
	struct tfh_rec *r = &g->rec[g->n++];
	memset(r, 0, sizeof(*r));
	r->t_begin = g->t + pause;
	r->t_end = g->t = r->t_begin + ns;
	r->fn = (uint16_t)fn;
	r->kind = TFT_CALL;
	r->seq = (uint32_t)g->number++;
	r->ctx = 1;
	return r;
}

static void step(struct gen *g, uint64_t i, uint32_t launches)
{
	uint64_t slow = i % 50 == 49 ? 3 : 1;
	struct tfh_rec *r;

	if (!strcmp(g->clock, "mark")) {
		r = call(g, TFH_FN_mark_step, US, 0);
		r->kind = TFT_MARK;
		r->w[0] = i;
	} else if (strcmp(g->clock, "period")) {
		r = call(g, TFH_FN_tf_getnext_op, US, 5 * US * slow + below(g, US));
		r->w[0] = r->w[1] = 1;
	}
	r = call(g, TFH_FN_cuMemcpyHtoDAsync_v2, US, 2 * US);
	r->w[0] = 1 << 16;
	r->w[1] = 0x7f0000000000ull;
	r->w[2] = 0x560000000000ull;
	for (uint32_t k = 0; k < launches; k++) {
		r = call(g, TFH_FN_cuLaunchKernel, 500 + below(g, 200), US + below(g, 500));
		r->stream = 1;
		r->w[0] = 1 + k % 40;
		r->w[1] = 1 + k % 7;
		r->w[2] = 256;
	}
	r = call(g, TFH_FN_cuStreamSynchronize, US,
		 (strcmp(g->clock, "long") ? launches * US : 150000 * US) + below(g, 2 * US));
	r->stream = 1;
}

/* A thread that makes one call and ends. */
static void short_threads(struct gen *g, uint32_t n)
{
	for (uint32_t i = 0; i < n;) {
		struct tft_batch b[4096];
		struct tfh_rec rec[4096];
		uint32_t k = 0;
		for (; k < 4096 && i < n; k++, i++) {
			memset(&rec[k], 0, sizeof(rec[k]));
			rec[k].t_begin = g->t;
			rec[k].t_end = g->t += US;
			rec[k].fn = TFH_FN_cuLaunchKernel;
			rec[k].kind = TFT_CALL;
			b[k] = (struct tft_batch){&rec[k], 1, 2 + i, 5000 + i, 0};
		}
		check(tft_write_events(g->w, b, k, 0), "write");
	}
}

int main(int argc, char **argv)
{
	static struct gen g = {.t = START, .seed = 1};

	if (argc < 5)
		return 2;
	g.dir = argv[1];
	g.clock = argv[4];
	mkdir(g.dir, 0755);
	open_segment(&g);
	if (argc > 5)
		short_threads(&g, (uint32_t)strtoul(argv[5], NULL, 10));
	for (uint64_t i = 0, n = strtoull(argv[2], NULL, 10); i < n; i++)
		step(&g, i, (uint32_t)strtoul(argv[3], NULL, 10));
	flush(&g, true);
	return 0;
}
