/*
 * Schedules of the recorder by seed: schedules [-n COUNT] [-s SEED] [-m] [-t] [-1 SEED] [-x ACTION:ACTION]
 *
 * What must hold in each: no task waits more than a second or for ever, every record published
 * before an end is written once and in order, and what is refused is counted as lost. -m: schedules
 * with several processes; the first calls of a process and its forks. -1: one schedule again.
 * -t: the last points before a failure are printed. Failing seeds are printed; exit status 1.
 *
 * -x: no seeds, but every schedule of two actions (all where a name is missing) in which a signal
 * comes at one point of the first, and the second happens at another one. A seed's number depends
 * on the build; these schedules do not, so they stay when a seed has found something.
 */
#include "work.h"

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/process/recorder.h"

#define BATCH 5000 /* schedules of one process: what it maps and keeps is bounded by them */
#define BAD_MOST 1000

/* Shared with the process that runs a batch. */
static struct {
	uint64_t seed, done;
	uint32_t points; /* of a pair's first action */
	struct work_sums sums;
	char reason[200];
} * shared;
static bool several, trace, pairs;

void work_failed(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (!shared->reason[0]) /* the first reason is the one, a parent's is that its child failed
				 */
		vsnprintf(shared->reason, sizeof(shared->reason), fmt, args);
	va_end(args);
	if (trace)
		sched_trace();
	_exit(1);
}

static void failed(const char *reason)
{
	work_failed("%s", reason);
}

static void settings(void)
{
	static char total[] = "TFHOOK_RING_TOTAL=1M", *own[] = {total, NULL};

	tfh_options_read(&tfh_recorder.options, own);
	sched_failed = failed;
}

static void in_one_process(uint64_t seed)
{
	work_run(seed, false);
	work_reset();
}

/* A pair's schedule as a seed. */
#define PAIR(first, second, signal_at)                                                             \
	((uint64_t)(first) << 48 | (uint64_t)(second) << 40 | (uint64_t)(signal_at) << 20)
#define PART(seed, shift) ((uint32_t)((seed) >> (shift) & ((1u << 20) - 1)))

static void one_pair(uint64_t seed)
{
	uint32_t n = work_pair(PART(seed, 48), PART(seed, 40) & 255, PART(seed, 20), PART(seed, 0));

	if (!PART(seed, 0))
		shared->points = n;
	work_reset();
}

/* A loop without a point ends by its processor time; a wait that is none of the harness's by real time, of which a process beside
 * others may get no share for minutes. */
static void limit_time(void)
{
	struct itimerval most = {.it_value.tv_sec = 20};

	setitimer(ITIMER_PROF, &most, NULL);
	alarm(600);
}

/* Several: each schedule in a process of its own that has not recorded yet. */
static void one(uint64_t seed)
{
	int status;
	pid_t pid;

	shared->seed = seed;
	limit_time();
	if (pairs) {
		one_pair(seed);
		return;
	}
	if (!several) {
		in_one_process(seed);
		return;
	}
	pid = fork();
	if (!pid) {
		limit_time();
		work_run(seed, true);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
		if (!shared->reason[0])
			snprintf(shared->reason, sizeof(shared->reason), "ended by %x", status);
		_exit(1);
	}
}

/* Seeds from `first` on in a child; the number done. */
static uint64_t batch(uint64_t first, uint64_t n)
{
	int status;
	pid_t pid;

	shared->done = 0;
	shared->reason[0] = '\0';
	pid = fork();
	if (!pid) {
		if (!several)
			in_one_process(
				0); /* what a process does once: so that a seed does the same in every
				   place */
		for (uint64_t i = 0; i < n && !(pairs && PART(first, 0) + i > shared->points);
		     i++) {
			one(first + i);
			shared->done++;
		}
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		exit(2);
	if (status && !shared->reason[0])
		snprintf(shared->reason, sizeof(shared->reason), "ended by signal %d",
			 WTERMSIG(status));
	return shared->done;
}

/* Every place of the second action, for one place of the signal; how many failed. */
static uint64_t changes(uint32_t first, uint32_t second, uint32_t signal_at, uint64_t *done)
{
	uint64_t seed = PAIR(first, second, signal_at), bad = 0;

	shared->points = UINT32_MAX;
	for (;;) {
		uint64_t good = batch(seed, BATCH);

		*done += good;
		if (!shared->reason[0])
			return bad;
		seed = shared->seed + 1;
		bad++;
		printf("%s beside %s, signal at %u, %s at %u: %s\n", work_action(second),
		       work_action(first), signal_at, work_action(second), PART(shared->seed, 0),
		       shared->reason);
		fflush(stdout);
	}
}

static uint64_t one_by_one(const char *which, uint64_t *done)
{
	const char *colon = strchr(which, ':'), *first, *second;
	uint64_t bad = 0;

	for (uint32_t a = 0; colon && (first = work_action(a)); a++)
		for (uint32_t b = 0; (second = work_action(b)); b++) {
			if ((colon > which && strncmp(which, first, (size_t)(colon - which))) ||
			    (colon[1] && strcmp(colon + 1, second)))
				continue;
			uint32_t points = 0;
			for (uint32_t at = 0; at <= points && bad < BAD_MOST; at++) {
				bad += changes(a, b, at, done);
				points = at ? points : shared->points;
			}
		}
	return bad;
}

static void print_sums(void)
{
	const struct work_sums *s = &shared->sums;

	printf("%llu points, %llu records published (%llu as usual), %llu read; %llu calls refused, %llu told as "
	       "lost; %llu flushes, "
	       "%llu execs, %llu forks\n",
	       (unsigned long long)s->points, (unsigned long long)s->published,
	       (unsigned long long)s->usual, (unsigned long long)s->read,
	       (unsigned long long)s->refused, (unsigned long long)s->lost,
	       (unsigned long long)s->flushes, (unsigned long long)s->execs,
	       (unsigned long long)s->forks);
}

int main(int argc, char **argv)
{
	uint64_t count = 20000, seed = 1, bad = 0, done = 0;
	const char *which = NULL;
	cpu_set_t cpu;
	int option;

	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu); /* a turn is handed on within one processor */
	while ((option = getopt(argc, argv, "n:s:mt1:x:")) != -1)
		switch (option) {
		case 'n':
			count = strtoull(optarg, NULL, 0);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'm':
			several = true;
			break;
		case 't':
			trace = true;
			break;
		case '1':
			seed = strtoull(optarg, NULL, 0);
			count = 1;
			break;
		case 'x':
			pairs = true;
			which = optarg;
			break;
		default:
			return 2;
		}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 2;
	work_sums = &shared->sums;
	sched_setaffinity(0, sizeof(cpu), &cpu);
	settings();
	if (pairs) {
		bad = one_by_one(which, &done);
		printf("%llu schedules of %s: %llu failed\n", (unsigned long long)done, which,
		       (unsigned long long)bad);
		print_sums();
		return bad ? 1 : 0;
	}
	while (done < count && bad < BAD_MOST) {
		uint64_t n = count - done < BATCH ? count - done : BATCH;
		uint64_t good = batch(seed + done, n);

		done += good;
		if (good == n)
			continue;
		printf("seed %llu: %s\n", (unsigned long long)shared->seed, shared->reason);
		fflush(stdout);
		bad++;
		done++;
	}
	printf("%llu schedules%s from seed %llu: %llu failed\n", (unsigned long long)done,
	       several ? " of several processes" : "", (unsigned long long)seed,
	       (unsigned long long)bad);
	print_sums();
	return bad ? 1 : 0;
}
