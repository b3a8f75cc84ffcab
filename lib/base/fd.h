/*
 * Descriptor calls as direct system calls. Other preloaded libraries (user-space sockets and file
 * systems, I/O profilers) wrap libc's functions and keep tables of the job's descriptors by number.
 * The flusher has a descriptor table of its own (lib/record/process/apart.h), in which the same
 * number is another file: such a library would take our descriptor for the job's and write to that.
 *
 * Results are as those of libc's functions of the same names: -1 and errno.
 */
#ifndef TFH_BASE_FD_H
#define TFH_BASE_FD_H

#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static inline int tfh_openat(int at, const char *path, int flags, mode_t mode)
{
	return (int)syscall(SYS_openat, at, path, flags, mode);
}

static inline int tfh_open(const char *path, int flags)
{
	return tfh_openat(AT_FDCWD, path, flags, 0);
}

static inline int tfh_close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

static inline ssize_t tfh_read(int fd, void *to, size_t len)
{
	return syscall(SYS_read, fd, to, len);
}

static inline ssize_t tfh_pread(int fd, void *to, size_t len, off_t from)
{
	return syscall(SYS_pread64, fd, to, len, from);
}

static inline ssize_t tfh_write(int fd, const void *from, size_t len)
{
	return syscall(SYS_write, fd, from, len);
}

static inline ssize_t tfh_pwrite(int fd, const void *from, size_t len, off_t to)
{
	return syscall(SYS_pwrite64, fd, from, len, to);
}

static inline int tfh_fstat(int fd, struct stat *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

static inline int tfh_ftruncate(int fd, off_t size)
{
	return (int)syscall(SYS_ftruncate, fd, size);
}

static inline off_t tfh_lseek(int fd, off_t to, int whence)
{
	return syscall(SYS_lseek, fd, to, whence);
}

static inline int tfh_fcntl(int fd, int what, unsigned long arg)
{
	return (int)syscall(SYS_fcntl, fd, what, arg);
}

#endif
