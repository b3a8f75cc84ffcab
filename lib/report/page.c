/* Writing on the page of the text report: colours, headings, lines of at most 80 columns. */
#include "report/text_parts.h"

#include <string.h>

#include "base/clean.h"
#include "base/print.h"

void tfh_tint(const struct tfh_page *page, enum tfh_tint tint)
{
	static const char *const codes[] = {"\033[0m",	  "\033[1m",	"\033[1;31m",
					    "\033[1;33m", "\033[1;32m", "\033[2m"};

	if (page->style.color)
		tfh_put(codes[tint], page->out);
}

void tfh_tinted(const struct tfh_page *page, enum tfh_tint tint, const char *fmt, ...)
{
	va_list args;

	tfh_tint(page, tint);
	va_start(args, fmt);
	tfh_vprint(page->out, fmt, args);
	va_end(args);
	tfh_tint(page, TFH_PLAIN);
}

void tfh_heading(const struct tfh_page *page, const char *fmt, ...)
{
	va_list args;

	tfh_put("\n", page->out);
	tfh_tint(page, TFH_BOLD);
	va_start(args, fmt);
	tfh_vprint(page->out, fmt, args);
	va_end(args);
	tfh_tint(page, TFH_PLAIN);
	tfh_put("\n", page->out);
}

/* How much of a word fits on a line of `room` columns: all of it, or a stage's path up to "::". */
static size_t part_of_word(const char *word, size_t len, size_t room)
{
	size_t fits = len;

	if (tfh_columns(word, len) <= room)
		return len;
	for (size_t i = 0; i + 1 < len && tfh_columns(word, i + 2) <= room; i++)
		if (word[i] == ':' && word[i + 1] == ':')
			fits = i + 2;
	return fits;
}

void tfh_wrap_from(const struct tfh_page *page, size_t column, const char *rest, const char *text)
{
	bool begun = false;

	while (*text) {
		size_t len = strcspn(text, " ");
		if (!strncmp(text + len, " %", 2)) /* "41 %" stays together */
			len += 1 + strcspn(text + len + 1, " ");
		if (begun && column + 1 + tfh_columns(text, len) > TFH_PAGE_COLUMNS) {
			tfh_print(page->out, "\n%s", rest);
			column = strlen(rest);
			begun = false;
		}
		if (begun) {
			tfh_put(" ", page->out);
			column++;
		}
		size_t part = part_of_word(
			text, len, TFH_PAGE_COLUMNS > column ? TFH_PAGE_COLUMNS - column : 0);
		tfh_print(page->out, "%.*s", (int)part, text);
		column += tfh_columns(text, part);
		text += part;
		begun = true;
		if (part < len) {
			tfh_print(page->out, "\n%s", rest);
			column = strlen(rest);
			begun = false;
		}
		text += strspn(text, " ");
	}
	tfh_put("\n", page->out);
}

void tfh_wrap(const struct tfh_page *page, const char *first, const char *rest, const char *text)
{
	tfh_print(page->out, "%s", first);
	tfh_wrap_from(page, strlen(first), rest, text);
}
