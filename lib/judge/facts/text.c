#include <stdarg.h>
#include <stdio.h>

#include "judge/facts/facts.h"

const char *tfh_text(struct tfh_arena *arena, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	const char *s = tfh_arena_strdup(arena, text);
	return s ? s : "";
}
