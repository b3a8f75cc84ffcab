#include "record/watch/workers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/proc.h"
#include "record/process/log.h"
#include "record/process/recorder.h"
#include "record/ring/staging.h"
#include "record/stacks/pyplaces.h"
#include "sampling/waiting.h"

#define WORKERS 64u
#define TRIES 10u /* a program that has just started has no interpreter yet */

struct worker {
	struct tfh_place_child child;
	int fd; /* also shows whether the process is still alive */
	uint32_t tries;
};

static struct {
	struct worker worker[WORKERS];
	uint32_t n;
	bool ended; /* one of them, since they were chosen */
	char why[128];
} workers;

/* ---- which ---- */

static void refused(const char *file, int err)
{
	if (*workers.why || err == -ESRCH || err == -ENOENT) /* it has ended */
		return;
	snprintf(workers.why, sizeof(workers.why), "/proc/PID/%s: %s", file, strerror(-err));
	tfh_log(1, "child processes are not sampled: %s", workers.why);
}

static bool same_program(int32_t pid)
{
	struct stat here, there;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	if (stat("/proc/self/exe", &here))
		return false;
	if (stat(path, &there)) {
		refused("exe", -errno);
		return false;
	}
	return here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

static void take(struct worker *w)
{
	w->fd = tfh_waiting_open(w->child.pid, (uint32_t)w->child.pid);
	if (w->fd >= 0)
		workers.n++;
	else
		refused("syscall", w->fd);
}

/* Workers of `old` that still exist keep what is known about them. */
static void add_child(int32_t pid, struct worker *old, uint32_t n_old)
{
	struct worker *w = &workers.worker[workers.n];

	for (uint32_t i = 0; i < n_old; i++)
		if (old[i].fd >= 0 && old[i].child.pid == pid) {
			*w = old[i];
			if (w->child.known == 2 && w->tries++ < TRIES)
				w->child.known = 0;
			old[i].fd = -1;
			workers.n++;
			return;
		}
	*w = (struct worker){.child.pid = pid};
	if (same_program(pid))
		take(w);
}

/* Adds the children of a thread and, one level down, the children of those. */
static void add_children(int32_t pid, uint32_t tid, struct worker *old, uint32_t n_old)
{
	int32_t child[WORKERS];
	uint32_t first = workers.n, n = tfh_children(pid, tid, child, WORKERS);

	for (uint32_t i = 0; i < n && workers.n < WORKERS; i++)
		add_child(child[i], old, n_old);
	for (uint32_t i = first, last = workers.n; pid == tfh_recorder.pid && i < last; i++)
		add_children(workers.worker[i].child.pid, (uint32_t)workers.worker[i].child.pid,
			     old, n_old);
}

void tfh_workers_choose(const uint32_t *tid, uint32_t n)
{
	struct worker old[WORKERS];
	uint32_t n_old = workers.n;

	memcpy(old, workers.worker, sizeof(old));
	workers.n = 0;
	workers.ended = false;
	for (uint32_t i = 0; i < n; i++)
		add_children(tfh_recorder.pid, tid[i], old, n_old);
	for (uint32_t i = 0; i < n_old; i++)
		if (old[i].fd >= 0)
			tfh_close(old[i].fd);
}

/* ---- one sample ---- */

void tfh_workers_sample(uint64_t random, uint64_t ns)
{
	struct worker *w = workers.n ? &workers.worker[random % workers.n] : NULL;
	struct tfh_waiting seen, after;
	struct tfh_rec r = {.kind = TFT_CHILD};
	int32_t pid;
	int err;

	if (!w)
		return;
	pid = w->child.pid;
	r.t_begin = r.t_end = tfh_ticks();
	err = tfh_waiting_sample(w->fd, pid, (uint32_t)pid, &seen);
	if (err) { /* usually it has ended; the next choice notices that */
		refused("syscall", err);
		workers.ended = true;
		return;
	}
	r.result = (uint16_t)seen.state;
	r.ctx = (uint32_t)pid;
	r.stack = tfh_place_child(&w->child);
	/* Check that it is still the same process: its pid may have been reused. */
	if (tfh_waiting_sample(w->fd, pid, (uint32_t)pid, &after))
		return;
	r.w[0] = seen.what;
	r.w[1] = seen.call | (uint64_t)(uint32_t)seen.fd << 32;
	r.w[2] = ns * workers.n;
	tfh_stage_own(&r, 1);
}

bool tfh_workers_ended(void)
{
	return workers.ended;
}

const char *tfh_workers_why(void)
{
	return *workers.why ? workers.why : NULL;
}

void tfh_workers_forget(void)
{
	memset(&workers, 0, sizeof(workers));
}
