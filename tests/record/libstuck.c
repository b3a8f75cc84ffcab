/* A driver without threads of its own, and under another name an NVML whose first call never returns where STUCK is
 * set, and else says that there is nothing. */
#include <stdlib.h>
#include <unistd.h>

int cuInit(unsigned flags)
{
	return (int)flags;
}

int cuCtxGetCurrent(void **context)
{
	*context = &environ;
	return 0;
}

int cuCtxGetDevice(int *device)
{
	*device = 0;
	return 0;
}

int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes)
{
	(void)from;
	(void)bytes;
	return to == 0;
}

int nvmlInit_v2(void)
{
	enum { NO_DRIVER = 9 };

	while (getenv("STUCK"))
		pause();
	return NO_DRIVER;
}
