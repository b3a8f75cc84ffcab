/* Bump allocator with a limit, for many small objects that are freed together.
 *
 * Not thread-safe. Memory is zeroed. A reader of untrusted files sets the limit, so that no file
 * can make it allocate more. */
#ifndef TFH_BASE_ARENA_H
#define TFH_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct tfh_arena_block;

struct tfh_arena {
	struct tfh_arena_block *blocks; /* newest first */
	size_t used;			/* bytes taken in the newest block */
	size_t total;			/* bytes of all blocks */
	size_t cap;			/* limit on total */
};

/* Starts an empty arena; cap 0 means no limit. Allocates nothing yet. */
void tfh_arena_init(struct tfh_arena *arena, size_t cap);

/* `size` zeroed bytes, aligned to 16; NULL at the limit or out of memory. Valid until
 * tfh_arena_free(). */
void *tfh_arena_alloc(struct tfh_arena *arena, size_t size);

/* Array of count objects; NULL also when count * size overflows. */
void *tfh_arena_array(struct tfh_arena *arena, size_t count, size_t size);

/* Copies text and appends a NUL. */
char *tfh_arena_strndup(struct tfh_arena *arena, const char *text, size_t length);
char *tfh_arena_strdup(struct tfh_arena *arena, const char *text);

/* printf into the arena, at most 1,023 characters; "" when out of memory. */
const char *tfh_arena_text(struct tfh_arena *arena, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
const char *tfh_arena_vtext(struct tfh_arena *arena, const char *fmt, va_list args)
	__attribute__((format(printf, 2, 0)));

/* Frees everything. The arena may be used again. */
void tfh_arena_free(struct tfh_arena *arena);

#endif
