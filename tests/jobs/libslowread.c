/*
 * Makes reading some files slow, as a distant file system would: preloaded, it sleeps after each
 * read(2) or pread(2) of a file whose path contains SLOWREAD_TOKEN, SLOWREAD_NS_PER_BYTE
 * nanoseconds for every byte read.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static void slow_down(int fd, ssize_t n)
{
	const char *token = getenv("SLOWREAD_TOKEN"), *rate = getenv("SLOWREAD_NS_PER_BYTE");
	char link[64], path[PATH_MAX];
	int saved_errno = errno;
	ssize_t length;

	if (n > 0 && token && *token && rate) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		length = readlink(link, path, sizeof(path) - 1);
		path[length > 0 ? length : 0] = '\0';
		if (strstr(path, token)) {
			double ns = (double)n * atof(rate);
			struct timespec wait = {(time_t)(ns / 1e9), (long)ns % 1000000000};
			nanosleep(&wait, NULL);
		}
	}
	errno = saved_errno;
}

ssize_t read(int fd, void *buffer, size_t size)
{
	static ssize_t (*real)(int, void *, size_t);

	if (!real)
		real = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
	ssize_t n = real(fd, buffer, size);
	slow_down(fd, n);
	return n;
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
	static ssize_t (*real)(int, void *, size_t, off_t);

	if (!real)
		real = (ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");
	ssize_t n = real(fd, buffer, size, offset);
	slow_down(fd, n);
	return n;
}

ssize_t pread64(int fd, void *buffer, size_t size, off64_t offset)
{
	return pread(fd, buffer, size, offset);
}
