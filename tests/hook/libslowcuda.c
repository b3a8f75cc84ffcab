/* A driver of a few functions that takes its time for every question of cuGetProcAddress. */
#include <string.h>
#include <time.h>

int cuInit(unsigned flags)
{
	return flags ? 1 : 0;
}

/* Of its own: a preload's definition of the exported name must not be what it answers. */
static int alloc(unsigned long long *address, size_t bytes)
{
	*address = bytes;
	return 0;
}

int cuMemAlloc_v2(unsigned long long *address, size_t bytes) __attribute__((alias("alloc")));

int cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long long flags,
			int *status)
{
	nanosleep(&(struct timespec){0, 1000000}, NULL);
	*status = (int)flags;
	*found = version >= 3020 && !strcmp(name, "cuMemAlloc") ? (void *)alloc : NULL;
	return *found ? 0 : 500;
}
