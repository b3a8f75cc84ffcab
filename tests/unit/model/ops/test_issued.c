/* Compact ops and their calls are read as they were written, any number of times, whether they fit
 * into memory or not, on few streams or on more than have numbers. If there is no room for them,
 * that is reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/resource.h>

#include "base/hash.h"
#include "model/ops/device_ops.h"

/* The i-th call: times go forth and back, threads change, numbers end; every seventh is not known.
 */
static bool call_of(uint32_t i, struct tfh_issue *c)
{
	uint64_t h = tfh_hash_u64(i + 1);

	c->t0 = (int64_t)i * 1000 + (int64_t)(h % 5000) - 2500;
	c->t1 = c->t0 + (int64_t)(h >> 40);
	c->thread = (uint32_t)(h >> 20) % 3;
	c->call = i % 11 ? i : UINT64_MAX;
	if (i % 1000 == 999)
		*c = (struct tfh_issue){INT64_MAX, INT64_MAX, UINT32_MAX, 0};
	if (i % 1000 == 500)
		*c = (struct tfh_issue){INT64_MIN + 1, INT64_MIN + 1 + (int64_t)(h >> 4), 1, i};
	return i % 7 != 3;
}

/* The i-th op; one in a thousand starts far away or lasts long, and most are where the one before was. */
static struct tfh_op op_of(uint32_t i)
{
	uint64_t h = tfh_hash_u64(~(uint64_t)i), place = i % 5 ? 1 : h % (i > 5000 ? 400 : 4);
	struct tfh_op op = {.t0 = (int64_t)i * 700 + (int64_t)(h % 300),
			    .device = place % 3,
			    .ctx = (uint32_t)place / 2,
			    .stream = (uint32_t)place * 0x1000001u};

	op.t1 = op.t0 + (i % 1000 == 77 ? (int64_t)(h >> 2) : (int64_t)(h >> 50));
	op.kind = i % 997 ? (uint8_t)(i % 13 ? 1 : 1 + h % 5) : (uint8_t)h;
	if (op.kind == TFH_OP_COPY) {
		op.dir = (uint8_t)(h >> 8) % 7;
		op.pageable = h >> 16 & 1;
		op.bytes = h >> (h & 63);
	}
	op.communication = h >> 17 & 1;
	op.managed = h >> 18 & 1;
	return op;
}

static void same_op(const struct tfh_op *a, const struct tfh_op *b)
{
	assert_true(a->t0 == b->t0 && a->t1 == b->t1 && a->bytes == b->bytes);
	assert_true(a->device == b->device && a->ctx == b->ctx && a->stream == b->stream);
	assert_true(a->kind == b->kind && a->dir == b->dir && a->pageable == b->pageable);
	assert_true(a->communication == b->communication && a->managed == b->managed);
}

static void write_all(struct tfh_issued *s, uint32_t n)
{
	struct tfh_issue c;

	for (uint32_t i = 0; i < n; i++) {
		struct tfh_op op = op_of(i);
		tfh_issued_add(s, &op, call_of(i, &c) ? &c : NULL);
	}
}

static void check(uint32_t n)
{
	struct tfh_issued *s = tfh_issued_new();
	struct tfh_issue want, got;
	bool known;

	assert_non_null(s);
	write_all(s, n);
	for (uint32_t turn = 0; turn < 3; turn++) {
		/* The second reader stops in the middle. */
		uint32_t upto = turn == 1 ? n / 2 : n;
		struct tfh_op op = {0};
		assert_true(tfh_issued_rewind(s));
		for (uint32_t i = 0; i < upto; i++) {
			struct tfh_op wanted_op = op_of(i);
			bool wanted = call_of(i, &want);
			assert_false(tfh_issued_end(s));
			assert_int_equal(tfh_issued_next(s, &op, &got, &known), 0);
			same_op(&op, &wanted_op);
			assert_int_equal(known, wanted);
			if (!known)
				continue;
			assert_true(got.t0 == want.t0 && got.t1 == want.t1);
			assert_true(got.thread == want.thread && got.call == want.call);
		}
		assert_int_equal(tfh_issued_end(s), upto == n);
		if (upto == n)
			assert_int_not_equal(tfh_issued_next(s, &op, &got, &known), 0);
	}
	tfh_issued_free(s);
}

static void test_read(void **unused)
{
	(void)unused;
	check(0);
	check(1);
	check(5000);
	check(200000);
}

static void test_no_room(void **unused)
{
	(void)unused;
	struct rlimit old, small;
	struct tfh_issued *s = tfh_issued_new();

	assert_non_null(s);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 4096;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	write_all(s, 200000);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_false(tfh_issued_rewind(s));
	tfh_issued_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
