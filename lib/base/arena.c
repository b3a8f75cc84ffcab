#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN ((size_t)16)
#define FIRST_BLOCK ((size_t)4096)
#define LARGEST_BLOCK                                                                              \
	((size_t)1 << 20) /* blocks double up to here, so little is wasted at any size */

struct tfh_arena_block {
	struct tfh_arena_block *next;
	size_t size; /* usable bytes */
	_Alignas(16) unsigned char data[];
};

void tfh_arena_init(struct tfh_arena *arena, size_t cap)
{
	memset(arena, 0, sizeof(*arena));
	arena->cap = cap ? cap : SIZE_MAX;
}

static int add_block(struct tfh_arena *arena, size_t need)
{
	struct tfh_arena_block *block;
	size_t size = arena->blocks ? 2 * arena->blocks->size : FIRST_BLOCK;
	size_t left = arena->cap - arena->total;

	if (size > LARGEST_BLOCK)
		size = LARGEST_BLOCK;
	if (size > left)
		size = left & ~(ALIGN - 1);
	if (size < need)
		size = need;
	if (size > left)
		return -1;
	block = calloc(1, sizeof(*block) + size);
	if (!block)
		return -1;
	block->next = arena->blocks;
	block->size = size;
	arena->blocks = block;
	arena->total += size;
	arena->used = 0;
	return 0;
}

void *tfh_arena_alloc(struct tfh_arena *arena, size_t size)
{
	void *object;

	if (size > PTRDIFF_MAX - sizeof(struct tfh_arena_block) - ALIGN)
		return NULL;
	size = size ? (size + ALIGN - 1) & ~(ALIGN - 1) : ALIGN;
	if ((!arena->blocks || size > arena->blocks->size - arena->used) && add_block(arena, size))
		return NULL;
	object = arena->blocks->data + arena->used;
	arena->used += size;
	return object;
}

void *tfh_arena_array(struct tfh_arena *arena, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		return NULL;
	return tfh_arena_alloc(arena, bytes);
}

char *tfh_arena_strndup(struct tfh_arena *arena, const char *text, size_t length)
{
	char *copy;

	copy = length < SIZE_MAX ? tfh_arena_alloc(arena, length + 1) : NULL;
	if (copy)
		memcpy(copy, text, length);
	return copy;
}

char *tfh_arena_strdup(struct tfh_arena *arena, const char *text)
{
	return tfh_arena_strndup(arena, text, strlen(text));
}

const char *tfh_arena_vtext(struct tfh_arena *arena, const char *fmt, va_list args)
{
	char text[1024];

	vsnprintf(text, sizeof(text), fmt, args);
	const char *s = tfh_arena_strdup(arena, text);
	return s ? s : "";
}

const char *tfh_arena_text(struct tfh_arena *arena, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	const char *s = tfh_arena_vtext(arena, fmt, args);
	va_end(args);
	return s;
}

void tfh_arena_free(struct tfh_arena *arena)
{
	while (arena->blocks) {
		struct tfh_arena_block *old = arena->blocks;

		arena->blocks = old->next;
		free(old);
	}
	arena->used = 0;
	arena->total = 0;
}
