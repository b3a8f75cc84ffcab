/*
 * A file system that fails, for what lies below the directory that FAULTS_UNDER names: preloaded,
 *it answers calls with the errno of FAULTS, or makes them wait.
 *
 *	FAULTS=CALL:ERRNO:FIRST[:COUNT],...	CALL: open mkdir write populate ftruncate close
 *mmap wipe (what is made of the first hooked call)
 *
 * From its FIRST (1 ...) such call on, COUNT of them (0 or none: all that follow) fail with ERRNO;
 *a negative ERRNO is a wait of that many milliseconds, after which the call is made.
 *
 *	FAULTS_KILL=N:US
 *
 * The process is killed before its Nth call that changes a file or makes room in one, wherever that lies, or US microseconds after
 * that call began.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum call { OPEN, MKDIR, WRITE, POPULATE, FTRUNCATE, CLOSE, MMAP, WIPE, CALLS };
static const char *const names[CALLS] = {"open",      "mkdir", "write", "populate",
					 "ftruncate", "close", "mmap",	"wipe"};

static struct fault {
	long first, count, error, seen;
} faults[CALLS];
static const char *under;
static long kill_at, kill_us, changes;

__attribute__((constructor)) static void read_faults(void)
{
	const char *text = getenv("FAULTS");

	under = getenv("FAULTS_UNDER");
	if (getenv("FAULTS_KILL"))
		sscanf(getenv("FAULTS_KILL"), "%ld:%ld", &kill_at, &kill_us);
	for (; under && text && *text; text += *text == ',') {
		size_t len = strcspn(text, ":,");

		for (int c = 0; c < CALLS; c++)
			if (strlen(names[c]) == len && !strncmp(text, names[c], len))
				sscanf(text + len, ":%ld:%ld:%ld", &faults[c].error,
				       &faults[c].first, &faults[c].count);
		text += strcspn(text, ",");
	}
}

static int below(const char *path)
{
	return under && !strncmp(path, under, strlen(under));
}

static int fd_below(int fd)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	return below(path);
}

/* True: this call is to fail; errno says how. */
static int fails(enum call c)
{
	struct fault *f = &faults[c];
	long nth;

	if (!f->first)
		return 0;
	nth = __atomic_add_fetch(&f->seen, 1, __ATOMIC_RELAXED);
	if (nth < f->first || (f->count && nth >= f->first + f->count))
		return 0;
	if (f->error < 0) {
		struct timespec ts = {-f->error / 1000, -f->error % 1000 * 1000000};

		nanosleep(&ts, NULL);
		return 0;
	}
	errno = (int)f->error;
	return 1;
}

/* Called before such a call. */
static void change(void)
{
	struct itimerspec when = {.it_value.tv_nsec = kill_us * 1000};
	struct sigevent kills = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	int saved = errno;
	timer_t timer;

	if (!kill_at || __atomic_add_fetch(&changes, 1, __ATOMIC_RELAXED) != kill_at)
		return;
	if (!kill_us || timer_create(CLOCK_MONOTONIC, &kills, &timer) ||
	    timer_settime(timer, 0, &when, NULL))
		kill(getpid(), SIGKILL);
	errno = saved;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int mkdir(const char *path, mode_t mode)
{
	change();
	return below(path) && fails(MKDIR) ? -1 : NEXT(mkdir)(path, mode);
}

int linkat(int from, const char *path, int to, const char *name, int flags)
{
	change();
	return NEXT(linkat)(from, path, to, name, flags);
}

int unlinkat(int at, const char *path, int flags)
{
	change();
	return NEXT(unlinkat)(at, path, flags);
}

/* Room for rings is made through the journal's mapping. */
int madvise(void *at, size_t size, int advice)
{
	if (advice == 23)
		change();
	if (advice == 18 && fails(WIPE))
		return -1;
	return advice == 23 && fails(POPULATE) ? -1 : NEXT(madvise)(at, size, advice);
}

static int opens_below(int dir, const char *path)
{
	return below(path) || (path[0] != '/' && dir >= 0 && fd_below(dir));
}

static int changes_file(long n, const long a[6])
{
	switch (n) {
	case SYS_openat:
		return a[2] & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY));
	case SYS_write:
	case SYS_pwrite64:
	case SYS_ftruncate:
	case SYS_fallocate:
	case SYS_linkat:
		return 1;
	case SYS_close:
		return kill_at && fd_below((int)a[0]);
	}
	return 0;
}

static int refused(long n, const long a[6])
{
	switch (n) {
	case SYS_openat:
		return opens_below((int)a[0], (const char *)a[1]) && fails(OPEN);
	case SYS_write:
		return faults[WRITE].first && fd_below((int)a[0]) && fails(WRITE);
	case SYS_ftruncate:
		return faults[FTRUNCATE].first && fd_below((int)a[0]) && fails(FTRUNCATE);
	case SYS_close:
		return faults[CLOSE].first && fd_below((int)a[0]) && fails(CLOSE);
	}
	return 0;
}

/* The recorder asks the kernel for its files, past libc's functions. */
long syscall(long n, ...)
{
	static long (*real)(long, ...);
	long a[6];
	va_list args;

	va_start(args, n);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (!real)
		real = NEXT(syscall);
	if (kill_at && changes_file(n, a))
		change();
	if (refused(n, a)) {
		int error = errno;

		if (n == SYS_close) /* it is closed all the same */
			real(n, a[0]);
		errno = error;
		return -1;
	}
	return real(n, a[0], a[1], a[2], a[3], a[4], a[5]);
}

void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t off)
{
	static void *(*real)(void *, size_t, int, int, int, off_t);

	if (!real)
		real = NEXT(mmap);
	if (fd >= 0 && flags & MAP_SHARED)
		change();
	return faults[MMAP].first && fd >= 0 && fd_below(fd) && fails(MMAP)
		       ? MAP_FAILED
		       : real(at, size, prot, flags, fd, off);
}
