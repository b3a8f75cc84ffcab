/* The texts of TFHOOK_RANKS, TFHOOK_WINDOW and TFHOOK_STACKS mean what the help says, and invalid
 * ones are reported. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rules.h"

static void ranks(void **state)
{
	(void)state;
	assert_int_equal(tfh_ranks_match("all", 5), 1);
	assert_int_equal(tfh_ranks_match("", 5), 1);
	assert_int_equal(tfh_ranks_match("0-7,64", 0), 1);
	assert_int_equal(tfh_ranks_match("0-7,64", 7), 1);
	assert_int_equal(tfh_ranks_match("0-7,64", 8), 0);
	assert_int_equal(tfh_ranks_match("0-7,64", 64), 1);
	assert_int_equal(tfh_ranks_match("0", -1), 1);
	assert_int_equal(tfh_ranks_match("3", -1), 0);
}

static void shares(void **state)
{
	unsigned n = 0;

	(void)state;
	assert_int_equal(tfh_ranks_match("1/16", 0), 1);
	for (int r = 0; r < 1600; r++)
		n += (unsigned)tfh_ranks_match("1/16", r);
	assert_int_equal(n, 100);
	n = 0;
	for (int r = 0; r < 400; r++)
		n += (unsigned)tfh_ranks_match("3/4", r);
	assert_int_equal(n, 300);
}

static void wrong_ranks(void **state)
{
	static const char *const wrong[] = {"nonsense", "1,",  ",1",	"3-1",
					    "1/0",	"0/2", "2/1",	"1/2/3",
					    "-1",	"1x",  "1,1/2", "99999999999999999999"};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(tfh_ranks_match(wrong[i], 3), -EINVAL);
}

static void windows(void **state)
{
	struct tfh_rule_window w;

	(void)state;
	assert_int_equal(tfh_window_parse("", &w), 0);
	assert_int_equal(w.kind, TFH_WINDOW_ALL);
	assert_int_equal(tfh_window_parse("steps:100-200", &w), 0);
	assert_int_equal(w.kind, TFH_WINDOW_STEPS);
	assert_int_equal(w.first, 100);
	assert_int_equal(w.last, 200);
	assert_int_equal(tfh_window_parse("time:30s+2m", &w), 0);
	assert_int_equal(w.first, 30000000000);
	assert_int_equal(w.last, 150000000000);
	assert_int_equal(tfh_window_parse("time:500ms+1.5", &w), 0);
	assert_int_equal(w.last, 2000000000);
	assert_int_equal(tfh_window_parse("signal:USR2", &w), 0);
	assert_int_equal(w.signal, SIGUSR2);
	assert_int_equal(tfh_window_parse("signal:SIGUSR1", &w), 0);
	assert_int_equal(w.signal, SIGUSR1);
}

static void wrong_windows(void **state)
{
	static const char *const wrong[] = {"steps:5",	  "steps:9-3",	 "steps:a-b",  "time:30s",
					    "time:-1+2",  "signal:KILL", "day:1",      "steps:1-2x",
					    "steps:-1-2", "time:1x+1",	 "time:nan+1", "steps"};
	struct tfh_rule_window w;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(tfh_window_parse(wrong[i], &w), -EINVAL);
		assert_int_equal(w.kind, TFH_WINDOW_ALL);
	}
}

static void stacks(void **state)
{
	static const struct {
		const char *text;
		bool run;
		uint64_t least_ns;
		bool copies, launches;
		int error;
	} cases[] = {
		{"off", true, UINT64_MAX, false, false, 0},
		{"auto", false, UINT64_MAX, false, false, 0},
		{"auto", true, 1000000, false, false, 0},
		{"slow", false, 1000000, false, false, 0},
		{"slow:50us", false, 50000, false, false, 0},
		{"slow:0.5ms", false, 500000, false, false, 0},
		{"copy", false, 1000000, true, false, 0},
		{"launch", false, 1000000, true, true, 0},
		{"foo", true, UINT64_MAX, false, false, -EINVAL},
		{"slow:", true, UINT64_MAX, false, false, -EINVAL},
		{"slow:1ms,copy", true, UINT64_MAX, false, false, -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tfh_stack_rule r;

		assert_int_equal(tfh_stack_rule_parse(cases[i].text, cases[i].run, &r),
				 cases[i].error);
		assert_int_equal(r.least_ns, cases[i].least_ns);
		assert_int_equal(r.copies, cases[i].copies);
		assert_int_equal(r.launches, cases[i].launches);
	}
}

static void labels(void **state)
{
	static const char *const good[] = {"", "team=vision", "team=a,image=train:7",
					   "x.y-z_1=", "a==b c"},
				 *const bad[] = {"team",	   "=vision",	"team=a,",
						 ",team=a",	   "my team=a", "team=a,,image=b",
						 "team=a, image=b"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(tfh_labels_check(good[i]), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(tfh_labels_check(bad[i]), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks),	 cmocka_unit_test(shares),
		cmocka_unit_test(wrong_ranks),	 cmocka_unit_test(windows),
		cmocka_unit_test(wrong_windows), cmocka_unit_test(stacks),
		cmocka_unit_test(labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
