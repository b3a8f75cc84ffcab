/*
 * Ops find their calls by the order of numbers. For random jobs (threads with streams of their own
 * and a shared one, common kinds, calls that wait for their op or whose thread is descheduled) no
 * op ever gets another op's call. With one thread each op gets its call; with threads that use
 * separate streams nearly each; with threads that share a stream, those whose call did not overlap
 * another thread's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "model/ops/device_ops.h"

enum { MAX_THREADS = 6, CALLS = 4000, SHARED = 1 };

struct job {
	uint32_t threads, kinds;
	uint32_t shared;  /* of 100 calls those into the stream that all share */
	uint32_t waiting; /* of 100 calls copies that are waited for */
	uint32_t stopped; /* of 1,000 calls those that lose their processor for up to 40 ms */
	uint32_t stuck;	  /* of 1,000 ops those that last up to 500 ms */
	uint32_t pause;	  /* between two calls of a thread, at most, in us */
};

struct call {
	int64_t t0, t1, entry; /* the number is taken at `entry` */
	uint32_t kind, stream, thread;
	bool waits;
	struct tfh_op op;
};

struct found {
	uint32_t right, wrong, none;
};

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
	return (uint32_t)(tfh_hash_u64(++seed) >> 20) % below;
}

static void draw_call(const struct job *job, struct call *c, uint32_t thread, int64_t now)
{
	*c = (struct call){.thread = thread, .kind = draw(job->kinds) + 1};
	c->stream = draw(100) < job->shared ? 0 : SHARED + thread * 2 + draw(2);
	c->waits = draw(100) < job->waiting;
	c->kind += c->waits ? 100 : 0;
	c->t0 = now + 200 + draw(job->pause * 1000);
	c->t1 = c->t0 + 1500 + draw(4000);
	if (draw(1000) < job->stopped)
		c->t1 += draw(40000000);
	c->entry = c->t0 + draw((uint32_t)(c->t1 - c->t0));
}

/* The op runs when those before it in its stream have. */
static void run(const struct job *job, struct call *c, int64_t *free_at, uint32_t number)
{
	int64_t start = c->entry + 2000 + draw(3000);
	uint32_t lasts = 1000 + draw(20000);

	if (draw(1000) < job->stuck)
		lasts += draw(500000000);
	if (start < free_at[c->stream])
		start = free_at[c->stream] + 500;
	free_at[c->stream] = start + lasts;
	c->op = (struct tfh_op){.t0 = start,
				.t1 = start + lasts,
				.kind = c->waits ? TFH_OP_COPY : TFH_OP_KERNEL,
				.stream = c->stream + 7,
				.correlation = number};
	if (c->waits && c->t1 < c->op.t1 + 2000)
		c->t1 = c->op.t1 + 2000 + draw(5000);
}

static struct call *make(const struct job *job)
{
	struct call *v = calloc(CALLS, sizeof(*v)), next[MAX_THREADS];
	int64_t free_at[2 * MAX_THREADS + 1] = {0};
	uint32_t number = 100;

	assert_non_null(v);
	for (uint32_t t = 0; t < job->threads; t++)
		draw_call(job, &next[t], t, t * 50000);
	for (uint32_t i = 0; i < CALLS; i++) {
		struct call *first = &next[0];
		for (uint32_t t = 1; t < job->threads; t++)
			if (next[t].entry < first->entry)
				first = &next[t];
		number += 1 + draw(3);
		run(job, first, free_at, number);
		v[i] = *first;
		draw_call(job, first, first->thread, v[i].t1);
	}
	return v;
}

static int by_end(const void *a, const void *b)
{
	int64_t x = ((const struct call *)a)->t1, y = ((const struct call *)b)->t1;

	return (x > y) - (x < y);
}

static int by_start(const void *a, const void *b)
{
	int64_t x = (*(struct call *const *)a)->op.t0, y = (*(struct call *const *)b)->op.t0;

	return (x > y) - (x < y);
}

/* Calls come by their end, ops by their start. */
static struct found join(const struct job *job)
{
	struct call *v = make(job), **op = calloc(CALLS, sizeof(*op));
	struct found found = {0};
	struct tfh_by_order *r;
	struct tfh_issue issue;
	struct tfh_op got;
	uint32_t told = 0, added = 0;
	int64_t now = INT64_MIN, needs;

	assert_non_null(op);
	qsort(v, CALLS, sizeof(*v), by_end);
	for (uint32_t i = 0; i < CALLS; i++)
		op[i] = &v[i];
	qsort(op, CALLS, sizeof(*op), by_start);
	assert_int_equal(tfh_by_order_open(job->threads == 1, &r), 0);
	for (uint32_t i = 0; i < CALLS; i++) {
		for (; added < CALLS && !tfh_by_order_full(r); added++)
			assert_int_equal(tfh_by_order_add(r, op[added]->kind, &op[added]->op), 0);
		while (tfh_by_order_needs(r, &needs)) {
			while (now <= needs && now != INT64_MAX) {
				const struct call *c = &v[told];
				issue = (struct tfh_issue){c->t0, c->t1, c->thread, told};
				assert_int_equal(tfh_by_order_call(r, c->kind, &issue, c->stream),
						 0);
				now = ++told == CALLS ? INT64_MAX : c->t1;
			}
			tfh_by_order_settle(r, now);
		}
		bool known = tfh_by_order_take(r, &got, &issue);
		assert_true(got.correlation == op[i]->op.correlation);
		found.none += !known;
		found.right += known && issue.call == (uint64_t)(op[i] - v);
		found.wrong += known && issue.call != (uint64_t)(op[i] - v);
	}
	assert_null(tfh_by_order_first(r));
	tfh_by_order_close(r);
	free(op);
	free(v);
	return found;
}

/* Of many jobs of a sort: none has another's call, and so many of 100 ops have their own. */
static void joins(struct job job, uint32_t least)
{
	struct found sum = {0};

	seed = 1;
	for (uint32_t i = 0; i < 5; i++) {
		struct found f = join(&job);
		sum.right += f.right;
		sum.wrong += f.wrong;
		sum.none += f.none;
	}
	print_message("%u threads, %u kinds: right %u, wrong %u, without %u\n", job.threads,
		      job.kinds, sum.right, sum.wrong, sum.none);
	assert_int_equal(sum.wrong, 0);
	assert_true(sum.right * 100ull >= (sum.right + sum.none) * (uint64_t)least);
}

static void one_thread(void **state)
{
	(void)state;
	joins((struct job){1, 1, 50, 10, 5, 0, 10}, 100);
	joins((struct job){1, 4, 50, 10, 5, 5, 10}, 100);
}

static void streams_of_their_own(void **state)
{
	(void)state;
	joins((struct job){2, 3, 0, 10, 0, 0, 50}, 99);
	joins((struct job){6, 3, 0, 10, 0, 0, 5}, 99);
	joins((struct job){6, 1, 0, 20, 0, 0, 5}, 90);
}

static void shared_stream(void **state)
{
	(void)state;
	joins((struct job){2, 3, 20, 10, 5, 0, 50}, 99);
	joins((struct job){2, 3, 100, 10, 5, 0, 200}, 85);
	joins((struct job){6, 3, 20, 10, 0, 0, 5}, 90);
}

/* A number whose op ends late has a call that is perhaps not on record yet. */
static void long_ops(void **state)
{
	(void)state;
	joins((struct job){2, 3, 20, 10, 5, 5, 50}, 50);
	joins((struct job){6, 3, 20, 10, 5, 5, 50}, 30);
	joins((struct job){6, 1, 20, 10, 5, 5, 5}, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread),
		cmocka_unit_test(streams_of_their_own),
		cmocka_unit_test(shared_stream),
		cmocka_unit_test(long_ops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
