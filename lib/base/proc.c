#include "base/proc.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

void tfh_read_small(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got = 1;

	while (fd >= 0 && n + 1 < size && got > 0) {
		got = read(fd, text + n, size - 1 - n);
		if (got > 0)
			n += (size_t)got;
	}
	if (fd >= 0)
		close(fd);
	text[n] = '\0';
}

uint64_t tfh_process_start(pid_t pid)
{
	char path[64], text[1024];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	tfh_read_small(path, text, sizeof(text));
	at = strrchr(text, ')'); /* the name before may contain anything */
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

/* Below the stack the kernel leaves at least that free of mappings, whatever the limit is. */
#define STACK_GAP (128ul << 20)

size_t tfh_main_stack_left(const void *here)
{
	/* The program's name lies at its top. */
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
	pthread_attr_getstack(&attr, &low, &bytes);
	pthread_attr_destroy(&attr);
	return here > (char *)low && here < (char *)low + bytes ? (size_t)(here - (char *)low) : 0;
}
