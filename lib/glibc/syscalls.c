/* System calls that got a function of their own after 2.17. */
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

pid_t gettid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

ssize_t getrandom(void *bytes, size_t n, unsigned flags)
{
	return syscall(SYS_getrandom, bytes, n, flags);
}

int memfd_create(const char *name, unsigned flags)
{
	return (int)syscall(SYS_memfd_create, name, flags);
}
