/*
 * A line on the terminal while a long recording is judged, or files are read: how much was read,
 * how fast, and the time left. A separate thread prints it, from a counter of the run or from the
 * kernel's count of this process' reads, so the work is not affected. Nothing is printed if stderr
 * is not a terminal, or in the first second.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/print.h"
#include "base/proc.h"
#include "cli/cli.h"
#include "import/import.h"
#include "model/model.h"

/* Delay of the first line, and interval of the others. */
#define FIRST_MS 1000
#define EVERY_MS 250

struct tfh_progress {
	const struct tfh_run *run; /* NULL: bytes of files are counted */
	double total;		   /* calls to read, over all passes; or bytes */
	uint64_t before;	   /* bytes that this process had read before */
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
		calls +=
			p[i].has_gpu || p[i].has_tf || p[i].has_marks ? 2 * (double)p[i].events : 0;
	return calls;
}

static double seconds_since(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - t->tv_sec) + (double)(now.tv_nsec - t->tv_nsec) / 1e9;
}

/* Bytes that this process has read from files; 0: the kernel does not count them. */
static uint64_t bytes_read(void)
{
	char text[512];

	tfh_read_small("/proc/self/io", text, sizeof(text));
	uint64_t n = tfh_number_of_line(text, "rchar:");
	return n == UINT64_MAX ? 0 : n;
}

/* Bytes of a file, or of the files in a directory. */
static double bytes_of(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	struct stat st;
	double sum = 0;

	if (!d)
		return !stat(path, &st) && S_ISREG(st.st_mode) ? (double)st.st_size : 0;
	while ((e = readdir(d)))
		if (!fstatat(dirfd(d), e->d_name, &st, 0) && S_ISREG(st.st_mode))
			sum += (double)st.st_size;
	closedir(d);
	return sum;
}

static void show(struct tfh_progress *p)
{
	double read = (double)(p->run ? tfh_run_unpacked(p->run) : bytes_read() - p->before);
	double took = seconds_since(&p->begin), rate = took > 0 ? read / took : 0;

	if (read <= 0 || rate <= 0)
		return;
	double part = p->total > read ? read / p->total : 1;
	tfh_print(stderr, "\r\033[Ktfhook: %.0f %% read, %.1f %s/s, about %.0f s left", 100 * part,
		  rate / 1e6, p->run ? "million calls" : "MB",
		  p->total > read ? (p->total - read) / rate : 0);
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

static struct tfh_progress *start(const struct tfh_run *run, double total, uint64_t before)
{
	struct tfh_progress *p = isatty(STDERR_FILENO) ? calloc(1, sizeof(*p)) : NULL;
	pthread_condattr_t attr;

	if (!p)
		return NULL;
	p->run = run;
	p->total = total;
	p->before = before;
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

struct tfh_progress *tfh_progress_start(struct tfh_run *run)
{
	return start(run, calls_to_read(run), 0);
}

struct tfh_progress *tfh_progress_files(const char *const *paths, size_t n)
{
	double total = 0;
	uint64_t before = bytes_read();

	for (size_t i = 0; i < n; i++)
		total += bytes_of(paths[i]);
	return before && total > 0 ? start(NULL, total, before) : NULL;
}

static void erase(struct tfh_progress *p)
{
	if (!p->shown)
		return;
	tfh_put("\r\033[K", stderr);
	fflush(stderr);
	p->shown = false;
}

void tfh_progress_hold(struct tfh_progress *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	erase(p);
}

void tfh_progress_go_on(struct tfh_progress *p)
{
	if (!p)
		return;
	fflush(stdout);
	pthread_mutex_unlock(&p->lock);
}

int tfh_progress_open(const char *const *paths, uint32_t n, struct tfh_run **run,
		      struct tfh_err *err)
{
	/* Opening a recording reads only its headers. */
	bool foreign = n && tfh_import_is_foreign(paths[0]);
	struct tfh_progress *progress = foreign ? tfh_progress_files(paths, n) : NULL;
	int code = tfh_import_open(paths, n, run, err);

	tfh_progress_stop(progress);
	return code;
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
	erase(p);
	pthread_cond_destroy(&p->stopped);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
