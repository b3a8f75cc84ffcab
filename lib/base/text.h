/* Texts. */
#ifndef TFH_BASE_TEXT_H
#define TFH_BASE_TEXT_H

#include <stdbool.h>
#include <string.h>

/* Also true if the text is the end and nothing else. */
static inline bool tfh_ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

#endif
