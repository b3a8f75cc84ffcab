/* Error text beside a negative errno: the number tells the program, the text tells the person.
 *
 * A function that can fail in a way worth explaining takes a `struct tfh_err *` (which may be
 * NULL), fills it and returns the negative errno.
 */
#ifndef TFH_BASE_ERR_H
#define TFH_BASE_ERR_H

#include <stdarg.h>
#include <stdio.h>

#define TFH_ERR_TEXT 512

struct tfh_err {
	int code; /* negative errno, 0 when nothing failed */
	char text[TFH_ERR_TEXT];
};

/* Fills *err (if not NULL) with a printf text, cut when too long. Returns code, so that `return
 * tfh_err_set(...)`. */
__attribute__((format(printf, 3, 4))) static inline int tfh_err_set(struct tfh_err *err, int code,
								    const char *fmt, ...)
{
	va_list args;

	if (!err)
		return code;
	err->code = code;
	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	return code;
}

static inline void tfh_err_clear(struct tfh_err *err)
{
	if (err) {
		err->code = 0;
		err->text[0] = '\0';
	}
}

#endif
