/* The C library's part that was never in the library itself but is linked into every product. */
#include <stddef.h>

extern void *__dso_handle __attribute__((visibility("hidden")));
int __cxa_atexit(void (*)(void *), void *, void *);
int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);

int atexit(void (*function)(void))
{
	return __cxa_atexit((void (*)(void *))(void *)function, NULL, &__dso_handle);
}

int pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
	return __register_atfork(prepare, parent, child, &__dso_handle);
}
