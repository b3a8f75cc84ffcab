/* A disk that fails. FAULT=CALL:ERRNO:FIRST:LAST lets these calls (write, ftruncate, close, counted
 * from 0, on trace files and journals; populate: room for rings) fail, FAULT_QUOTA=LIMIT:USED says
 * that the user has a quota of so many MiB. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/quota.h>
#include <sys/syscall.h>
#include <unistd.h>

static long raw(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}

static long answer(long r)
{
	if (r >= 0)
		return r;
	errno = (int)-r;
	return -1;
}

static int is_recording(int fd)
{
	char link[64], name[4096];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", fd);
	n = readlink(link, name, sizeof(name) - 1);
	if (n < 0)
		return 0;
	name[n] = '\0';
	return strstr(name, ".tft") || strstr(name, ".journal");
}

/* 0, or the error with which this call fails. */
static int fault(const char *call, int fd)
{
	static int calls;
	const char *text = getenv("FAULT");
	char which[32];
	int error, first, last, n;

	if (!text || sscanf(text, "%31[a-z]:%d:%d:%d", which, &error, &first, &last) != 4 ||
	    strcmp(which, call) || (fd >= 0 && !is_recording(fd)))
		return 0;
	n = __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	return n >= first && n <= last ? error : 0;
}

int madvise(void *at, size_t size, int advice)
{
	int error = advice == 23 ? fault("populate", -1) : 0;

	return (int)answer(error ? -error
				 : raw(SYS_madvise, (long)at, (long)size, advice, 0, 0, 0));
}

/* The recorder asks the kernel for its files, past libc's functions. */
long syscall(long n, ...)
{
	const char *text = getenv("FAULT_QUOTA");
	unsigned long limit, used;
	int error = 0;
	long a[6];
	va_list args;

	va_start(args, n);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (n == 443 && text && sscanf(text, "%lu:%lu", &limit, &used) == 2) {
		*(struct dqblk *)a[3] =
			(struct dqblk){.dqb_bhardlimit = limit << 10, .dqb_curspace = used << 20};
		return 0;
	}
	if (n == SYS_write)
		error = fault("write", (int)a[0]);
	else if (n == SYS_ftruncate)
		error = fault("ftruncate", (int)a[0]);
	else if (n == SYS_close)
		error = fault("close", (int)a[0]);
	/* Half of it is there, as where the last block was taken; a file is closed all the same. */
	if (error && n == SYS_write && a[2] > 1)
		raw(n, a[0], a[1], a[2] / 2, 0, 0, 0);
	if (error && n == SYS_close)
		raw(n, a[0], 0, 0, 0, 0, 0);
	return answer(error ? -error : raw(n, a[0], a[1], a[2], a[3], a[4], a[5]));
}
