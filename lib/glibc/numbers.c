/* What headers of 2.38 and later make of strtol, sscanf and the like: the same, but for binary
 * numbers, which nobody needs. */
#include <stdarg.h>

#define SAME(type, later, name)                                                                    \
	type old_##name(const char *, char **, int) __asm__(#name);                                \
	type later(const char *, char **, int);                                                    \
	type later(const char *text, char **end, int base)                                         \
	{                                                                                          \
		return old_##name(text, end, base);                                                \
	}
SAME(long, __isoc23_strtol, strtol)
SAME(unsigned long, __isoc23_strtoul, strtoul)
SAME(long long, __isoc23_strtoll, strtoll)
SAME(unsigned long long, __isoc23_strtoull, strtoull)

int old_vsscanf(const char *, const char *, va_list) __asm__("__isoc99_vsscanf");
int __isoc23_sscanf(const char *, const char *, ...);

int __isoc23_sscanf(const char *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	int n = old_vsscanf(text, format, args);
	va_end(args);
	return n;
}
