/* What must hold: what a thread waits for follows from the futex call that it is in. Of a live thread of this process, in
 * each of the ways in which the C library lets threads wait, only what is certain is told, and a joined thread is named.
 * Calls of other libraries, and of other values, are a wait for a lock or something else. */
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "sampling/waiting.h"

#define PRIVATE FUTEX_PRIVATE_FLAG
#define REALTIME FUTEX_CLOCK_REALTIME

static void test_says(void **state)
{
	static const struct {
		const char *who;
		uint64_t operation, value;
		bool libc;
		enum tft_wait wait;
	} rows[] = {
		{"mutex", FUTEX_WAIT | PRIVATE, 2, true, TFT_WAIT_MUTEX},
		{"mutex of processes", FUTEX_WAIT, 2, true, TFT_WAIT_MUTEX},
		{"robust mutex", FUTEX_WAIT | PRIVATE, 0x80003039, true, TFT_WAIT_MUTEX},
		{"robust mutex, timed", FUTEX_WAIT_BITSET | PRIVATE | REALTIME, 0x80003039, true,
		 TFT_WAIT_MUTEX},
		{"mutex with priorities", FUTEX_LOCK_PI | PRIVATE, 0, true, TFT_WAIT_MUTEX},
		{"condition", FUTEX_WAIT_BITSET | PRIVATE | REALTIME, 0, true, TFT_WAIT_SIGNAL},
		{"condition, glibc 2.25", FUTEX_WAIT | PRIVATE, 0, true, TFT_WAIT_SIGNAL},
		{"condition, its mutex has priorities", FUTEX_WAIT_REQUEUE_PI | PRIVATE, 7, true,
		 TFT_WAIT_SIGNAL},
		{"join", FUTEX_WAIT_BITSET | REALTIME, 12345, true, TFT_WAIT_END},
		{"join, glibc 2.27", FUTEX_WAIT, 12345, true, TFT_WAIT_END},
		{"join, glibc 2.42", FUTEX_WAIT_BITSET | PRIVATE | REALTIME, 12345, true,
		 TFT_WAIT_END},
		{"rwlock, or a timed mutex", FUTEX_WAIT_BITSET | PRIVATE | REALTIME, 2, true,
		 TFT_WAIT_ANY},
		{"rwlock", FUTEX_WAIT_BITSET | PRIVATE | REALTIME, 3, true, TFT_WAIT_ANY},
		{"barrier", FUTEX_WAIT | PRIVATE, 12, true, TFT_WAIT_ANY},
		{"once", FUTEX_WAIT | PRIVATE, 1, true, TFT_WAIT_ANY},
		{"std::future", FUTEX_WAIT, 0x80000000, false, TFT_WAIT_SIGNAL},
		{"std::atomic::wait", FUTEX_WAIT, 2, false, TFT_WAIT_ANY},
		{"absl", FUTEX_WAIT_BITSET | PRIVATE | REALTIME, 0, false, TFT_WAIT_ANY},
		{"OpenMP's lock", FUTEX_WAIT | PRIVATE, 0xffffffff, false, TFT_WAIT_ANY},
		{"Rust's lock", FUTEX_WAIT_BITSET | PRIVATE, 2, false, TFT_WAIT_ANY},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (tfh_futex_says(rows[i].operation, rows[i].value, rows[i].libc) != rows[i].wait)
			fail_msg("%s: %d", rows[i].who,
				 tfh_futex_says(rows[i].operation, rows[i].value, rows[i].libc));
}

/* ---- live threads ---- */

enum way {
	MUTEX,
	RECURSIVE,
	ROBUST,
	CONDITION,
	TIMED_CONDITION,
	SEMAPHORE,
	JOIN,
	RWLOCK,
	OWN,
	WAYS
};

static const struct {
	const char *name;
	enum tft_wait wait;
} way_rows[WAYS] = {
	[MUTEX] = {"pthread_mutex_lock", TFT_WAIT_MUTEX},
	[RECURSIVE] = {"a recursive mutex", TFT_WAIT_MUTEX},
	[ROBUST] = {"a robust mutex", TFT_WAIT_MUTEX},
	[CONDITION] = {"pthread_cond_wait", TFT_WAIT_SIGNAL},
	[TIMED_CONDITION] = {"pthread_cond_timedwait", TFT_WAIT_SIGNAL},
	[SEMAPHORE] = {"sem_wait", TFT_WAIT_SIGNAL},
	[JOIN] = {"pthread_join", TFT_WAIT_END},
	[RWLOCK] = {"pthread_rwlock_rdlock", TFT_WAIT_ANY},
	[OWN] = {"a call of its own", TFT_WAIT_ANY},
};

static struct {
	pthread_mutex_t plain, recursive, robust, beside;
	pthread_cond_t condition;
	pthread_rwlock_t rwlock;
	sem_t semaphore, end;
	uint32_t word, over;
	pthread_t sleeper;
} on;

struct waiter {
	enum way way;
	uint32_t tid; /* atomic */
};

static void *sleeps(void *tid)
{
	__atomic_store_n((uint32_t *)tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (sem_wait(&on.end))
		;
	return NULL;
}

static void wait_for_condition(bool timed)
{
	struct timespec late;

	clock_gettime(CLOCK_REALTIME, &late);
	late.tv_sec += 60;
	pthread_mutex_lock(&on.beside);
	while (!on.over)
		if (timed)
			pthread_cond_timedwait(&on.condition, &on.beside, &late);
		else
			pthread_cond_wait(&on.condition, &on.beside);
	pthread_mutex_unlock(&on.beside);
}

static void lock(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
}

static void *waits(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	switch (w->way) {
	case MUTEX:
		lock(&on.plain);
		break;
	case RECURSIVE:
		lock(&on.recursive);
		break;
	case ROBUST:
		lock(&on.robust);
		break;
	case CONDITION:
	case TIMED_CONDITION:
		wait_for_condition(w->way == TIMED_CONDITION);
		break;
	case SEMAPHORE:
		while (sem_wait(&on.semaphore))
			;
		break;
	case JOIN:
		pthread_join(on.sleeper, NULL);
		break;
	case RWLOCK:
		pthread_rwlock_rdlock(&on.rwlock);
		pthread_rwlock_unlock(&on.rwlock);
		break;
	default:
		while (!__atomic_load_n(&on.word, __ATOMIC_ACQUIRE))
			syscall(SYS_futex, &on.word, FUTEX_WAIT | PRIVATE, 0, NULL, NULL, 0);
	}
	return NULL;
}

static void begin(void)
{
	pthread_mutexattr_t kind;

	pthread_mutexattr_init(&kind);
	pthread_mutex_init(&on.plain, NULL);
	pthread_mutex_init(&on.beside, NULL);
	pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&on.recursive, &kind);
	pthread_mutexattr_init(&kind);
	pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&on.robust, &kind);
	pthread_cond_init(&on.condition, NULL);
	pthread_rwlock_init(&on.rwlock, NULL);
	sem_init(&on.semaphore, 0, 0);
	sem_init(&on.end, 0, 0);
	pthread_mutex_lock(&on.plain);
	pthread_mutex_lock(&on.recursive);
	pthread_mutex_lock(&on.robust);
	pthread_rwlock_wrlock(&on.rwlock);
}

static void end(void)
{
	pthread_mutex_unlock(&on.plain);
	pthread_mutex_unlock(&on.recursive);
	pthread_mutex_unlock(&on.robust);
	pthread_rwlock_unlock(&on.rwlock);
	pthread_mutex_lock(&on.beside);
	on.over = 1;
	pthread_cond_broadcast(&on.condition);
	pthread_mutex_unlock(&on.beside);
	sem_post(&on.semaphore);
	sem_post(&on.end);
	__atomic_store_n(&on.word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &on.word, FUTEX_WAKE | PRIVATE, 1, NULL, NULL, 0);
}

static uint32_t started(uint32_t *tid)
{
	const struct timespec nap = {0, 1000000};
	uint32_t is;

	while (!(is = __atomic_load_n(tid, __ATOMIC_ACQUIRE)))
		nanosleep(&nap, NULL);
	return is;
}

/* Samples a thread until it waits for a lock; false: the kernel does not tell. */
static bool sample(uint32_t tid, struct tfh_waiting *out)
{
	const struct timespec nap = {0, 10000000};
	int fd = tfh_waiting_open(0, tid);
	uint32_t in_row = 0;

	if (fd < 0)
		return false;
	for (int i = 0; i < 500 && in_row < 3; i++) {
		assert_int_equal(tfh_waiting_sample(fd, 0, tid, out), 0);
		in_row = out->state == TFT_STATE_LOCK ? in_row + 1 : 0;
		nanosleep(&nap, NULL);
	}
	tfh_close(fd);
	return true;
}

static void test_live(void **state)
{
	struct waiter waiter[WAYS] = {0};
	struct tfh_waiting seen[WAYS] = {0};
	pthread_t thread[WAYS];
	uint32_t sleeper = 0;
	bool tells = true;

	(void)state;
	tfh_futex_begin();
	begin();
	assert_int_equal(pthread_create(&on.sleeper, NULL, sleeps, &sleeper), 0);
	started(&sleeper);
	for (int i = 0; i < WAYS; i++) {
		waiter[i].way = (enum way)i;
		assert_int_equal(pthread_create(&thread[i], NULL, waits, &waiter[i]), 0);
		tells &= sample(started(&waiter[i].tid), &seen[i]);
	}
	end();
	for (int i = 0; i < WAYS; i++)
		pthread_join(thread[i], NULL);
	if (!tells)
		skip(); /* a kernel or sandbox that does not tell */
	for (int i = 0; i < WAYS; i++)
		if (seen[i].state != TFT_STATE_LOCK || seen[i].wait != way_rows[i].wait)
			fail_msg("%s: state %d, %d", way_rows[i].name, seen[i].state, seen[i].wait);
	assert_int_equal(seen[JOIN].what, sleeper);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_says),
		cmocka_unit_test(test_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
