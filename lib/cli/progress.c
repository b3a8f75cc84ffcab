/*
 * A line on the terminal while a long recording is judged: how much has been read, how fast, and
 * the time left. A separate thread prints it from a counter of the run, so the analysis is
 * unaffected. Nothing is printed if stderr is not a terminal, or in the first second.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/print.h"
#include "cli/cli.h"
#include "model/model.h"

/* Delay of the first line, and interval of the others. */
#define FIRST_MS 1000
#define EVERY_MS 250

struct tfh_progress {
	const struct tfh_run *run;
	double total; /* calls to read, over all passes */
	bool shown, stop;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t stopped;
	struct timespec begin;
};

/* Every process that may be judged is read once for the facts and once for the accounts. */
static double calls_to_read(const struct tfh_run *run)
{
	const struct tfh_process *p;
	double calls = 0;

	for (uint32_t i = 0, n = tfh_run_processes(run, &p); i < n; i++)
		calls += p[i].has_gpu || p[i].has_tf ? 2 * (double)p[i].events : 0;
	return calls;
}

static double seconds_since(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - t->tv_sec) + (double)(now.tv_nsec - t->tv_nsec) / 1e9;
}

static void show(struct tfh_progress *p)
{
	double read = (double)tfh_run_unpacked(p->run), took = seconds_since(&p->begin);
	double rate = took > 0 ? read / took : 0;

	if (read <= 0 || rate <= 0)
		return;
	double part = p->total > read ? read / p->total : 1;
	tfh_print(stderr, "\r\033[Ktfhook: %.0f %% read, %.1f million calls/s, about %.0f s left",
		  100 * part, rate / 1e6, p->total > read ? (p->total - read) / rate : 0);
	fflush(stderr);
	p->shown = true;
}

static void *watch(void *arg)
{
	struct tfh_progress *p = arg;
	struct timespec next = p->begin;
	long wait_ms = FIRST_MS;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		next.tv_nsec += wait_ms % 1000 * 1000000;
		next.tv_sec += wait_ms / 1000 + next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		int rc = 0;
		while (!p->stop && rc != ETIMEDOUT)
			rc = pthread_cond_timedwait(&p->stopped, &p->lock, &next);
		if (!p->stop)
			show(p);
		wait_ms = EVERY_MS;
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

struct tfh_progress *tfh_progress_start(struct tfh_run *run)
{
	struct tfh_progress *p = isatty(STDERR_FILENO) ? calloc(1, sizeof(*p)) : NULL;
	pthread_condattr_t attr;

	if (!p)
		return NULL;
	p->run = run;
	p->total = calls_to_read(run);
	clock_gettime(CLOCK_MONOTONIC, &p->begin);
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->stopped, &attr);
	pthread_condattr_destroy(&attr);
	if (!pthread_create(&p->thread, NULL, watch, p))
		return p;
	free(p);
	return NULL;
}

void tfh_progress_stop(struct tfh_progress *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_signal(&p->stopped);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	if (p->shown) {
		tfh_print(stderr, "\r\033[K");
		fflush(stderr);
	}
	pthread_cond_destroy(&p->stopped);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
