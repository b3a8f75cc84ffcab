/*
 * A job that counts what it does between its calls: computing, sleeping, and waiting for a lock, a
 * pipe, a socket, a disk and what stands for Python's global lock. Prints one line per state:
 * number and nanoseconds. samples.sh compares that with what was seen from outside.
 *
 *	samples SECONDS [end|fork|exec|idle|ways]
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/record.h"
#include "sampling/waiting.h"

static struct {
	uint32_t before, gil, after;
} runtime;
static uint32_t lock;
static int pipe_fd[2], socket_fd[2], file_fd;
static uint64_t spent[TFT_STATE_COUNT];

static void call(enum tfh_fn fn)
{
	uint64_t begin;
	struct tfh_self *self = tfh_enter(fn, 1, &begin);
	struct tfh_rec *rec = self ? tfh_leave(self, begin, fn, TFT_CALL) : NULL;

	if (rec)
		tfh_publish(self, 1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void nap(uint64_t ns)
{
	struct timespec t = {0, (long)ns};

	nanosleep(&t, NULL);
}

static void compute(uint64_t ns)
{
	for (uint64_t end = now() + ns; now() < end;)
		;
}

static void wait_word(uint32_t *word)
{
	while (!__atomic_exchange_n(word, 0, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static void give_word(uint32_t *word)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* The other side: sleeps for what was asked, then lets the job go on. */
static int ask_fd[2];
struct question {
	enum tft_state state;
	uint64_t ns;
};

static void *other_side(void *arg)
{
	struct question q;

	while (read(ask_fd[0], &q, sizeof(q)) == sizeof(q)) {
		nap(q.ns);
		if (q.state == TFT_STATE_GIL)
			give_word(&runtime.gil);
		else if (q.state == TFT_STATE_LOCK)
			give_word(&lock);
		else if (write(q.state == TFT_STATE_PIPE ? pipe_fd[1] : socket_fd[1], "x", 1) != 1)
			abort();
	}
	return arg;
}

static void wait_for_other(enum tft_state state, uint64_t ns)
{
	struct question q = {state, ns};
	char byte;

	if (write(ask_fd[1], &q, sizeof(q)) != sizeof(q))
		abort();
	if (state == TFT_STATE_GIL)
		wait_word(&runtime.gil);
	else if (state == TFT_STATE_LOCK)
		wait_word(&lock);
	else if (read(state == TFT_STATE_PIPE ? pipe_fd[0] : socket_fd[0], &byte, 1) != 1)
		abort();
}

static void write_through(void)
{
	static char block[1 << 18];

	if (pwrite(file_fd, block, sizeof(block), 0) < 0 || fsync(file_fd))
		abort();
}

static void spend(enum tft_state state, uint64_t ns)
{
	uint64_t begin = now();

	if (state == TFT_STATE_RUNNING)
		compute(ns);
	else if (state == TFT_STATE_SLEEP)
		nap(ns);
	else if (state == TFT_STATE_WRITE)
		write_through();
	else
		wait_for_other(state, ns);
	spent[state] += now() - begin;
}

/* 6 ms of computing, 12 of sleep, and so on, of a step; a call behind each part of every second
 * step, and at its end in the others. */
static void step(int number)
{
	static const struct {
		enum tft_state state;
		uint64_t ns;
	} part[] = {{TFT_STATE_RUNNING, 6000000}, {TFT_STATE_SLEEP, 9000000},
		    {TFT_STATE_LOCK, 6000000},	  {TFT_STATE_GIL, 9000000},
		    {TFT_STATE_PIPE, 7000000},	  {TFT_STATE_SOCKET, 5000000},
		    {TFT_STATE_WRITE, 0}};

	for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++) {
		spend(part[i].state, part[i].ns);
		if (number % 2)
			call(TFH_FN_cuLaunchKernel);
	}
	call(TFH_FN_cuLaunchKernel);
}

/* ---- the C library's ways to wait ---- */

static struct {
	pthread_mutex_t held, beside;
	pthread_cond_t changed;
	pthread_barrier_t begin;
	bool over;
} ways = {.held = PTHREAD_MUTEX_INITIALIZER,
	  .beside = PTHREAD_MUTEX_INITIALIZER,
	  .changed = PTHREAD_COND_INITIALIZER};

/* Sleeps, and only then lets go what the job waits for: a lock, a condition, its own end. */
static void *lets_go(void *wait)
{
	if (wait == (void *)TFT_WAIT_MUTEX)
		pthread_mutex_lock(&ways.held);
	pthread_barrier_wait(&ways.begin);
	nap(8000000);
	if (wait == (void *)TFT_WAIT_MUTEX)
		pthread_mutex_unlock(&ways.held);
	pthread_mutex_lock(&ways.beside);
	ways.over = true;
	pthread_cond_signal(&ways.changed);
	pthread_mutex_unlock(&ways.beside);
	return NULL;
}

static void wait_for_change(void)
{
	pthread_mutex_lock(&ways.beside);
	while (!ways.over)
		pthread_cond_wait(&ways.changed, &ways.beside);
	pthread_mutex_unlock(&ways.beside);
}

/* Returns the time for which it waited in one of the ways. */
static uint64_t wait_like(enum tft_wait wait)
{
	pthread_t t;
	uint64_t begin;

	ways.over = false;
	pthread_create(&t, NULL, lets_go, (void *)wait);
	pthread_barrier_wait(&ways.begin);
	begin = now();
	if (wait == TFT_WAIT_MUTEX) {
		pthread_mutex_lock(&ways.held);
		pthread_mutex_unlock(&ways.held);
	} else if (wait == TFT_WAIT_SIGNAL) {
		wait_for_change();
	} else {
		pthread_join(t, NULL);
	}
	begin = now() - begin;
	if (wait != TFT_WAIT_END)
		pthread_join(t, NULL);
	call(TFH_FN_cuLaunchKernel);
	return begin;
}

static void wait_in_ways(uint64_t end)
{
	uint64_t waited[TFT_WAIT_END + 1] = {0};

	pthread_barrier_init(&ways.begin, NULL, 2);
	while (now() < end)
		for (int wait = TFT_WAIT_MUTEX; wait <= TFT_WAIT_END; wait++)
			waited[wait] += wait_like((enum tft_wait)wait);
	for (int wait = TFT_WAIT_MUTEX; wait <= TFT_WAIT_END; wait++)
		printf("wait.%d %llu\n", wait, (unsigned long long)waited[wait]);
}

static void *short_life(void *arg)
{
	call(TFH_FN_cuLaunchKernel);
	nap(2000000);
	call(TFH_FN_cuLaunchKernel);
	return arg;
}

static void *call_once(void *arg)
{
	call(TFH_FN_cuLaunchKernel);
	pause();
	return arg;
}

/* Threads, children and programs that end while somebody samples them. */
static void disturb(const char *how, int number)
{
	pthread_t t[4];

	if (!strcmp(how, "end")) {
		for (int i = 0; i < 4; i++)
			pthread_create(&t[i], NULL, short_life, NULL);
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
	} else if (!strcmp(how, "fork") && number % 8 == 0) {
		if (!fork()) {
			short_life(NULL);
			_exit(0);
		}
		while (wait(NULL) < 0)
			;
	}
}

int main(int argc, char **argv)
{
	uint64_t end = now() + (uint64_t)(atof(argc > 1 ? argv[1] : "1") * 1e9);
	const char *how = argc > 2 ? argv[2] : "";
	char path[4096];
	pthread_t t;

	snprintf(path, sizeof(path), "%s/written", getenv("TFH_TMP") ? getenv("TFH_TMP") : "/tmp");
	file_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file_fd < 0 || pipe(ask_fd) || pipe(pipe_fd) ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, socket_fd))
		return 1;
	tfh_waiting_python(&runtime, sizeof(runtime));
	pthread_create(&t, NULL, other_side, NULL);
	call(TFH_FN_cuLaunchKernel);
	nap(20000000); /* the clock's pace is not known before */
	if (!strcmp(how, "idle")) {
		for (int i = 0; i < 24; i++)
			pthread_create(&t, NULL, call_once, NULL);
		for (int i = 0; i < 15; i++)
			nap(100000000);
		end += 1500000000;
	}
	if (!strcmp(how, "ways")) {
		wait_in_ways(end);
		return 0;
	}
	memset(spent, 0, sizeof(spent));
	for (int i = 0; now() < end; i++) {
		disturb(how, i);
		step(i);
	}
	for (int i = 1; i < TFT_STATE_COUNT; i++)
		if (spent[i])
			printf("%d %llu\n", i, (unsigned long long)spent[i]);
	if (!strcmp(how, "exec")) {
		fflush(stdout);
		execl(argv[0], argv[0], "0.2", NULL);
	}
	return 0;
}
