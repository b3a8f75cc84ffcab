/* Records are decoded bit for bit as they were encoded, whatever they are. Batches of one thread
 * with consecutive numbers become one run. The sketch in the header counts what the chunk holds. */
#include "format_fixture.h"

#include "format/codec.h"
#include "format/sketch_build.h"

static struct tfh_rec in[TFT_MAX_EVENTS], out[TFT_MAX_EVENTS];
static char path[4096];

/* Writes `n` records of in[] as `batches`, reads them back and compares. */
static void round_trip(const struct tft_batch *batches, uint32_t n_batches, uint32_t n,
		       uint32_t runs)
{
	struct tft_writer *w = new_file(path);
	struct tft_reader *r;
	struct tft_events *ev;
	struct tfh_err err;

	assert_int_equal(tft_write_events(w, batches, n_batches, 5), 0);
	assert_int_equal(tft_writer_finish(w, true), 0);
	assert_int_equal(tft_open(path, &r, &err), 0);
	assert_int_equal(tft_chunk_count(r), 3);
	assert_int_equal(tft_chunk(r, 1)->events, n);
	assert_int_equal(tft_chunk(r, 1)->dropped, 5);
	assert_int_equal(read_chunk(r, 1, out), n);
	for (uint32_t i = 0; i < n; i++)
		assert_memory_equal(&in[i], &out[i], sizeof(in[i]));
	assert_int_equal(tft_events_open(r, 1, &ev, &err), 0);
	assert_int_equal(tft_run_count(ev), runs);
	tft_events_close(ev);
	tft_close(r);
}

static void one_batch(uint32_t n)
{
	struct tft_batch b = {in, n, 7, 70, in[0].seq};

	round_trip(&b, 1, n, 1);
}

static void test_random(void **state)
{
	static const uint32_t sizes[] = {1, 2, 3, 255, 257, 5000, 20000, TFT_MAX_EVENTS};

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		uint32_t first = (uint32_t)rnd();
		for (uint32_t i = 0; i < sizes[s]; i++)
			random_record(&in[i], first + i);
		one_batch(sizes[s]);
	}
}

static void test_calls(void **state)
{
	uint64_t t = 1000000;

	(void)state;
	for (uint32_t i = 0; i < TFT_MAX_EVENTS; i++)
		call_record(&in[i], &t, i);
	one_batch(TFT_MAX_EVENTS);
}

/* Time backwards, t_end before t_begin, zero, wrap-around, gaps around every width limit, nested
 * calls. */
static void test_times(void **state)
{
	static const uint64_t odd[] = {0,
				       1,
				       127,
				       128,
				       254,
				       255,
				       256,
				       65534,
				       65535,
				       65536,
				       16777214,
				       16777215,
				       16777216,
				       4294967294,
				       4294967295,
				       4294967296,
				       1ull << 62,
				       1ull << 63,
				       UINT64_MAX - 1,
				       UINT64_MAX};
	const uint32_t n_odd = sizeof(odd) / sizeof(*odd), n = n_odd * n_odd;

	(void)state;
	for (uint32_t rare = 0; rare < 2; rare++) {
		uint64_t t = UINT64_MAX - 100000;
		/* rare: few odd ones among many small values, so that they become escapes of narrow
		 * planes */
		uint32_t total = rare ? 60000 : n;
		for (uint32_t i = 0; i < total; i++) {
			bool special = !rare || i % 1000 == 0;
			uint32_t k = rare ? i / 1000 : i;
			memset(&in[i], 0, sizeof(in[i]));
			in[i].kind = TFT_CALL;
			in[i].seq = i;
			in[i].t_begin = t + (special ? odd[k % n_odd] : i % 100);
			in[i].t_end = in[i].t_begin + (special ? odd[k / n_odd % n_odd] : i % 90);
			t = in[i].t_end;
		}
		one_batch(total);
	}
	/* nesting: an outer call ends after the inner ones it contains */
	uint64_t t = 5000;
	for (uint32_t i = 0; i < 9000; i++) {
		memset(&in[i], 0, sizeof(in[i]));
		in[i].kind = TFT_CALL;
		in[i].seq = i;
		in[i].depth = (uint8_t)(i % 3 == 2 ? 0 : 1);
		in[i].t_begin = i % 3 == 2 ? in[i - 2].t_begin - 10 : t + 20;
		in[i].t_end = t = (i % 3 == 2 ? t : in[i].t_begin) + 30;
	}
	one_batch(9000);
}

/* Fields with more values than the dictionary holds, also when they begin in the middle of a chunk.
 */
static void test_wide_fields(void **state)
{
	uint64_t t = 1000;

	(void)state;
	for (uint32_t field = 0; field < 8; field++) {
		for (uint32_t i = 0; i < 40000; i++) {
			struct tfh_rec *r = &in[i];
			call_record(r, &t, i);
			if (i < 10000)
				continue;
			switch (field) {
			case 0:
				r->stream = (uint32_t)rnd();
				break;
			case 1:
				r->ctx = (uint32_t)rnd();
				break;
			case 2:
				r->stack = i;
				break;
			case 3:
				r->w[0] = rnd();
				break;
			case 4:
				r->w[1] = 0x7f0000000000 + below(1u << 30);
				break;
			case 5:
				r->w[2] = r->t_end - r->t_begin - below(3);
				break;
			case 6: /* several at once, and every byte of the fixed part */
				random_record(r, i);
				break;
			default:
				r->kind = (uint8_t)(1 + below(10));
				r->w[0] = i * 3ull;
				r->w[2] = UINT64_MAX;
				break;
			}
		}
		one_batch(40000);
	}
}

/* A writer that lives long learns; what it learnt must not harm later chunks of another kind. */
static void test_many_chunks(void **state)
{
	struct tft_writer *w = new_file(path);
	struct tft_reader *r;
	uint64_t seeds[12], t = 1;
	struct tft_batch b = {in, 30000, 1, 1, 0};

	(void)state;
	for (uint32_t pass = 0; pass < 2; pass++) {
		for (uint32_t c = 0; c < 12; c++) {
			if (pass == 0)
				seeds[c] = fixture_seed;
			fixture_seed = seeds[c];
			t = c * 1000000000ull;
			for (uint32_t i = 0; i < b.count; i++) {
				call_record(&in[i], &t, i);
				if (c % 3 == 1)
					in[i].w[1] = rnd();
				if (c % 3 == 2)
					in[i].kind = (uint8_t)(1 + i % 10);
			}
			if (pass == 0) {
				assert_int_equal(tft_write_events(w, &b, 1, 0), 0);
			} else {
				assert_int_equal(read_chunk(r, 1 + c, out), b.count);
				assert_memory_equal(in, out, b.count * sizeof(*in));
			}
		}
		if (pass == 0) {
			assert_int_equal(tft_writer_finish(w, true), 0);
			assert_int_equal(tft_open(path, &r, NULL), 0);
		}
	}
	tft_close(r);
}

static void test_text(void **state)
{
	uint64_t t = 1;

	(void)state;
	for (uint32_t i = 0; i < 5000; i++) {
		call_record(&in[i], &t, i);
		if (i % 4 == 0)
			continue;
		in[i].kind = TFT_EXT;
		in[i].fn = (uint16_t)(i % 4 - 1);
		in[i].result = (uint16_t)(3 - i % 4) * 36 + 30;
		in[i].t_begin = in[i].t_end = t;
		for (uint32_t k = 0; k < TFT_EXT_BYTES; k++)
			((char *)&in[i])[TFT_EXT_OFFSET + k] = (char)('a' + below(26));
	}
	one_batch(5000);
}

static void test_batches(void **state)
{
	uint64_t t = 77;
	struct tft_batch b[4];

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		call_record(&in[i], &t, i);
	/* threads 1 and 2; thread 1 comes in two parts, out of order, and with a hole before the
	 * third */
	b[0] = (struct tft_batch){in + 20, 30, 1, 11, 20};
	b[1] = (struct tft_batch){in, 20, 1, 11, 0};
	b[2] = (struct tft_batch){in + 80, 20, 2, 12, 80};
	b[3] = (struct tft_batch){in + 50, 30, 1, 11, 60};
	for (uint32_t i = 50; i < 80; i++)
		in[i].seq = 10 + i;
	round_trip(b, 4, 100, 3);
	/* seq that is not the number: exceptions */
	for (uint32_t i = 0; i < 100; i += 7)
		in[i].seq = (uint32_t)rnd();
	round_trip(b, 4, 100, 3);
	/* numbers beyond 32 bits */
	for (uint32_t i = 0; i < 100; i++)
		in[i].seq = (uint32_t)(0xfffffff0u + i);
	b[0] = (struct tft_batch){in, 100, UINT32_MAX, UINT32_MAX, 0x5fffffff0ull};
	round_trip(b, 1, 100, 1);
}

static void test_refused(void **state)
{
	struct tft_writer *w = new_file(path);
	struct tft_batch b[2] = {{in, TFT_MAX_EVENTS, 1, 1, 0}, {in, 1, 2, 2, 0}};
	uint64_t size = tft_writer_bytes(w);

	(void)state;
	assert_int_equal(tft_write_events(w, b, 0, 0), -EINVAL);
	assert_int_equal(tft_write_events(w, b, 2, 0), -EINVAL);
	assert_int_equal(tft_writer_bytes(w), size);
	assert_int_equal(tft_writer_finish(w, true), 0);
}

static void test_sketch(void **state)
{
	struct tft_head head = sample_head();
	struct tft_writer *w = new_file(path);
	struct tft_batch b[2] = {{in, 300, 1, 1, 0}, {in + 300, 300, 2, 2, 0}};
	const struct tft_sketch *s;
	struct tft_reader *r;
	uint64_t t = 1000, copy_ticks = 0, wait_ticks = 0, bytes = 0;
	uint32_t copy_fn = 0;

	(void)state;
	for (uint32_t i = 0; i < head.fn_count && !copy_fn; i++)
		if (head.fn[i].family == TFH_FAM_COPY && head.fn[i].args == TFH_ARGS_COPY &&
		    head.fn[i].props & TFH_FN_SYNC_COPY)
			copy_fn = i;
	assert_int_not_equal(copy_fn, 0);
	for (uint32_t i = 0; i < 600; i++) {
		struct tfh_rec *q = &in[i];
		call_record(q, &t, i % 300);
		q->w[0] = 5;
		q->w[1] = 3;
		switch (i % 6) {
		case 0:
			q->fn = TFH_FN_tf_getnext_op;
			break;
		case 1:
			q->fn = TFH_FN_tf_stage_getnext;
			q->w[2] = 100;
			break;
		case 2:
			q->fn = TFH_FN_tf_stage_getnext;
			q->kind = TFT_AGG;
			q->stream = 3;
			q->ctx = 10;
			q->w[0] = 1000;
			q->w[1] = 400;
			break;
		case 3:
			q->fn = (uint16_t)copy_fn;
			q->w[0] = 1 << 20;
			copy_ticks += q->t_end - q->t_begin;
			bytes += q->w[0];
			break;
		case 4:
			q->fn = TFH_FN_mark_step;
			q->kind = TFT_MARK;
			break;
		default:
			q->fn = i < 300 ? TFH_FN_cuLaunchKernel : TFH_FN_cuStreamSynchronize;
			wait_ticks += i < 300 ? 0 : q->t_end - q->t_begin;
			break;
		}
	}
	assert_int_equal(tft_write_events(w, b, 2, 0), 0);
	assert_int_equal(tft_writer_finish(w, true), 0);
	assert_int_equal(tft_open(path, &r, NULL), 0);
	assert_int_equal(tft_chunk_sketch(r, 1, &s, NULL), 0);
	assert_int_equal(s->launches, 50);
	assert_int_equal(s->overflow, 0);
	assert_int_equal(s->knows_anchors, 1);
	for (uint32_t i = 0; i < TFT_SKETCH_ANCHORS; i++) {
		const struct tft_sketch_anchor *a = &s->anchor[i];
		bool copies = i == head.fn[copy_fn].dir, waits = i == TFT_SKETCH_WAIT;
		assert_int_equal(a->count, copies ? 100 : waits ? 50 : 0);
		assert_int_equal(a->ticks, copies ? copy_ticks : waits ? wait_ticks : 0);
		assert_int_equal(a->bytes, copies ? bytes : 0);
		assert_true(a->t_first < a->t_last || !a->count);
	}
	assert_int_equal(s->n_stage, 1);
	assert_int_equal(s->stage[0].stage, 3);
	assert_int_equal(s->stage[0].count, 100 + 1000);
	assert_int_equal(s->stage[0].self, 100 * 100 + 100 * 400);
	assert_int_equal(s->n_clock, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct tft_sketch_clock *c = &s->clock[i];
		assert_int_equal(c->count, 100);
		assert_int_equal(c->threads, 2);
		assert_int_equal(c->key, c->fn == TFH_FN_mark_step ? 3 : 5);
		assert_true(c->t_first < c->t_last);
	}
	assert_int_equal(s->n_bin, 1);
	assert_int_equal(s->bin[0].count, 100);
	assert_int_equal(s->bin[0].bin, 10);
	assert_int_equal(s->bin[0].bytes, bytes);
	assert_true((double)s->bin[0].best_bytes_per_tick_q32 / 4294967296.0 >=
		    (double)bytes / (double)copy_ticks);
	for (uint32_t i = 0; i < s->n_fn; i++)
		if (s->fn[i].fn == copy_fn) {
			assert_int_equal(s->fn[i].count, 100);
			assert_int_equal(s->fn[i].ticks, copy_ticks);
		}
	tft_close(r);
}

/* Packed sketches come out as they went in; no prefix of one and no random bytes do harm. */
static void test_sketch_packing(void **state)
{
	static struct tft_sketch a, b;
	static uint8_t packed[TFT_SKETCH_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(a) / 8; i++)
		((uint64_t *)&a)[i] = rnd() ^ rnd() << 32;
	a.n_fn = TFT_SKETCH_FNS;
	a.n_stage = TFT_SKETCH_STAGES;
	a.n_clock = TFT_SKETCH_CLOCKS;
	a.n_bin = TFT_SKETCH_BINS;
	a.knows_anchors = 1;
	for (uint32_t i = 0; i < TFT_SKETCH_ANCHORS; i++)
		a.anchor[i].pad = 0;
	for (uint32_t i = 0; i < a.n_fn; i++)
		a.fn[i].pad = 0;
	for (uint32_t i = 0; i < a.n_clock; i++)
		a.clock[i].pad = 0;
	size_t len = tft_sketch_pack(&a, packed);
	assert_true(len <= TFT_SKETCH_MAX);
	assert_int_equal(tft_sketch_unpack(&b, packed, len), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	/* One from before there were anchors ends where they begin. */
	memset(a.anchor, 0, sizeof(a.anchor));
	size_t old = tft_sketch_pack(&a, packed) - 1;
	assert_int_equal(tft_sketch_unpack(&b, packed, old), 0);
	a.knows_anchors = 0;
	assert_memory_equal(&a, &b, sizeof(a));
	for (size_t cut = 1; cut < old; cut += 61) {
		uint8_t *exact = malloc(cut);
		memcpy(exact, packed, cut);
		assert_int_equal(tft_sketch_unpack(&b, exact, cut), -EBADMSG);
		free(exact);
	}
	for (uint32_t i = 0; i < 2000; i++) {
		size_t n = below(200);
		uint8_t *junk = malloc(n + 1);
		for (size_t k = 0; k < n; k++)
			junk[k] = (uint8_t)rnd();
		tft_sketch_unpack(&b, junk, n);
		assert_true(b.n_fn <= TFT_SKETCH_FNS && b.n_stage <= TFT_SKETCH_STAGES);
		assert_true(b.n_clock <= TFT_SKETCH_CLOCKS && b.n_bin <= TFT_SKETCH_BINS);
		free(junk);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),	    cmocka_unit_test(test_calls),
		cmocka_unit_test(test_times),	    cmocka_unit_test(test_wide_fields),
		cmocka_unit_test(test_many_chunks), cmocka_unit_test(test_text),
		cmocka_unit_test(test_batches),	    cmocka_unit_test(test_refused),
		cmocka_unit_test(test_sketch),	    cmocka_unit_test(test_sketch_packing),
	};

	test_path(path, sizeof(path), "codec.tft");
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
