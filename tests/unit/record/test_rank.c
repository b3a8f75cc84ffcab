/* Ranks are found in the variables of the launcher that started the process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/run/rundir.h"

static struct tfh_job_rank detect(char *const *env)
{
	struct tfh_options options;
	struct tfh_job_rank r;

	clearenv();
	for (; *env; env++)
		putenv(*env);
	tfh_options_read(&options, environ);
	tfh_rank_detect(&r, &options, NULL);
	return r;
}
#define ENV(...) ((char *[]){__VA_ARGS__, NULL})

static void launchers(void **state)
{
	struct tfh_job_rank r;

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
		cmocka_unit_test(launchers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
