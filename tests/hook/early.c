/* Looks names up before any constructor has run, as a sanitizer's runtime does, with libnotready.so
 * in front: early. Every answer must be the one that a later lookup gives. */
#include <dlfcn.h>
#include <stdio.h>

#include "base/arch.h"

static void *found[4];

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
	now = (void (*)(void))dlsym(RTLD_DEFAULT, "not_ready_until_now");
	if (now)
		now();
}

__attribute__((section(".preinit_array"), used)) static void (*before)(void) = early;

int main(void)
{
	void *later[4];

	look(later);
	for (int i = 0; i < 4; i++)
		if (!found[i] || found[i] != later[i])
			return printf("lookup %d: %p, later %p\n", i, found[i], later[i]), 1;
	return 3;
}
