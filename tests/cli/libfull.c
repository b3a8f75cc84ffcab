/* A file system that seems full: FULL_MKDIR=1 lets mkdir fail, FULL_FREE_MB=n leaves n MiB in
 * statvfs, FULL_NO_SHM=1 takes /dev/shm away; with FULL_HANGS=1 whoever opens a trace file waits
 * for ever. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

int mkdir(const char *path, mode_t mode)
{
	int (*real)(const char *, mode_t) =
		(int (*)(const char *, mode_t))dlsym(RTLD_NEXT, "mkdir");

	if (getenv("FULL_MKDIR")) {
		errno = ENOSPC;
		return -1;
	}
	return real(path, mode);
}

int statvfs(const char *path, struct statvfs *st)
{
	int (*real)(const char *, struct statvfs *) =
		(int (*)(const char *, struct statvfs *))dlsym(RTLD_NEXT, "statvfs");
	const char *free_mb = getenv("FULL_FREE_MB");

	if (getenv("FULL_NO_SHM") && !strcmp(path, "/dev/shm")) {
		errno = ENOENT;
		return -1;
	}
	int r = real(path, st);
	if (!r && free_mb && strcmp(path, "/dev/shm")) {
		st->f_frsize = st->f_bsize = 4096;
		st->f_blocks = (10ull << 30) / 4096;
		st->f_bavail = st->f_bfree = ((unsigned long)atol(free_mb) << 20) / 4096;
	}
	return r;
}

/* What reads a trace opens it by its path, past libc's open; the recorder makes it below its
 * directory. */
long syscall(long n, ...)
{
	long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long a[6];
	va_list args;

	va_start(args, n);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (n == SYS_openat && (int)a[0] == AT_FDCWD && getenv("FULL_HANGS")) {
		const char *path = (const char *)a[1];
		size_t len = strlen(path);

		while (len > 4 && !strcmp(path + len - 4, ".tft"))
			pause();
	}
	return real(n, a[0], a[1], a[2], a[3], a[4], a[5]);
}
