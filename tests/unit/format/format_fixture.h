/* Random and realistic records, files made of them, and their comparison. */
#ifndef FORMAT_FIXTURE_H
#define FORMAT_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/fn.h"
#include "format/tft_read.h"
#include "format/tft_write.h"

static uint64_t fixture_seed = 0x9e3779b97f4a7c15ull;

static inline uint64_t rnd(void)
{
	fixture_seed ^= fixture_seed << 13;
	fixture_seed ^= fixture_seed >> 7;
	fixture_seed ^= fixture_seed << 17;
	return fixture_seed;
}

static inline uint64_t below(uint64_t n)
{
	return (rnd() >> 11) % n;
}

/* Every byte random. */
static inline void random_record(struct tfh_rec *r, uint32_t seq)
{
	uint64_t *w = (uint64_t *)r;

	for (int i = 0; i < 8; i++)
		w[i] = rnd() ^ rnd() << 32;
	r->kind = (uint8_t)below(256);
	r->seq = seq;
}

/* A host call as jobs make them. */
static inline void call_record(struct tfh_rec *r, uint64_t *t, uint32_t seq)
{
	memset(r, 0, sizeof(*r));
	r->t_begin = *t + 1000 + below(5000);
	r->t_end = r->t_begin + 500 + below(3000);
	*t = r->t_end;
	r->fn = (uint16_t)(1 + below(12));
	r->kind = TFT_CALL;
	r->seq = seq;
	r->stream = (uint32_t)below(3);
	r->ctx = 1;
	r->w[0] = below(40);
	r->w[1] = below(5) ? 7 : rnd();
	r->w[2] = 256;
}

static inline const char *test_dir(void)
{
	const char *dir = getenv("TFH_TMP");

	return dir ? dir : "/tmp";
}

static inline void test_path(char *path, size_t size, const char *name)
{
	snprintf(path, size, "%s/tft-%d-%s", test_dir(), (int)getpid(), name);
}

static inline struct tft_head sample_head(void)
{
	return (struct tft_head){.pid = 4711,
				 .ppid = 4710,
				 .rank = 3,
				 .world = 8,
				 .local_rank = -1,
				 .segment = 2,
				 .host = "node7",
				 .exe = "/usr/bin/python3",
				 .command = "python3 train.py --epochs 3",
				 .boot_id = "5a1e",
				 .tfhook_version = "0.1.0",
				 .job = "12.0",
				 .start_realtime_ns = 1700000000000000000ull,
				 .start_ticks = 123456789,
				 .tick_hz = 2600000000ull,
				 .fn = tfh_fn_table,
				 .fn_count = TFH_FN_COUNT,
				 .journal_path = "/dev/shm/x",
				 .journal_start = 99};
}

static inline struct tft_writer *new_file(const char *path)
{
	struct tft_head head = sample_head();
	struct tft_writer *w;

	unlink(path);
	assert_int_equal(tft_writer_create(path, NULL, &head, &w), 0);
	return w;
}

/* Reads all events of a chunk into `out`, in order of runs. */
static inline uint32_t read_chunk(struct tft_reader *r, uint32_t i, struct tfh_rec *out)
{
	struct tft_events *ev;
	struct tft_cursor c;
	struct tfh_err err;
	uint32_t n = 0;

	assert_int_equal(tft_events_open(r, i, &ev, &err), 0);
	for (uint32_t k = 0; k < tft_run_count(ev); k++) {
		assert_int_equal(tft_run(ev, k)->start, n);
		tft_cursor_init(&c, ev, k);
		while (tft_next(&c, &out[n]))
			n++;
		assert_int_equal(n, tft_run(ev, k)->start + tft_run(ev, k)->count);
	}
	tft_events_close(ev);
	return n;
}

#endif
