/* A wall clock that is set while programs run: real time plus the seconds in the first eight bytes of the file that CLOCK_AHEAD names. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("CLOCK_AHEAD");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, 8, PROT_READ, MAP_SHARED, fd, 0);

	if (at != MAP_FAILED)
		ahead = at;
	if (fd >= 0)
		close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	static int (*real)(clockid_t, struct timespec *);

	if (!real)
		real = dlsym(RTLD_NEXT, "clock_gettime");
	int rc = real(clock, t);
	if (!rc && ahead && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		t->tv_sec += *ahead;
	return rc;
}

time_t time(time_t *out)
{
	struct timespec t = {0};

	clock_gettime(CLOCK_REALTIME, &t);
	if (out)
		*out = t.tv_sec;
	return t.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
	struct timespec t = {0};

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &t);
	*out = (struct timeval){.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};
	return 0;
}
