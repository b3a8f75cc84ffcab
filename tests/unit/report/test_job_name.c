/* A job has the name of its script or module, else of its program, whatever programs start it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/report.h"

#define WORDS 12

static const struct {
	const char *name;
	bool timed;
	const char *argv[WORDS];
} rows[] = {
	{"train.py", false, {"python", "-u", "/job/train.py", "--lr", "0.1"}},
	{"pkg.train", false, {"/usr/bin/python3.11", "-m", "pkg.train", "x.py"}},
	{"python3", false, {"python3", "-c", "import x.py"}},
	{"train", false, {"./bin/train", "x.py"}},
	{"train.py", true, {"timeout", "-s", "TERM", "15", "python", "train.py"}},
	{"train.py", true, {"timeout", "--signal=KILL", "-k", "5", "1h", "python", "train.py"}},
	{"train.py", true, {"/usr/bin/timeout", "--kill-after", "5", "9", "python", "train.py"}},
	{"sim", true, {"nice", "-n", "10", "timeout", "9", "./sim"}},
	{"sim", false, {"nice", "-10", "./sim"}},
	{"train.py", false, {"env", "-u", "HOME", "A=1", "B=2", "python3", "train.py"}},
	{"train.py", false, {"taskset", "-c", "0-3", "python", "train.py"}},
	{"train.py", false, {"numactl", "--cpunodebind=0", "-m", "0", "python", "train.py"}},
	{"train.py", false, {"numactl", "--membind", "0", "--localalloc", "python", "train.py"}},
	{"train.py", false, {"stdbuf", "-oL", "-e", "0", "python", "train.py"}},
	{"train.py", false, {"time", "-f", "%e", "-v", "python", "train.py"}},
	{"a.py",
	 false,
	 {"sh", "-c", "cd /job && CUDA_VISIBLE_DEVICES=0 python 'src/a.py' 2>&1 | tee log"}},
	{"pkg.a", false, {"bash", "-ec", "exec python -m pkg.a"}},
	{"bash", false, {"bash", "-c", "./sim; ./sim"}},
	{"run.sh", false, {"bash", "-x", "/job/run.sh", "fast"}},
	{"ddp.py",
	 false,
	 {"/v/bin/torchrun", "--standalone", "--nproc-per-node", "2", "ddp.py", "x"}},
	{"ddp.py", false, {"python", "-m", "torch.distributed.run", "--nnodes=1", "src/ddp.py"}},
	{"pkg.ddp", false, {"torchrun", "--nproc_per_node=2", "-m", "pkg.ddp"}},
	{"md.py", false, {"mpirun", "-n", "2", "python", "md.py"}},
	{"mpirun", false, {"mpirun", "-n", "2", "./sim"}},
	{"env", false, {"env"}},
	{"timeout", false, {"timeout", "5"}},
};

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint32_t n = 0;
		while (n < WORDS && rows[i].argv[n])
			n++;
		assert_string_equal(tfh_report_job(rows[i].argv, n), rows[i].name);
		assert_int_equal(tfh_report_timed(rows[i].argv, n), rows[i].timed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
