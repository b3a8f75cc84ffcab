/* The recorder's lock: one holder at a time under contention; a thread that cannot get it continues
 * without it after a bounded wait, the second time at once; in a forked child it is free. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "record/process/lock.h"

static uint32_t word TFH_LOCK_WORD;
static long shared, kept_out;

static void *add(void *arg)
{
	for (int i = 0; i < 20000; i++) {
		if (tfh_lock(&word)) {
			shared++;
			tfh_unlock(&word);
		} else {
			__atomic_fetch_add(&kept_out, 1, __ATOMIC_RELAXED);
		}
	}
	return arg;
}

static void test_one_holder(void **state)
{
	pthread_t t[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, add, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(shared + kept_out, 4 * 20000);
	assert_true(tfh_lock_try(&word));
	tfh_unlock(&word);
}

/* The alarm ends a wait without end. */
static void test_bounded(void **state)
{
	(void)state;
	alarm(60);
	assert_true(tfh_lock(&word));
	assert_false(tfh_lock_try(&word));
	for (int i = 0; i < 100000; i++) /* a quarter of an hour if each one waited */
		assert_false(tfh_lock(&word));
	tfh_unlock(&word);
	assert_true(tfh_lock(&word));
	tfh_unlock(&word);
	alarm(0);
}

static void test_forked(void **state)
{
	int status;
	pid_t child;

	(void)state;
	assert_true(tfh_lock(&word));
	child = fork();
	if (!child) {
		tfh_locks_forked();
		_exit(!tfh_lock_try(&word));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_false(tfh_lock_try(&word));
	tfh_unlock(&word);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_holder),
					   cmocka_unit_test(test_bounded),
					   cmocka_unit_test(test_forked)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
