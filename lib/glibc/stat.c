/* The stat functions, which the library has under these names since 2.33. The kernel's struct is
 * the library's. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int fstatat(int dir, const char *path, struct stat *st, int flags)
{
	return (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

int stat(const char *path, struct stat *st)
{
	return fstatat(AT_FDCWD, path, st, 0);
}

int lstat(const char *path, struct stat *st)
{
	return fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

int fstat(int fd, struct stat *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}
