#include "cli/ends.h"

#include <stdbool.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/proc.h"

/* From linux/pidfd.h, which may be older than the kernel. */
#define PIDFD_OPEN 434
struct process_info {
	uint64_t mask, cgroup;
	uint32_t pid, tgid, ppid, ids[8];
	int32_t exit_code;
};
#define GET_INFO _IOWR(0xff, 11, struct process_info)
#define INFO_EXIT (1u << 3)

static struct tfh_end_of *find(struct tfh_ends *e, pid_t pid, uint64_t start)
{
	for (uint32_t i = 0; i < e->n; i++)
		if (e->of[i].pid == pid && e->of[i].start == start)
			return &e->of[i];
	return NULL;
}

void tfh_ends_add(struct tfh_ends *e, pid_t pid, uint64_t start)
{
	int fd;

	if (e->n == TFH_ENDS || find(e, pid, start))
		return;
	fd = (int)syscall(PIDFD_OPEN, pid, 0);
	if (fd < 0)
		return;
	/* The pid may have been reused meanwhile. */
	if (!start || tfh_process_start(pid) != start) {
		close(fd);
		return;
	}
	e->of[e->n++] = (struct tfh_end_of){.pid = pid, .start = start, .fd = fd};
}

void tfh_ends_drop(struct tfh_ends *e, pid_t pid, uint64_t start)
{
	struct tfh_end_of *x = find(e, pid, start);

	if (!x)
		return;
	close(x->fd);
	*x = e->of[--e->n];
}

static bool is_known(struct tfh_end_of *x)
{
	struct process_info info = {.mask = INFO_EXIT};

	if (ioctl(x->fd, GET_INFO, &info) || !(info.mask & INFO_EXIT))
		return false;
	x->status = info.exit_code;
	return true;
}

void tfh_ends_ask(struct tfh_ends *e)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < e->n; i++) {
		bool known = is_known(&e->of[i]);
		close(e->of[i].fd);
		if (known)
			e->of[kept++] = e->of[i];
	}
	e->n = kept;
}
