/* Looks names up and makes system calls before any constructor has run, as a sanitizer's runtime does, with libnotready.so
 * in front: early. Every answer must be the one that a later lookup gives. */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arch.h"

static void *found[4];
static bool answered;

/* Six arguments, a result and an error. */
static bool system_calls(void)
{
	long at = syscall(SYS_mmap, 0l, 4096l, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1l, 0l);

	errno = 0;
	return at > 0 && !syscall(SYS_munmap, at, 4096l) && syscall(SYS_getppid) == getppid() &&
	       syscall(SYS_close, -1) == -1 && errno == EBADF &&
	       syscall(SYS_seccomp, ~0u, 0, 0) == -1 && errno == EINVAL;
}

static void look(void **to)
{
	to[0] = dlsym(RTLD_NEXT, "puts");
	to[1] = dlvsym(RTLD_NEXT, "puts", TFH_ARCH_GLIBC);
	to[2] = dlsym(RTLD_DEFAULT, "strcmp");
	to[3] = dlvsym(RTLD_NEXT, "dl_iterate_phdr", TFH_ARCH_GLIBC);
}

static void early(void)
{
	void (*now)(void);

	look(found);
	answered = system_calls();
	now = (void (*)(void))dlsym(RTLD_DEFAULT, "not_ready_until_now");
	if (now)
		now();
}

__attribute__((section(".preinit_array"), used)) static void (*before)(void) = early;

int main(void)
{
	void *later[4];

	if (!answered || !system_calls())
		return printf("syscall()\n"), 1;
	look(later);
	for (int i = 0; i < 4; i++)
		if (!found[i] || found[i] != later[i])
			return printf("lookup %d: %p, later %p\n", i, found[i], later[i]), 1;
	return 3;
}
