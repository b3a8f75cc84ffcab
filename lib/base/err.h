/* An error message for a negative errno: the code is for the program, the text for the user.
 *
 * A function whose failure needs an explanation takes a `struct tfh_err *` (may be NULL), fills it
 * and returns the negative errno. */
#ifndef TFH_BASE_ERR_H
#define TFH_BASE_ERR_H

#include <stdarg.h>
#include <stdio.h>

#define TFH_ERR_TEXT 512

struct tfh_err {
	int code; /* negative errno, 0: no error */
	char text[TFH_ERR_TEXT];
};

/* Formats a message into *err (if not NULL), truncated if too long. Returns code, for `return
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
