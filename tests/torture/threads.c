/* Many threads, short ones, cancelled ones, and signals in the middle: threads WAY N. */
#include "job.h"

#include <sys/time.h>

/* N threads that all live at once. */
static pthread_barrier_t all_here;

static void *waits_for_all(void *n)
{
	steps((long)(intptr_t)n);
	pthread_barrier_wait(&all_here);
	steps((long)(intptr_t)n);
	return NULL;
}

static int alive(int n, char **more)
{
	pthread_t *t = calloc((size_t)n, sizeof(*t));
	pthread_attr_t small;

	(void)more;
	pthread_barrier_init(&all_here, NULL, (unsigned)n);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int i = 0; i < n; i++)
		must(!pthread_create(&t[i], &small, waits_for_all, (void *)10), "pthread_create");
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	free(t);
	return 7;
}

/* The process ends while a thread of it is in its first call. */
static int ends_beside(int n, char **more)
{
	(void)more;
	spawn(steps_thread, n);
	nap_ms(300);
	return 7;
}

static int short_ones(int n, char **more)
{
	(void)more;
	for (int i = 0; i < n; i += 4) {
		pthread_t t[4];

		for (int k = 0; k < 4; k++)
			t[k] = spawn(steps_thread, 3);
		for (int k = 0; k < 4; k++)
			pthread_join(t[k], NULL);
	}
	return 7;
}

/* 64 threads, each as fast as it can. */
static int flood(int n, char **more)
{
	pthread_t t[64];
	int threads = atoi(more[0]);

	for (int i = 0; i < threads; i++)
		t[i] = spawn(steps_thread, n);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	return 7;
}

/* Threads end while a flush that they did not ask for goes through their rings. */
static int end_in_flush(int n, char **more)
{
	int (*flush)(unsigned) = (int (*)(unsigned))dlsym(RTLD_DEFAULT, "tfhook_flush");

	(void)more;
	step();
	for (int i = 0; i < n; i++) {
		pthread_t t[4];

		for (int k = 0; k < 4; k++)
			t[k] = spawn(steps_thread, 1 + (i * 7 + k * 50) % 300);
		if (flush)
			flush(1000);
		for (int k = 0; k < 4; k++)
			pthread_join(t[k], NULL);
	}
	return 7;
}

static void *never_ends(void *arg)
{
	(void)arg;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;)
		step();
	return NULL;
}

/* Asynchronous cancellation: anywhere, in the middle of a hook too. */
static int cancelled(int n, char **more)
{
	(void)more;
	for (int i = 0; i < n; i++) {
		pthread_t t = spawn(never_ends, 0);

		usleep((useconds_t)(50 + i * 13 % 400));
		pthread_cancel(t);
		pthread_join(t, NULL);
	}
	steps(10);
	puts("all ended");
	return 7;
}

static pthread_key_t late_key;

static void steps_late(void *left)
{
	steps(2);
	if ((intptr_t)left > 1)
		pthread_setspecific(late_key, (void *)((intptr_t)left - 1));
}

static void *with_late_key(void *n)
{
	pthread_setspecific(late_key, (void *)4);
	return steps_thread(n);
}

/* Destructors of thread-specific data that make calls, in all four rounds. */
static int destructors(int n, char **more)
{
	(void)more;
	pthread_key_create(&late_key, steps_late);
	for (int i = 0; i < n; i++)
		pthread_join(spawn(with_late_key, i % 3), NULL);
	return 7;
}

static volatile sig_atomic_t ticks;

static void on_tick(int signal)
{
	(void)signal;
	ticks++;
	step();
}

/* A signal every millisecond; its handler steps, whatever it interrupts. */
static int signals(int n, char **more)
{
	struct sigaction sa = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
	struct itimerval every = {{0, 1000}, {0, 1000}};
	pthread_t t[4];

	(void)more;
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	for (int i = 0; i < 4; i++)
		t[i] = spawn(steps_thread, n);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	while (ticks < 100)
		step();
	every = (struct itimerval){{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &every, NULL);
	return 7;
}

static pthread_barrier_t at_once;

static void *first_call(void *n)
{
	pthread_barrier_wait(&at_once);
	return steps_thread(n);
}

/* The first calls of a process come from N threads at once, some of which end within the set-up. */
static int first_calls(int n, char **more)
{
	pthread_t *t = calloc((size_t)n, sizeof(*t));

	(void)more;
	pthread_barrier_init(&at_once, NULL, (unsigned)n);
	for (int i = 0; i < n; i++)
		t[i] = spawn(first_call, i % 3);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	free(t);
	return 7;
}

static uint32_t set_up; /* atomic */

static void *setter(void *none)
{
	char name[32];

	(void)none;
	for (int i = 0; !__atomic_load_n(&set_up, __ATOMIC_ACQUIRE); i++) {
		snprintf(name, sizeof(name), "TORTURE_%d", i % 3000);
		setenv(name, "x", 1);
		if (i % 3000 == 2999)
			clearenv();
	}
	return NULL;
}

static void first_call_beside(void)
{
	struct timespec nap = {0, getpid() % 100 * 20000};
	pthread_t t = spawn(setter, 0);

	nanosleep(&nap, NULL);
	for (int i = 0; i < 20; i++)
		step();
	__atomic_store_n(&set_up, 1, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
}

/* N processes, in each of which one thread makes the first call while another changes the environment. */
static int environment(int n, char **more)
{
	int status;

	(void)more;
	for (int i = 0; i < n; i++) {
		pid_t child = fork();

		if (!child) {
			count_as_new();
			first_call_beside();
			exit(0);
		}
		must(waitpid(child, &status, 0) == child && status == 0, "a child");
	}
	return 7;
}

int main(int argc, char **argv)
{
	static const struct way ways[] = {{"alive", alive},
					  {"beside", ends_beside},
					  {"short", short_ones},
					  {"flood", flood},
					  {"flush", end_in_flush},
					  {"cancel", cancelled},
					  {"destructors", destructors},
					  {"signals", signals},
					  {"first", first_calls},
					  {"environment", environment},
					  {NULL, NULL}};

	return choose(ways, argc, argv);
}
