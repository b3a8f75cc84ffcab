/* A driver of a few functions that does nothing, so that a call costs a few ns and survives a fork,
 * a seccomp filter and a signal at any moment. It counts what arrives, as the truth of the driver's
 * side. A copy to the address 1 raises the signal whose number is its length, inside the call. */
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuMemcpyHtoD_v2(uint64_t device, const void *host, size_t bytes);
int cuStreamDestroy_v2(void *stream);
int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *found);
uint64_t driver_arrived(void);

static uint64_t arrived;

int cuInit(unsigned flags)
{
	(void)flags;
	return 0;
}

int cuDriverGetVersion(int *version)
{
	*version = 13000;
	return 0;
}

int cuMemcpyHtoD_v2(uint64_t device, const void *host, size_t bytes)
{
	(void)host;
	__atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
	if (device == 1)
		raise((int)bytes);
	return 0;
}

int cuStreamDestroy_v2(void *stream)
{
	(void)stream;
	__atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
	return 0;
}

int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *found)
{
	static const struct {
		const char *name;
		void *function;
	} all[] = {{"cuInit", (void *)cuInit},
		   {"cuDriverGetVersion", (void *)cuDriverGetVersion},
		   {"cuMemcpyHtoD", (void *)cuMemcpyHtoD_v2},
		   {"cuStreamDestroy", (void *)cuStreamDestroy_v2},
		   {"cuGetProcAddress", (void *)cuGetProcAddress_v2}};

	(void)version, (void)flags;
	*function = NULL;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(name, all[i].name))
			*function = all[i].function;
	if (found)
		*found = *function ? 0 : 1;
	return *function ? 0 : 500;
}

uint64_t driver_arrived(void)
{
	return __atomic_load_n(&arrived, __ATOMIC_RELAXED);
}
