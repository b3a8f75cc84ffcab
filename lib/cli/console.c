/* Messages on stderr, colour, width. */
#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/cli.h"

void tfh_say(const char *fmt, ...)
{
	char form[1024];
	va_list args;

	/* One write per line, since the job's processes share this terminal. */
	snprintf(form, sizeof(form), "tfhook: %s\n", fmt);
	va_start(args, fmt);
	tfh_vprint(stderr, form, args);
	va_end(args);
	fflush(stderr);
}

void tfh_say_why(const struct tfh_err *err, int code)
{
	tfh_say("%s%s", *err->text ? err->text : strerror(-code),
		code == -EACCES ? "; read it as the user that recorded it, or ask for permission"
				: "");
}

const char *tfh_reason(const struct tfh_err *err, int code, const char *path)
{
	size_t len = strlen(path);

	if (!*err->text)
		return strerror(-code);
	bool named = !strncmp(err->text, path, len) && tfh_starts_with(err->text + len, ": ");
	return err->text + (named ? len + 2 : 0);
}

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

bool tfh_use_color(const char *flag, FILE *out)
{
	const char *term = getenv("TERM"), *force = getenv("CLICOLOR_FORCE");

	if (flag && !strcmp(flag, "always"))
		return true;
	if (flag && !strcmp(flag, "never"))
		return false;
	if (is_set("NO_COLOR"))
		return false;
	if (force && *force && strcmp(force, "0"))
		return true;
	return isatty(fileno(out)) && term && *term && strcmp(term, "dumb");
}

#define WIDTH 80

bool tfh_use_utf8(void)
{
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

#define NARROWEST 40
#define WIDEST 120 /* longer lines are hard to read */

/* The number that a variable holds; 0: none. */
static unsigned short number_in(const char *variable)
{
	const char *text = getenv(variable);
	long n = text ? strtol(text, NULL, 10) : 0;

	return n > 0 && n <= USHRT_MAX ? (unsigned short)n : 0;
}

/* The terminal's columns and rows; of other streams what COLUMNS and LINES say; 0: unknown. */
static struct winsize size_of(FILE *out)
{
	struct winsize size = {0};

	if (!isatty(fileno(out)) || ioctl(fileno(out), TIOCGWINSZ, &size) || !size.ws_col)
		size = (struct winsize){.ws_col = number_in("COLUMNS"),
					.ws_row = number_in("LINES")};
	return size;
}

unsigned tfh_use_columns(FILE *out)
{
	unsigned columns = size_of(out).ws_col;

	if (!columns)
		return WIDTH;
	return columns < NARROWEST ? NARROWEST : columns > WIDEST ? WIDEST : columns;
}

/* A file or pipe has no rows that scroll away: enough for the whole of nearly every first
 * screen. */
#define PIPED_ROWS 40

unsigned tfh_use_rows(FILE *out)
{
	unsigned rows = size_of(out).ws_row;

	if (rows)
		return rows - 1;
	return isatty(fileno(out)) ? 0 : PIPED_ROWS;
}

int tfh_exit_code(int error)
{
	switch (error) {
	case 0:
		return TFH_EXIT_OK;
	case -ENODATA:
		return TFH_EXIT_NOTHING;
	case -EINVAL:
		return TFH_EXIT_USAGE;
	default:
		return TFH_EXIT_UNREADABLE;
	}
}

void tfh_print_wrapped(FILE *out, size_t column, size_t indent, const char *text)
{
	bool begun = false;

	while (*text) {
		size_t blank = strspn(text, " "), len = strcspn(text + blank, " ");
		size_t columns = tfh_columns(text + blank, len);
		if (begun && column + blank + columns > WIDTH) {
			tfh_print(out, "\n%*s", (int)indent, "");
			column = indent;
			blank = 0;
		}
		tfh_print(out, "%*s%.*s", (int)blank, "", (int)len, text + strspn(text, " "));
		column += blank + columns;
		text += strspn(text, " ") + len;
		begun = true;
	}
	tfh_put("\n", out);
}
