/*
 * An archive that is opened anew for each element should be opened once, however many workers there are; and a pool whose processes
 * have next to nothing to do while the step waits for it needs smaller tasks, not more processes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/words/remedy.h"
#include "report/words/words.h"

static struct tfh_result input_bound(void)
{
	struct tfh_result r = {
		.steady = {.cls = TFH_CLASS_INPUT_BOUND, .cause = TFH_CAUSE_INPUT_MAP}};

	r.steps.count = 100;
	r.steps.total_s = 10;
	r.found.line = (struct tfh_seen_line){
		.file = "/job/train.py", .function = "Events.record", .line = 34};
	return r;
}

/* Of 10 ms at the line, or at another one, `s` are in this function. */
static bool opens(uint32_t line, const char *file, const char *function, double s)
{
	struct tfh_seen_node node[] = {
		{.file = "/job/train.py",
		 .function = "Events.record",
		 .line = line,
		 .own_s = 10e-3 - s},
		{.file = file, .function = function, .line = 1300, .own_s = s / 2, .parent = 0},
		{.file = "/lib/io.py", .function = "read", .line = 5, .own_s = s / 2, .parent = 1},
	};
	struct tfh_result r = input_bound();
	r.found.workers.processes = 1;
	r.found.workers.busy = 1;
	r.found.workers.node = node;
	r.found.workers.n_node = 3;
	bool says = strstr(tfh_remedy_in(&r, r.steady.cause).todo, "open it once");
	assert_int_equal(says, tfh_opens_anew(&r));
	return says;
}

static void test_opens(void **state)
{
	(void)state;
	assert_true(opens(34, "/usr/lib/python3.11/zipfile.py", "ZipFile.__init__", 8e-3));
	assert_true(opens(34, "/usr/lib/python3.13/zipfile/__init__.py", "ZipFile.__init__", 8e-3));
	assert_false(opens(34, "/usr/lib/python3.11/zipfile.py", "ZipFile.__init__", 4e-3));
	assert_false(opens(34, "/usr/lib/python3.11/zipfile.py", "ZipFile.read", 8e-3));
	assert_false(opens(35, "/usr/lib/python3.11/zipfile.py", "ZipFile.__init__", 8e-3));
}

/* What is loaded from a file in each step may be the same each time; what workers load for a batch is not. */
static void test_loads(void **state)
{
	(void)state;
	for (uint32_t workers = 0; workers < 2; workers++) {
		struct tfh_result r = input_bound();
		r.found.line.callee = "load";
		r.found.line.callee_file = "/usr/lib/python3.11/json/__init__.py";
		r.found.workers.processes = workers;
		const char *todo = tfh_remedy_in(&r, TFH_CAUSE_INPUT_DECODE).todo;
		assert_int_equal(!strncmp(todo, "load once", 9), !workers);
	}
}

/* Two processes, for a share of steps of 100 ms that wait 60 ms for their batches. */
static bool sends(const char *callee, double busy)
{
	struct tfh_result r = input_bound();
	r.breakdown[TFH_PART_INPUT].s_per_step = 60e-3;
	r.breakdown[TFH_PART_COMPUTE].s_per_step = 40e-3;
	r.found.line.callee = "starmap";
	r.found.line.callee_file = callee;
	r.found.workers.processes = 2;
	r.found.workers.busy = busy;
	return strstr(tfh_remedy_in(&r, r.steady.cause).todo, "send less");
}

static void test_sends(void **state)
{
	(void)state;
	assert_true(sends("/usr/lib/python3.11/multiprocessing/pool.py", 0.15));
	assert_false(sends("/usr/lib/python3.11/multiprocessing/pool.py", 0.4));
	assert_false(sends("/usr/lib/python3.11/queue.py", 0.15));
}

/* What is said of a pool: `anew`, the steps make it, which takes that long. */
static const char *pool(enum tfh_cause cause, const char *callee, double anew)
{
	struct tfh_result r = input_bound();
	r.found.line.callee = "map";
	r.found.line.callee_file = callee;
	r.found.new_pool.file = anew > 0 ? "/job/train.py" : NULL;
	r.found.new_pool.s_per_step = anew;
	r.found.cause_s[cause] = 10e-3;
	r.found.supposed = true;
	return tfh_remedy_in(&r, cause).todo;
}

static void test_new_pools(void **state)
{
	const char *one = "/usr/lib/python3.11/multiprocessing/pool.py", *no = "/usr/lib/x.py";

	(void)state;
	assert_non_null(strstr(pool(TFH_CAUSE_INPUT_UNKNOWN, one, 1e-3), "make it once"));
	assert_non_null(strstr(pool(TFH_CAUSE_INPUT_UNKNOWN, one, 0), "meanwhile"));
	assert_non_null(strstr(pool(TFH_CAUSE_INPUT_UNKNOWN, no, 1e-3), "top -H"));
	assert_non_null(strstr(pool(TFH_CAUSE_HOST_PYTHON, no, 6e-3), "make it once"));
	assert_null(strstr(pool(TFH_CAUSE_HOST_PYTHON, no, 4e-3), "make it once"));
	assert_null(strstr(pool(TFH_CAUSE_HOST_CONTENTION, no, 6e-3), "make it once"));
	struct tfh_result r = input_bound();
	r.found.new_pool.file = "/job/train.py";
	r.found.new_pool.callee_file = "/usr/lib/python3.11/multiprocessing/process.py";
	r.found.line.callee_file = "/usr/lib/python3.11/multiprocessing/connection.py";
	assert_non_null(strstr(tfh_remedy_in(&r, r.steady.cause).todo, "start it once"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opens),
		cmocka_unit_test(test_sends),
		cmocka_unit_test(test_loads),
		cmocka_unit_test(test_new_pools),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
