/* Events fold into the loops that made them, whatever the loops' order, nesting and number of
 * iterations. An iteration with additional work, a last epoch that was cut, and a different first iteration
 * count with their loop. Whatever the input, no time and no launch is lost or counted twice, and
 * memory stays bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "judge/loops/loop_events.h"
#include "judge/loops/fold.h"
#include "judge/numbers.h"

#define QUIET "lpqw" /* launch nothing */

/* A letter is an event of 10 ns: capitals are strong ones (batches), h and p begin an iteration among the small; t launches what e does, and two
 * kernels more. */
static void add(struct tfh_fold *f, char letter, int64_t *now)
{
	struct tfh_node event = {.key = tfh_hash_u64((uint64_t)letter),
				 .n = 1,
				 .launches = !strchr(QUIET, letter),
				 .t0 = *now,
				 .ns = 10};

	event.kind = letter < 'a' ? TFH_LOOP_EVENT_BATCH : TFH_LOOP_EVENT_COPY;
	event.rank = letter < 'a' ? 7 : letter == 'h' || letter == 'p' ? 5 : 1;
	event.ops = !event.launches ? 0
		    : letter == 't' ? 0x700000000
		    : letter == 'e' ? 0x100000000
				    : 1ull << (letter & 31);
	*now += 10;
	assert_int_equal(tfh_fold_add(f, &event), 0);
}

static void fold(const char *text, struct tfh_node *root)
{
	struct tfh_fold *f = tfh_fold_new(true);
	int64_t now = 0;

	assert_non_null(f);
	for (; *text; text++)
		add(f, *text, &now);
	tfh_fold_end(f, root);
}

/* "4(Ab)c": iterations before a loop's body. */
static size_t show(const struct tfh_node *list, char *out, size_t size)
{
	size_t n = 0;

	for (uint32_t i = 0; i < list->n_body; i++) {
		const struct tfh_node *v = &list->body[i];
		if (!v->body) {
			for (char c = 'A'; c <= 'z'; c++)
				if (v->key == tfh_hash_u64((uint64_t)c))
					n += (size_t)snprintf(out + n, size - n, "%c", c);
			continue;
		}
		n += (size_t)snprintf(out + n, size - n, "%d(", (int)v->n);
		n += show(v, out + n, size - n);
		n += (size_t)snprintf(out + n, size - n, ")");
	}
	out[n] = '\0';
	return n;
}

/* Every loop of loops lasts as long as what it holds. */
static int64_t sum(const struct tfh_node *v, uint64_t *launches)
{
	int64_t ns = 0;
	uint64_t n = 0;

	for (uint32_t i = 0; i < v->n_body; i++)
		ns += sum(&v->body[i], &n);
	if (v->n_body && !tfh_node_is_leaf(v)) {
		assert_int_equal(ns, v->ns);
		assert_int_equal(n, v->launches);
	}
	*launches += v->launches;
	return v->ns;
}

static size_t count(const char *text, char c)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == c;
	return n;
}

static void expect(const char *text, const char *raw, const char *tidy)
{
	struct tfh_node root;
	char out[512];
	uint64_t launches = 0;

	fold(text, &root);
	show(&root, out, sizeof(out));
	assert_string_equal(out, raw);
	tfh_fold_tidy(&root);
	show(&root, out, sizeof(out));
	assert_string_equal(out, tidy);
	assert_int_equal(sum(&root, &launches), 10 * (int64_t)strlen(text));
	for (const char *c = QUIET; *c; c++)
		launches += count(text, *c);
	assert_int_equal(launches, strlen(text));
	tfh_node_clear(&root);
}

static void test_loops(void **state)
{
	(void)state;
	expect("abc", "abc", "abc");
	expect("AbAbAb", "3(Ab)", "3(Ab)");
	expect("xAbAbAby", "x3(Ab)y", "x3(Ab)y");
	/* epochs of training and evaluation, of any length */
	expect("AbAbAbCdCdzAbAbAbAbCdCdCdzAbAbCdCdz", "3(9(Ab)7(Cd)z)", "3(9(Ab)7(Cd)z)");
	/* micro-steps with an update outside */
	expect("hkhkhkuhkhkhkuhkhkhku", "3(9(hk)u)", "3(9(hk)u)");
	/* the same loop begins with the same event, whatever stood before it */
	expect("bhcbhcbhcb", "b3(hcb)", "b3(hcb)");
	expect("xcbhcbhcb", "xcb2(hcb)", "xcb2(hcb)");
}

static void test_odd_rounds(void **state)
{
	(void)state;
	/* a log each fourth iteration; at random */
	expect("AbAbAbAblAbAbAbAblAbAbAbAbl", "3(12(Ab)l)", "12(Ab)");
	expect("AbAbAblAbAbAbAbAblAbAb", "2(8(Ab)l)2(Ab)", "10(Ab)");
	/* an update that is another event each fourth iteration */
	expect("AbAbAbAuAbAbAbAuAbAbAbAu", "3(9(Ab)Au)", "12(Ab)");
	/* the last epoch was cut, the first one began otherwise */
	expect("AbAbAbCdCdzAbAbAbCdCdzAbAb", "2(6(Ab)4(Cd)z)2(Ab)", "3(8(Ab)4(Cd)z)");
	expect("AxbAbAbAb", "Axb3(Ab)", "4(Ab)");
	/* an evaluation is no iteration of the training that it interrupts */
	expect("AbAbAbCdAbAbAbAbCdAbAb", "2(7(Ab)Cd)2(Ab)", "3(9(Ab)Cd)");
	/* nor where all but its launches are the same: it has no way back */
	expect("ptqwptqwptqwpeqwpeqwptqwptqwpeqwpeqw", "2(5(ptqw)4(peqw))", "2(5(ptqw)4(peqw))");
}

/* The end of a first round and the begin of a last one are one round; where the ends of iterators stand among the loops does not matter.
 * A loop that the rounds do not have is none of them. */
static void test_ended(void **state)
{
	(void)state;
	expect("AbAbAbFCdCdAbAbAbFGCdCdAbAbAbFGCdCdAbAbAbFGCdCd", "3(Ab)F3(6(Cd)9(Ab)FG)2(Cd)",
	       "4(8(Cd)12(Ab)FG)");
	expect("AbAbAbFCdCdGAbAbAbCdCdGFAbAbAbCdCdGFAbAbAbCdCdGF", "3(Ab)F2(Cd)G3(9(Ab)6(Cd)GF)",
	       "4(12(Ab)8(Cd)GF)");
	expect("CdCdFAbAbAbAbCdCdGFAbAbAbAbCdCdG", "2(Cd)2(F8(Ab)4(Cd)G)", "2(F8(Ab)6(Cd)G)");
	expect("PqPqFCdCdAbAbAbFGCdCdAbAbAbFG", "2(Pq)F2(4(Cd)6(Ab)FG)", "2(Pq)F2(4(Cd)6(Ab)FG)");
}

/* Anything at all: time and launches are all there, twice as many events need no more memory than a stack of 65,536. */
static void test_noise(void **state)
{
	(void)state;
	for (uint32_t letters = 2; letters <= 26; letters += 6) {
		struct tfh_fold *f = tfh_fold_new(true);
		struct tfh_node root;
		uint64_t launches = 0, seed = letters;
		int64_t now = 0;
		const uint32_t n = letters == 26 ? 200000 : 20000;
		for (uint32_t i = 0; i < n; i++) {
			seed = tfh_hash_u64(seed + 1);
			add(f, (char)((i % 50 < 25 ? 'A' : 'a') + (int)(seed % letters)), &now);
		}
		tfh_fold_end(f, &root);
		assert_true(root.n_body <= TFH_LOOPS_UNFOLDED);
		tfh_fold_tidy(&root);
		assert_int_equal(sum(&root, &launches), 10 * (int64_t)n);
		assert_true(launches <= n && launches > n / 2);
		tfh_node_clear(&root);
	}
}

/* What an enemy may write: loops without end that are all different, each with odd iterations around it. It takes time by its
 * length, not by the square of it. */
static void test_many_loops(void **state)
{
	struct tfh_fold *f = tfh_fold_new(true);
	struct tfh_node root;
	uint64_t launches = 0;
	int64_t now = 0;
	const uint32_t n = 20000;

	(void)state;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < 7; k++) {
			uint64_t what = k < 6 ? i * 2 + k % 2 : UINT32_MAX - i;
			struct tfh_node event = {.key = tfh_hash_u64(what + 1),
						 .n = 1,
						 .launches = 1,
						 .t0 = now,
						 .ns = 10,
						 .rank = k < 6 && k % 2 == 0};
			now += 10;
			assert_int_equal(tfh_fold_add(f, &event), 0);
		}
	tfh_fold_end(f, &root);
	assert_int_equal(root.n_body, 2 * n);
	tfh_fold_tidy(&root);
	assert_int_equal(sum(&root, &launches), now);
	assert_int_equal(launches, n * 7);
	tfh_node_clear(&root);
}

/* The longest body that is found, and one event more. */
static void test_long_body(void **state)
{
	(void)state;
	for (uint32_t length = TFH_LOOPS_BODY; length <= TFH_LOOPS_BODY + 1; length++) {
		struct tfh_fold *f = tfh_fold_new(true);
		struct tfh_node root;
		for (uint32_t i = 0; i < 4 * length; i++) {
			struct tfh_node event = {.key = tfh_hash_u64(i % length + 1),
						 .n = 1,
						 .ns = 1,
						 .rank = !(i % length)};
			assert_int_equal(tfh_fold_add(f, &event), 0);
		}
		tfh_fold_end(f, &root);
		assert_int_equal(root.n_body, length == TFH_LOOPS_BODY ? 1 : 4 * length);
		tfh_node_clear(&root);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loops),	   cmocka_unit_test(test_odd_rounds),
		cmocka_unit_test(test_ended),	   cmocka_unit_test(test_noise),
		cmocka_unit_test(test_many_loops), cmocka_unit_test(test_long_body),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
