/*
 * The C library's memory and string functions for all of libtfhook.so, with hidden visibility: the
 * linker binds our calls, the compiler's and zstd's to these.
 *
 * Another definition in the job (a sanitizer's runtime, a preload) may not be ready when tfhook is
 * first called, inside that definition's own dlsym. A thread sanitizer that saw these copies would
 * also report the rings as races, since it cannot know how they are synchronised.
 *
 * Compiled with -fno-builtin; KEEP prevents compilers from replacing a loop with a call to the
 * function that it implements.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/arch.h"

#define KEEP __asm__ volatile("" ::: "memory")
/* From this length on, the processor's own string instruction is as fast. */
#define LONG 512

struct sixteen {
	uint64_t part[2];
} __attribute__((packed, may_alias));
typedef uint64_t eight __attribute__((aligned(1), may_alias));
typedef uint32_t four __attribute__((aligned(1), may_alias));

/* Less than 17 bytes, possibly overlapping: everything is read before anything is written. */
static void copy_short(char *to, const char *from, size_t n)
{
	if (n >= 8) {
		eight first = *(const eight *)from, last = *(const eight *)(from + n - 8);
		*(eight *)to = first;
		*(eight *)(to + n - 8) = last;
	} else if (n >= 4) {
		four first = *(const four *)from, last = *(const four *)(from + n - 4);
		*(four *)to = first;
		*(four *)(to + n - 4) = last;
	} else if (n) {
		char first = from[0], middle = from[n / 2], last = from[n - 1];
		to[0] = first;
		to[n / 2] = middle;
		to[n - 1] = last;
	}
}

void *memmove(void *target, const void *source, size_t n)
{
	char *to = target;
	const char *from = source;
	struct sixteen end;
	size_t i;

	if (n <= 16) {
		copy_short(to, from, n);
	} else if ((uintptr_t)to - (uintptr_t)from >= n) {
		/* A forward copy does not overwrite its source. */
		end = *(const struct sixteen *)(from + n - 16);
		for (i = 0; i < n - 16; i += 16) {
			*(struct sixteen *)(to + i) = *(const struct sixteen *)(from + i);
			KEEP;
		}
		*(struct sixteen *)(to + n - 16) = end;
	} else {
		end = *(const struct sixteen *)from;
		for (i = n - 16; i < n; i -= 16) { /* until it wraps below 0 */
			*(struct sixteen *)(to + i) = *(const struct sixteen *)(from + i);
			KEEP;
		}
		*(struct sixteen *)to = end;
	}
	return target;
}

void *memcpy(void *restrict target, const void *restrict source, size_t n)
{
	if (TFH_ARCH_COPIES && n >= LONG) {
		tfh_arch_copy(target, source, n);
		return target;
	}
	return memmove(target, source, n);
}

void *memset(void *target, int value, size_t n)
{
	uint64_t word = 0x0101010101010101u * (uint8_t)value;
	char *to = target;

	if (TFH_ARCH_COPIES && n >= LONG) {
		tfh_arch_fill(target, value, n);
		return target;
	}
	if (n < 8) {
		for (size_t i = 0; i < n; i++) {
			to[i] = (char)value;
			KEEP;
		}
		return target;
	}
	for (size_t i = 0; i < n - 8; i += 8) {
		*(eight *)(to + i) = word;
		KEEP;
	}
	*(eight *)(to + n - 8) = word;
	return target;
}

int memcmp(const void *left, const void *right, size_t n)
{
	const uint8_t *a = left, *b = right;
	size_t i = 0;

	while (i + 8 <= n && *(const eight *)(a + i) == *(const eight *)(b + i)) {
		i += 8;
		KEEP;
	}
	for (; i < n; i++) {
		if (a[i] != b[i])
			return a[i] - b[i];
		KEEP;
	}
	return 0;
}

void *memchr(const void *memory, int c, size_t n)
{
	const uint8_t *at = memory;

	for (size_t i = 0; i < n; i++) {
		if (at[i] == (uint8_t)c)
			return (void *)(uintptr_t)(at + i);
		KEEP;
	}
	return NULL;
}

size_t strnlen(const char *text, size_t most)
{
	size_t n = 0;

	while (n < most && text[n]) {
		n++;
		KEEP;
	}
	return n;
}

size_t strlen(const char *text)
{
	return strnlen(text, SIZE_MAX);
}

static int lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

static int compare(const char *a, const char *b, size_t n, int (*of)(char))
{
	for (size_t i = 0; i < n; i++) {
		int difference = of ? of(a[i]) - of(b[i])
				    : (int)(unsigned char)a[i] - (int)(unsigned char)b[i];
		if (difference || !a[i])
			return difference;
		KEEP;
	}
	return 0;
}

int strncmp(const char *a, const char *b, size_t n)
{
	return compare(a, b, n, NULL);
}

int strcmp(const char *a, const char *b)
{
	return compare(a, b, SIZE_MAX, NULL);
}

/* As in the C locale: only our own names are compared. */
int strncasecmp(const char *a, const char *b, size_t n)
{
	return compare(a, b, n, lower);
}

int strcasecmp(const char *a, const char *b)
{
	return compare(a, b, SIZE_MAX, lower);
}

char *strchr(const char *text, int c)
{
	for (; *text != (char)c; text++) {
		if (!*text)
			return NULL;
		KEEP;
	}
	return (char *)(uintptr_t)text;
}

char *strrchr(const char *text, int c)
{
	const char *found = NULL;

	for (;; text++) {
		if (*text == (char)c)
			found = text;
		if (!*text)
			return (char *)(uintptr_t)found;
		KEEP;
	}
}

static size_t span(const char *text, const char *set, int in)
{
	size_t n = 0;

	while (text[n] && (strchr(set, text[n]) != NULL) == in)
		n++;
	return n;
}

size_t strspn(const char *text, const char *set)
{
	return span(text, set, 1);
}

size_t strcspn(const char *text, const char *set)
{
	return span(text, set, 0);
}

char *strstr(const char *text, const char *part)
{
	size_t n = strlen(part);

	for (; strncmp(text, part, n); text++)
		if (!*text)
			return NULL;
	return (char *)(uintptr_t)text;
}

void *memmem(const void *text, size_t size, const void *part, size_t n)
{
	const char *at = text;

	for (; n && size >= n; at++, size--)
		if (!memcmp(at, part, n))
			return (char *)(uintptr_t)at;
	return n ? NULL : (char *)(uintptr_t)text;
}

char *strncpy(char *restrict to, const char *restrict from, size_t n)
{
	size_t length = strnlen(from, n);

	memcpy(to, from, length);
	memset(to + length, 0, n - length);
	return to;
}
