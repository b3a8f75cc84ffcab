/* Which processes of a job are sampled from outside, and since when they record or have ended. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/proc.h"
#include "cli/start_outside.h"

/* When samples of a process that recorded nothing are worth a report: they cover so much time at
 * its lines (of which a few may cover much, where each is expensive: deep stacks, a busy machine),
 * and there are so many of them with a line. */
#define WORTH_US 600000u
#define WORTH_LEAST 10u
/* One in so many searches for children also looks for those that other threads than the main one
 * started. */
#define SEARCHES 10u

void tfh_outside_why(struct tfh_outside_process *p, const char *what, int err)
{
	if (!*p->why && err != -ESRCH && err != -ENOENT)
		snprintf(p->why, sizeof(p->why), "%s of process %d: %s", what, (int)p->pid,
			 strerror(-err));
}

void tfh_outside_leave(struct tfh_outside_process *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

/* If it now executes another program, what was found out about it is invalid. */
static void follow_exec(struct tfh_outside_process *p)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", p->pid);
	if (stat(path, &st)) {
		p->ended = errno == ENOENT;
		tfh_outside_why(p, "/proc/PID/exe", -errno);
		return;
	}
	if (st.st_ino == p->inode && st.st_dev == p->device)
		return;
	p->inode = st.st_ino;
	p->device = st.st_dev;
	p->python = p->refused = false;
	p->types = (struct tfh_py_types){0};
	p->counters = (struct tfh_py_counters){.n = 0};
	p->others = (struct tfh_others_cpu){0};
	p->search_ns = 0;
	p->wait_ns = TFH_OUTSIDE_SEARCH_NS;
	p->why[0] = '\0';
	tfh_outside_leave(p);
	p->fd = tfh_waiting_open(p->pid, (uint32_t)p->pid);
	if (p->fd < 0)
		tfh_outside_why(p, "/proc/PID/syscall", p->fd);
}

/* Its end is awaited from here on, since it may record and end before the next look at the
 * directory. */
static void add_child(struct tfh_start_samples *s, int32_t pid)
{
	struct tfh_outside_process *p = &s->process[s->n_process];

	for (uint32_t i = 0; i < s->n_process; i++)
		if (s->process[i].pid == pid)
			return;
	*p = (struct tfh_outside_process){.pid = pid, .fd = -1, .start = tfh_process_start(pid)};
	s->n_process++;
	tfh_ends_add(&s->ends, p->pid, p->start);
}

/* Adds children: mostly of main threads, which is how launchers start processes; a pool's manager
 * thread may start its workers. Children of a process that records are its workers, which the
 * recorder samples. */
static void add_children(struct tfh_start_samples *s)
{
	bool all = s->searches++ % SEARCHES == SEARCHES - 1;
	int32_t child[TFH_OUTSIDE_PROCESSES];

	for (uint32_t i = 0; i < s->n_process; i++) {
		const struct tfh_outside_process *p = &s->process[i];
		int32_t pid = p->pid;
		uint32_t n = 0;

		if (!p->records && !p->ended)
			n = all && p->python ? tfh_all_children(pid, child, TFH_OUTSIDE_PROCESSES)
					     : tfh_children(pid, (uint32_t)pid, child,
							    TFH_OUTSIDE_PROCESSES);
		for (uint32_t k = 0; k < n && s->n_process < TFH_OUTSIDE_PROCESSES; k++)
			add_child(s, child[k]);
	}
}

void tfh_outside_find_recording(struct tfh_start_samples *s)
{
	int fd = fcntl(s->to->fd, F_DUPFD_CLOEXEC, 0);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!d && fd >= 0)
		close(fd);
	if (d)
		rewinddir(d); /* duplicated descriptors share the read position */
	while (d && (e = readdir(d))) {
		size_t n = strlen(e->d_name);
		for (uint32_t i = 0; i < s->n_process; i++) {
			char part[32];
			snprintf(part, sizeof(part), ".%d.", (int)s->process[i].pid);
			if (n > 4 && !strcmp(e->d_name + n - 4, ".tft") &&
			    strstr(e->d_name, part) && !s->process[i].records) {
				s->process[i].records = true;
				tfh_ends_add(&s->ends, s->process[i].pid, s->process[i].start);
				tfh_outside_leave(&s->process[i]);
			}
		}
	}
	if (d)
		closedir(d);
}

bool tfh_outside_is_worth(const struct tfh_outside_process *p)
{
	return p->records || (p->placed >= WORTH_LEAST && p->placed_us >= WORTH_US);
}

/* Removes a process that ended without recording, with its samples. */
static void forget(struct tfh_start_samples *s, uint32_t gone)
{
	uint32_t last = --s->n_process, kept = 0;

	tfh_outside_leave(&s->process[gone]);
	tfh_ends_drop(&s->ends, s->process[gone].pid, s->process[gone].start);
	s->process[gone] = s->process[last];
	tfh_start_others_forget(&s->others, gone, last);
	for (uint32_t i = 0; i < s->n; i++) {
		struct tfh_outside_sample k = s->sample[i];
		if (k.process == gone)
			continue;
		k.process = k.process == last ? gone : k.process;
		s->sample[kept++] = k;
	}
	s->n = kept;
}

void tfh_outside_choose(struct tfh_start_samples *s)
{
	add_children(s);
	tfh_outside_find_recording(s);
	for (uint32_t i = 0; i < s->n_process; i++)
		if (!s->process[i].records && !s->process[i].ended)
			follow_exec(&s->process[i]);
	/* A process that recorded nothing may be the only one, so even one that did little is kept
	 * while there is room. */
	for (uint32_t i = s->n_process; i-- > 0 && s->n_process == TFH_OUTSIDE_PROCESSES;)
		if (s->process[i].ended && !tfh_outside_is_worth(&s->process[i]))
			forget(s, i);
}
