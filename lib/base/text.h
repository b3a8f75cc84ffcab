/* Texts. */
#ifndef TFH_BASE_TEXT_H
#define TFH_BASE_TEXT_H

#include <stdbool.h>
#include <string.h>

static inline bool tfh_starts_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

/* Whether the text ends with `end`; also true if it is equal to it. */
static inline bool tfh_ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

/* Copies the first n bytes of a text, at most as many as fit, and ends the copy. */
static inline void tfh_copy_text(char *to, size_t cap, const char *from, size_t n)
{
	n = n < cap ? n : cap - 1;
	if (n)
		memcpy(to, from, n);
	to[n] = '\0';
}

/* The last part of a path, all of it if it has no slash; "" for NULL. Not a copy. */
static inline const char *tfh_file_of(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "";
}

/* Whether the name of a range or an op says that it compiles; not if it names what is compiled, or
 * a compiled function. */
bool tfh_names_compiling(const char *name);

#endif
