/* Shared by the tests of memory and objects. */
#ifndef OBJECTS_TEST_H
#define OBJECTS_TEST_H

#include "sim_test.h"

enum { INVALID = 1, NO_MEMORY = 2 };
enum { UINT8 = 1, FLOAT = 0x20 };

/* IS(error, name, (argument types), arguments): a driver function returns exactly this. */
#define IS(want, name, types, ...)                                                                 \
	do_is(__LINE__, #name, want, ((int(*) types)symbol(#name))(__VA_ARGS__))

static inline int do_is(int line, const char *name, int want, int got)
{
	if (want != got) {
		fprintf(stderr, "%s:%d: %s: %d, not %d\n", __BASE_FILE__, line, name, got, want);
		failures++;
	}
	return got;
}

static inline void fill_bytes(void *p, size_t n, unsigned seed)
{
	unsigned char *b = p;
	for (size_t i = 0; i < n; i++)
		b[i] = (unsigned char)((i * 37 + (i >> 8)) * (seed * 2 + 1) + seed);
}

struct location {
	int type, id;
};

#endif
