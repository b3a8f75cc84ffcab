#include "base/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

#define CHILD_THREADS 64

static int read_small(int at, const char *name, int flags, char *text, size_t size)
{
	int fd = tfh_openat(at, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags, 0), err = 0;
	struct stat st;
	size_t n = 0;
	ssize_t got = 1;

	text[0] = '\0';
	if (fd < 0)
		return -errno;
	if (tfh_fstat(fd, &st) || !S_ISREG(st.st_mode))
		err = -EINVAL;
	while (!err && n + 1 < size && got > 0) {
		got = tfh_read(fd, text + n, size - 1 - n);
		if (got > 0)
			n += (size_t)got;
		else if (got < 0 && errno == EINTR)
			got = 1;
		else if (got < 0)
			err = -errno;
	}
	tfh_close(fd);
	text[n] = '\0';
	return err;
}

void tfh_read_small(const char *path, char *text, size_t size)
{
	read_small(AT_FDCWD, path, 0, text, size);
}

uint64_t tfh_number_of_line(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *at = text; at && *at; at = strchr(at, '\n'), at += at != NULL)
		if (!strncmp(at, key, n))
			return strtoull(at + n, NULL, 10);
	return UINT64_MAX;
}

int tfh_read_small_at(int at, const char *name, char *text, size_t size)
{
	return read_small(at, name, O_NOFOLLOW, text, size);
}

int tfh_raise_fd(int fd)
{
	struct rlimit limit;
	int least = 1024 - 16, high;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < 1024)
		least = (int)limit.rlim_cur - 16;
	for (; least > fd; least /= 2) {
		high = tfh_fcntl(fd, F_DUPFD_CLOEXEC, least);
		if (high >= 0) {
			tfh_close(fd);
			return high;
		}
	}
	return fd;
}

uint64_t tfh_process_start(pid_t pid)
{
	char path[64], text[1024];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	tfh_read_small(path, text, sizeof(text));
	at = strrchr(text, ')'); /* the name before it may contain anything */
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

uint32_t tfh_children(pid_t pid, uint32_t tid, int32_t *child, uint32_t most)
{
	char path[64], text[1024], *at = text, *end;
	uint32_t n = 0;
	long number;

	snprintf(path, sizeof(path), "/proc/%d/task/%u/children", (int)pid, tid);
	tfh_read_small(path, text, sizeof(text));
	for (; n < most && (number = strtol(at, &end, 10)) > 0 && *end == ' '; at = end)
		child[n++] = (int32_t)number;
	return n;
}

uint32_t tfh_all_children(pid_t pid, int32_t *child, uint32_t most)
{
	uint32_t n = 0, threads = 0;
	struct dirent *e;
	char path[64];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	for (; d && threads < CHILD_THREADS && (e = readdir(d)); threads++)
		n += tfh_children(pid, (uint32_t)strtoul(e->d_name, NULL, 10), child + n, most - n);
	if (d)
		closedir(d);
	return n;
}

bool tfh_last_threads(unsigned n)
{
	char text[1024];
	const char *at, *state;

	tfh_read_small("/proc/self/stat", text, sizeof(text));
	state = at = strrchr(text, ')');
	for (int field = 2; at && field < 20; field++)
		at = strchr(at + 1, ' ');
	/* An ended main thread is counted as long as the process lives. */
	return at && !strncmp(state, ") Z", 3) && strtoul(at + 1, NULL, 10) == n + 1;
}

int tfh_call_filters_open(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%ld/status", syscall(SYS_gettid));
	return tfh_open(path, O_RDONLY | O_CLOEXEC);
}

uint32_t tfh_call_filters(int fd)
{
	char text[4096];
	uint64_t mode, filters;
	ssize_t n = tfh_pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	mode = tfh_number_of_line(text, "Seccomp:");
	filters = tfh_number_of_line(text, "Seccomp_filters:");
	return (mode < UINT16_MAX ? (uint32_t)mode << 16 : 0) +
	       (filters < UINT16_MAX ? (uint32_t)filters : 0);
}

/* The kernel reads the signal set before it rejects the invalid request. */
bool tfh_readable(const void *address)
{
	int saved = errno;
	bool there = syscall(SYS_rt_sigprocmask, ~0, address, NULL, 8ul) < 0 && errno == EINVAL;

	errno = saved;
	return there;
}

uint64_t tfh_namespace(const char *name)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	return stat(path, &st) ? 0 : st.st_ino;
}

/* The kernel keeps at least this gap below the stack free of mappings, whatever the limit is. */
#define STACK_GAP (128ul << 20)

size_t tfh_main_stack_left(const void *here)
{
	/* The program's name is at the top of the stack. */
	uintptr_t end = getauxval(AT_EXECFN), at = (uintptr_t)here;
	size_t most = STACK_GAP;
	struct rlimit limit;

	if (!getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur < most)
		most = limit.rlim_cur;
	return at < end && end - at < most ? most - (end - at) : 0;
}

size_t tfh_stack_left(void)
{
	char *here = __builtin_frame_address(0);
	pthread_attr_t attr;
	size_t bytes = 0;
	void *low = NULL;

	if (syscall(SYS_gettid) == getpid())
		return tfh_main_stack_left(here);
	if (pthread_getattr_np(pthread_self(), &attr))
		return 0;
	if (pthread_attr_getstack(&attr, &low, &bytes))
		bytes = 0;
	pthread_attr_destroy(&attr);
	return here > (char *)low && here < (char *)low + bytes ? (size_t)(here - (char *)low) : 0;
}
