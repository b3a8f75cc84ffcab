/* Another preload: it exports driver functions and a libc one, and goes on to the next definition
 * with RTLD_NEXT. Its constructor looks names up before anybody else's constructor has run. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int next_allocs, next_puts;
static void *early;

__attribute__((constructor)) static void begin(void)
{
	early = dlsym(RTLD_NEXT, "puts");
	if (!early)
		abort();
}

int puts(const char *text)
{
	int (*real)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "puts");

	if (real == puts || (void *)real != early)
		abort(); /* ourselves: the loader was told that somebody else asks */
	next_puts++;
	return real(text);
}

int cuMemAlloc_v2(unsigned long long *out, size_t bytes)
{
	int (*real)(unsigned long long *, size_t) =
		(int (*)(unsigned long long *, size_t))dlsym(RTLD_NEXT, "cuMemAlloc_v2");

	if (real == cuMemAlloc_v2)
		abort();
	next_allocs++;
	return real ? real(out, bytes) : 303;
}
