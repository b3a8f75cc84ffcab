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

int open(const char *path, int flags, ...)
{
	int (*real)(const char *, int, ...) =
		(int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
	size_t n = strlen(path);
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	while (getenv("FULL_HANGS") && n > 4 && !strcmp(path + n - 4, ".tft"))
		pause();
	return real(path, flags, mode);
}
