/* A line of `tfhook doctor`. */
#include "cli/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/print.h"
#include "cli/cli.h"

void tfh_finding(struct tfh_doctor *d, enum tfh_outcome o, const char *fmt, ...)
{
	static const char *const marks[] = {"ok  ", "note", "BAD "};
	static const char *const tints[] = {"\033[32m", "\033[33m", "\033[1;31m"};
	char text[12288];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	tfh_put(d->color ? tints[o] : "", stdout);
	tfh_print(stdout, "%s", marks[o]);
	tfh_put(d->color ? "\033[0m  " : "  ", stdout);
	if (isatty(STDOUT_FILENO))
		tfh_print_wrapped(stdout, 6, 6, text);
	else /* one line each, for grep */
		tfh_print(stdout, "%s\n", text);
	d->bad += o == TFH_BAD;
}
