/* Digests of hosts whose chunks are whole but whose numbers are hostile (ranks, places, times, numbers of exchanges and groups beyond
 * their bounds, repeated, or of nobody) are reported as one job, or refused, without harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../digest/digest_fixture.h"
#include "base/hash.h"
#include "digest/digest_out.h"
#include "ranks/ranks.h"

#define ROWS 300u
#define RANKS 6u

static uint64_t state;

static uint64_t next(void)
{
	return state = tfh_hash_u64(state + 1);
}

/* Mostly small, now and then beyond any bound. */
static uint64_t odd(uint64_t most)
{
	static const uint64_t ends[] = {0,	    1,		UINT32_MAX,	 INT64_MAX,
					UINT64_MAX, 1ull << 40, (1ull << 60) - 1};

	return next() % 16 ? next() % (most + 1) : ends[next() % 7];
}

static void put_facts(struct tfh_digest_out *o)
{
	static const char *const numbers[] = {
		"0", "1.79e18", "1790000000123456789", "-5", "1e300", "nan", "8"};
	struct tfh_digest_key key[4];

	key[0].name = tfh_digest_add_text(o, "digest");
	key[0].value = tfh_digest_add_text(o, "tfhook.digest/1");
	key[1].name = tfh_digest_add_text(o, "start_ns");
	key[1].value = tfh_digest_add_text(o, numbers[next() % 7]);
	key[2].name = tfh_digest_add_text(o, "ranks");
	key[2].value = tfh_digest_add_text(o, numbers[next() % 7]);
	key[3].name = tfh_digest_add_text(o, "command.0");
	key[3].value = tfh_digest_add_text(o, "\033[31mred\n");
	assert_int_equal(tfh_digest_put(o, TFT_DKEY, &tfh_digest_keys, key, 4), 0);
}

static void write_odd(const char *path)
{
	struct tfh_digest_out o = {.w = NULL};
	struct tfh_digest_step step[ROWS];
	struct tfh_digest_anchor anchor[ROWS];
	struct tfh_digest_comm comm[ROWS];
	struct tfh_digest_open open[ROWS];
	struct tfh_digest_rank rank[RANKS];

	unlink(path);
	assert_int_equal(tft_writer_create(path, NULL, &empty_head, &o.w), 0);
	bool times = next() % 4, ranks = next() % 4;
	for (uint32_t i = 0; i < ROWS; i++) {
		step[i] = (struct tfh_digest_step){.gap = times ? 2 : odd(100),
						   .rest = times ? 0 : odd(1000),
						   .index = odd(1000),
						   .rank = ranks ? i / 50 : (uint32_t)odd(RANKS),
						   .segment = (uint8_t)odd(9),
						   .compute = (uint32_t)odd(100000),
						   .cls = (uint8_t)odd(9)};
		step[i].part[next() % TFH_CAUSE_COUNT] = (uint32_t)odd(100000);
		anchor[i] = (struct tfh_digest_anchor){.enter_ns = odd(1ull << 40),
						       .leave_ns = odd(1ull << 40),
						       .key = next() % 5 * 0x1234567,
						       .number = (uint32_t)odd(64),
						       .rank = i / 50,
						       .device = 1};
		comm[i] = (struct tfh_digest_comm){.key = next() % 20,
						   .collectives = odd(1000),
						   .messages = odd(3),
						   .rank = (uint32_t)odd(RANKS),
						   .ranks = (uint32_t)odd(10),
						   .own = (uint32_t)odd(10)};
		open[i] = (struct tfh_digest_open){.begin_ns = odd(1000),
						   .open_ns = odd(1ull << 36),
						   .rank = (uint32_t)odd(RANKS),
						   .name = (uint32_t)odd(40),
						   .file = (uint32_t)odd(40),
						   .function = (uint32_t)odd(40),
						   .line = (uint32_t)odd(100),
						   .state = (uint8_t)odd(30)};
	}
	for (uint32_t i = 0; i < RANKS; i++)
		rank[i] = (struct tfh_digest_rank){.unit = 1ull << (next() % 41),
						   .number = i,
						   .rank = (uint32_t)odd(20),
						   .local = (uint32_t)odd(8),
						   .end = (uint8_t)odd(5),
						   .code = (int32_t)odd(200),
						   .state = (uint8_t)odd(3),
						   .heard_ns = odd(1ull << 42),
						   .processes = (uint32_t)odd(3),
						   .host = (uint32_t)odd(20),
						   .exchanges = odd(100)};
	assert_int_equal(tfh_digest_put(&o, TFT_DSTP, &tfh_digest_steps, step, ROWS), 0);
	assert_int_equal(tfh_digest_put(&o, TFT_DCOL, &tfh_digest_anchors, anchor, ROWS), 0);
	assert_int_equal(tfh_digest_put(&o, TFT_DCOM, &tfh_digest_comms, comm, ROWS), 0);
	tfh_digest_add_text(&o, "a call\033[1m");
	assert_int_equal(tfh_digest_put(&o, TFT_DOPN, &tfh_digest_opens, open, ROWS), 0);
	tfh_digest_add_text(&o, "rack1-node\n7");
	assert_int_equal(tfh_digest_put(&o, TFT_DRNK, &tfh_digest_ranks, rank, RANKS), 0);
	put_facts(&o);
	tfh_digest_out_free(&o);
	assert_int_equal(tft_writer_finish(o.w, true), 0);
}

static void print(const struct tfh_ranks *job)
{
	const struct tfh_ranks_style style = {.all = true};
	char *text = NULL;
	size_t size = 0;

	for (int form = 0; form < 3; form++) {
		FILE *out = open_memstream(&text, &size);
		assert_non_null(out);
		if (form == 2)
			assert_int_equal(tfh_ranks_json(out, job), 0);
		else if (form && job->asked)
			tfh_ranks_step_text(out, job, &style);
		else if (form)
			tfh_ranks_table(out, job);
		else
			tfh_ranks_text(out, job, &style);
		fclose(out);
		assert_null(strchr(text, '\033'));
		free(text);
	}
}

static void hostile(void **unused)
{
	char a[] = "/tmp/tfhook-ranks-a-XXXXXX", b[] = "/tmp/tfhook-ranks-b-XXXXXX",
	     *paths[] = {a, b};
	uint32_t read = 0;

	(void)unused;
	close(mkstemp(a));
	close(mkstemp(b));
	for (uint32_t i = 0; i < 400; i++) {
		struct tfh_ranks *job;
		struct tfh_err err = {0};
		state = i;
		write_odd(a);
		write_odd(b);
		uint64_t step = next() % 50;
		int rc = tfh_ranks_find(paths, 2, i % 2 ? &step : NULL, &job, &err);
		assert_true(!rc || *err.text);
		if (rc)
			continue;
		read++;
		print(job);
		tfh_ranks_free(job);
	}
	unlink(a);
	unlink(b);
	assert_true(read > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(hostile)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
