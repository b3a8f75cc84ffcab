/*
 * Whether a feed gives launches one by one, several at a time, or in rows, the first pass finds the same: sequence of calls,
 * intervals without a launch, ends of calls, and sums. Launches here are of several kernels and streams, some after
 * pauses, some long, and some have stacks.
 */
#include "../analyze_gen.h"

#include "judge/facts/facts.h"

#define CALLS 300000

static uint64_t seed = 7;

static uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

/* Microseconds, mostly few. */
static double some(void)
{
	return 1 + draw(3) + (draw(5) ? 0 : draw(40)) + (draw(500) ? 0 : draw(2000));
}

static struct gen *make(void)
{
	struct gen *g = gen_new();
	double t = 1000;

	for (uint32_t i = 0; i < CALLS; i++) {
		uint32_t other = draw(3000);
		enum tfh_fn fn = other < 3 ? TFH_FN_cuCtxSynchronize : TFH_FN_cuLaunchKernel;
		double t0 = t + some() * (draw(2) ? 1 : 0), t1 = t0 + some();
		struct tfh_event *ev = gen_call(g, other == 4, fn, t0 / 1e3, t1 / 1e3);
		ev->w[0] = 1 + draw(draw(10) ? 1 : 5);
		ev->stream = draw(50) ? 7 : 8;
		ev->stack = draw(20000) ? 0 : 3;
		t = t1;
	}
	return g;
}

static struct tfh_facts *find(const struct tfh_feed *feed)
{
	struct tfh_facts *facts = calloc(1, sizeof(*facts));
	struct tfh_arena arena = {0};
	struct tfh_err err = {0};

	assert_int_equal(tfh_find_facts(feed, 0, &arena, facts, &err), 0);
	tfh_arena_free(&arena);
	return facts;
}

static void compare(const struct tfh_facts *a, const struct tfh_facts *b)
{
	assert_int_equal(a->token.n, b->token.n);
	for (size_t i = 0; i < a->token.n; i++) {
		const struct tfh_token *x = &a->token.v[i], *y = &b->token.v[i];
		assert_true(x->t0 == y->t0 && x->ns == y->ns && x->kind == y->kind);
	}
	assert_int_equal(a->quiet.n, b->quiet.n);
	assert_memory_equal(a->quiet.v, b->quiet.v, a->quiet.n * sizeof(*a->quiet.v));
	assert_int_equal(a->call_at.n, b->call_at.n);
	assert_memory_equal(a->call_at.v, b->call_at.v, a->call_at.n * sizeof(*a->call_at.v));
	assert_memory_equal(a->last_launch, b->last_launch, sizeof(a->last_launch));
	assert_int_equal(a->longs.n, b->longs.n);
	assert_int_equal(a->events, b->events);
	assert_int_equal(a->launches, b->launches);
	assert_int_equal(a->launched, b->launched);
	assert_int_equal(a->last, b->last);
	assert_int_equal(a->quiet_ns, b->quiet_ns);
	for (uint32_t i = 0; i < GEN_THREADS; i++) {
		const struct tfh_thread_use *x = &a->thread[i], *y = &b->thread[i];
		assert_true(x->launches == y->launches);
		assert_true(x->last == y->last && x->stacks == y->stacks);
	}
}

static void discard(struct tfh_facts *facts)
{
	tfh_facts_free(facts);
	free(facts);
}

static void test_same_facts(void **state)
{
	(void)state;
	struct gen *g = make();
	struct tfh_feed several = g->feed, single = g->feed;

	several.row = NULL;
	single.row = NULL;
	single.peek = NULL;
	struct tfh_facts *a = find(&single), *b = find(&several), *c = find(&g->feed);
	assert_true(a->quiet.n > 1000 && a->quiet_ns > TFH_FACTS_QUIET_FIRST_NS && a->longs.n);
	assert_true(a->thread[0].stacks > 3);
	compare(a, b);
	compare(a, c);
	discard(a);
	discard(b);
	discard(c);
	gen_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_facts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
