/* What takes locks that a fork copies: a fork waits for it, it waits for a fork, and neither for ever; a forked child starts
 * anew. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "record/process/forks.h"

static int within, over; /* atomic */

static int read_int(const int *at)
{
	return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void *call(void *ms)
{
	tfh_unforked_begin();
	__atomic_store_n(&within, 1, __ATOMIC_SEQ_CST);
	usleep((useconds_t)(intptr_t)ms * 1000);
	__atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
	tfh_unforked_end();
	return ms;
}

static void test_fork_waits(void **state)
{
	double begin = now_s();
	pthread_t t;

	(void)state;
	within = over = 0;
	assert_int_equal(pthread_create(&t, NULL, call, (void *)50), 0);
	while (!read_int(&within))
		usleep(100);
	tfh_forks_begin();
	assert_true(read_int(&over) || now_s() - begin > 1);
	tfh_forks_end();
	pthread_join(t, NULL);
}

static void test_call_waits(void **state)
{
	double begin = now_s();
	pthread_t t;

	(void)state;
	within = 0;
	tfh_forks_begin();
	assert_int_equal(pthread_create(&t, NULL, call, NULL), 0);
	usleep(50000);
	assert_true(!read_int(&within) || now_s() - begin > 1);
	tfh_forks_end();
	pthread_join(t, NULL);
	assert_true(read_int(&within));
}

/* Whoever is inside when a child is forked is not there. */
static void test_child(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	tfh_unforked_begin();
	pid = fork();
	if (!pid) {
		tfh_forks_forked();
		double begin = now_s();
		tfh_forks_begin();
		_exit(now_s() - begin < 1 ? 3 : 4);
	}
	tfh_unforked_end();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

/* A thread that was ended inside costs some forks a second each, and then none. */
static void test_left_inside(void **state)
{
	double took = 0;

	(void)state;
	tfh_unforked_begin();
	for (int i = 0; i < 8; i++) {
		double begin = now_s();
		tfh_forks_begin();
		took = now_s() - begin;
		tfh_forks_end();
	}
	assert_true(took < 1);
	tfh_unforked_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fork_waits),
		cmocka_unit_test(test_call_waits),
		cmocka_unit_test(test_child),
		cmocka_unit_test(test_left_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
