/* What must hold: TFHOOK_RANKS and TFHOOK_WINDOW select what their text says; a text that cannot be
 * understood selects everything; ranks are found in the variables of the launcher that started the
 * process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>

#include "record/internal.h"

static void ranks(void **state)
{
	(void)state;
	assert_true(tfh_filter_rank("all", 5));
	assert_true(tfh_filter_rank("", 5));
	assert_true(tfh_filter_rank("0-7,64", 0));
	assert_true(tfh_filter_rank("0-7,64", 7));
	assert_false(tfh_filter_rank("0-7,64", 8));
	assert_true(tfh_filter_rank("0-7,64", 64));
	assert_true(tfh_filter_rank("0", -1));
	assert_false(tfh_filter_rank("3", -1));
	assert_true(tfh_filter_rank("nonsense", 3));
}

static void shares(void **state)
{
	unsigned n = 0;

	(void)state;
	assert_true(tfh_filter_rank("1/16", 0));
	for (int r = 0; r < 1600; r++)
		n += tfh_filter_rank("1/16", r);
	assert_int_equal(n, 100);
	n = 0;
	for (int r = 0; r < 400; r++)
		n += tfh_filter_rank("3/4", r);
	assert_int_equal(n, 300);
}

static void windows(void **state)
{
	struct tfh_window w;

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
	static const char *const wrong[] = {"steps:5",	 "steps:9-3",	"steps:a-b", "time:30s",
					    "time:-1+2", "signal:KILL", "day:1",     "steps:1-2x"};
	struct tfh_window w;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(tfh_window_parse(wrong[i], &w), -22);
	}
}

static struct tfh_rank detect(char *const *env)
{
	struct tfh_options options;
	struct tfh_rank r;

	clearenv();
	for (; *env; env++)
		putenv(*env);
	tfh_options_read(&options, environ);
	tfh_rank_detect(&r, &options);
	return r;
}
#define ENV(...) ((char *[]){__VA_ARGS__, NULL})

static void launchers(void **state)
{
	struct tfh_rank r;

	(void)state;
	r = detect(ENV("HOME=/"));
	assert_int_equal(r.rank, -1);
	assert_string_equal(r.job, "");
	r = detect(ENV("RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=1", "TORCHELASTIC_RUN_ID=none",
		       "TORCHELASTIC_RESTART_COUNT=2"));
	assert_int_equal(r.rank, 3);
	assert_int_equal(r.world, 8);
	assert_int_equal(r.local_rank, 1);
	assert_string_equal(r.job, "");
	assert_string_equal(r.restart, "2");
	/* under `srun torchrun` the launcher nearer to the process knows better */
	r = detect(ENV("SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_JOB_ID=77", "SLURM_STEP_ID=0",
		       "RANK=5", "WORLD_SIZE=8"));
	assert_int_equal(r.rank, 5);
	assert_string_equal(r.job, "77.0");
	r = detect(ENV("SLURM_PROCID=1", "SLURM_NTASKS=2"));
	assert_int_equal(r.rank, 1);
	r = detect(ENV("TFHOOK_RANK=9", "TFHOOK_JOB=a/b", "RANK=5", "WORLD_SIZE=8"));
	assert_int_equal(r.rank, 9);
	assert_string_equal(r.job, "a_b");
	/* one half of a pair is no answer */
	r = detect(ENV("RANK=5"));
	assert_int_equal(r.rank, -1);
	r = detect(ENV(
		"TF_CONFIG={\"cluster\": {\"chief\": [\"a:1\"], \"worker\": [\"b:1\", \"c:1\"]}, "
		"\"task\": {\"type\": \"worker\", \"index\": 1}}"));
	assert_int_equal(r.rank, 2);
	r = detect(ENV("TF_CONFIG=nonsense"));
	assert_int_equal(r.rank, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks),     cmocka_unit_test(shares),
		cmocka_unit_test(windows),   cmocka_unit_test(wrong_windows),
		cmocka_unit_test(launchers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
