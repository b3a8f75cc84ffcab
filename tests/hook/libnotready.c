/* Owns functions of libc, as a sanitizer's runtime does, and is not ready to be called until
 * not_ready_until_now(). */
#include <link.h>
#include <stddef.h>

void not_ready_until_now(void);

static int ready;

void not_ready_until_now(void)
{
	ready = 1;
}

#define NOT_BEFORE                                                                                 \
	do {                                                                                       \
		if (!ready)                                                                        \
			__builtin_trap();                                                          \
	} while (0)

static int compare(const char *a, const char *b, size_t n)
{
	for (volatile size_t i = 0; i < n; i++)
		if (a[i] != b[i] || !a[i])
			return (unsigned char)a[i] - (unsigned char)b[i];
	return 0;
}

int strcmp(const char *a, const char *b)
{
	NOT_BEFORE;
	return compare(a, b, (size_t)-1);
}

int strncmp(const char *a, const char *b, size_t n)
{
	NOT_BEFORE;
	return compare(a, b, n);
}

int memcmp(const void *a, const void *b, size_t n)
{
	NOT_BEFORE;
	for (volatile size_t i = 0; i < n; i++)
		if (((const char *)a)[i] != ((const char *)b)[i])
			return ((const unsigned char *)a)[i] - ((const unsigned char *)b)[i];
	return 0;
}

size_t strlen(const char *a)
{
	volatile size_t n = 0;

	NOT_BEFORE;
	while (a[n])
		n++;
	return n;
}

char *strchr(const char *a, int c)
{
	volatile size_t n = 0;

	NOT_BEFORE;
	while (a[n] && a[n] != (char)c)
		n++;
	return a[n] == (char)c ? (char *)(size_t)(a + n) : NULL;
}

char *strrchr(const char *a, int c)
{
	const char *found = NULL;

	NOT_BEFORE;
	for (volatile size_t n = 0;; n++) {
		if (a[n] == (char)c)
			found = a + n;
		if (!a[n])
			return (char *)(size_t)found;
	}
}

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	NOT_BEFORE;
	for (volatile size_t i = 0; i < size; i++)
		((char *)to)[i] = ((const char *)from)[i];
	return to;
}

void *memset(void *to, int c, size_t size)
{
	NOT_BEFORE;
	for (volatile size_t i = 0; i < size; i++)
		((char *)to)[i] = (char)c;
	return to;
}

char *getenv(const char *name)
{
	NOT_BEFORE;
	(void)name;
	return NULL;
}

char *secure_getenv(const char *name)
{
	return getenv(name);
}

int dl_iterate_phdr(int (*look)(struct dl_phdr_info *, size_t, void *), void *data)
{
	NOT_BEFORE;
	(void)look;
	(void)data;
	return 0;
}
