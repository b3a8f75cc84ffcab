/* A driver whose functions do nothing: what remains of a call is the call. */
#include <stddef.h>

typedef unsigned long long ptr;

int cuInit(unsigned flags)
{
	return (int)flags;
}

int cuCtxGetCurrent(void **context)
{
	*context = (void *)0xc0;
	return 0;
}

int cuCtxGetDevice(int *device)
{
	*device = 0;
	return 0;
}

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		   unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
	(void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared,
		(void)stream, (void)params;
	return extra != NULL;
}

int cuLaunchKernelEx(const void *config, void *f, void **params, void **extra)
{
	(void)config, (void)f, (void)params;
	return extra != NULL;
}

int cuMemcpyHtoDAsync_v2(ptr dst, const void *src, size_t bytes, void *stream)
{
	(void)src, (void)bytes, (void)stream;
	return dst == 0;
}

int cuMemcpy2DAsync_v2(const void *copy, void *stream)
{
	(void)stream;
	return copy == NULL;
}

int cuMemsetD8Async(ptr dst, unsigned char value, size_t bytes, void *stream)
{
	(void)value, (void)bytes, (void)stream;
	return dst == 0;
}

int cuStreamSynchronize(void *stream)
{
	return stream == (void *)3;
}

int cuEventRecord(void *event, void *stream)
{
	(void)stream;
	return event == NULL;
}

int cuEventQuery(void *event)
{
	return event == NULL;
}

int cuGraphLaunch(void *exec, void *stream)
{
	(void)stream;
	return exec == NULL;
}

int cuMemAllocAsync(ptr *out, size_t bytes, void *stream)
{
	(void)stream;
	*out = 0x1000;
	return bytes == 0;
}

int cuMemFreeAsync(ptr address, void *stream)
{
	(void)stream;
	return address == 0;
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
	(void)event;
	return stream == NULL && flags;
}

int cuStreamCreate(void **stream, unsigned flags)
{
	*stream = (void *)0x6000;
	return flags != 0;
}

int cuStreamDestroy_v2(void *stream)
{
	return stream == NULL;
}

int cuLaunchHostFunc(void *stream, void (*fn)(void *), void *user)
{
	fn(user);
	return stream == NULL;
}

int cuStreamIsCapturing(void *stream, int *status)
{
	*status = 0;
	return stream == NULL;
}
