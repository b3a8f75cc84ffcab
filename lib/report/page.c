/* Writes on the page of the text report: colours, headings, and lines that fit the page's width. */
#include "report/text_parts.h"

#include <stdlib.h>
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

/* The bytes of a word longer than a line that fit, at least one character. */
static size_t as_fits(const char *word, size_t len, size_t room)
{
	struct tfh_glyph g;
	size_t fits = 0, columns = 0;

	while (fits < len) {
		size_t n = tfh_glyph(word + fits, len - fits, &g);
		columns += g.columns;
		if (fits && columns > room)
			break;
		fits += n;
	}
	return fits;
}

size_t tfh_page_columns(const struct tfh_page *page)
{
	return page->style.columns ? page->style.columns : TFH_PAGE_COLUMNS;
}

/* Length of the next word of a text, including what must stay on its line: "41 %", "2.88 ms". */
static size_t word_length(const char *text)
{
	static const char *const units[] = {"%",  "ns", "us", "ms",   "s",    "B",    "kB",
					    "MB", "GB", "TB", "kB/s", "MB/s", "GB/s", "TB/s"};
	size_t len = strcspn(text, " ");

	if (!len || text[len] != ' ' || !strchr("0123456789", text[len - 1]))
		return len;
	size_t next = strcspn(text + len + 1, " ,;)");
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strlen(units[i]) == next && !strncmp(text + len + 1, units[i], next))
			return len + 1 + strcspn(text + len + 1, " ");
	return len;
}

/* Wraps a text into lines that begin with `rest`. `column` columns of the first line are already
 * used. If the text takes more than `lines` lines (0: no limit), the last one ends with dots.
 * Returns what of the text is left. */
static const char *wrap(const struct tfh_page *page, size_t column, const char *rest,
			const char *text, size_t lines)
{
	const size_t columns = tfh_page_columns(page);
	bool begun = false;

	while (*text) {
		size_t len = word_length(text), part = 0;
		bool whole =
			lines != 1 || column + begun + tfh_columns(text, strlen(text)) <= columns;
		size_t edge = columns - (whole ? 0 : strlen(" ..")), from = column + begun;
		if (!begun || from + tfh_columns(text, len) <= edge) {
			size_t room = edge > from ? edge - from : 0;
			part = part_of_word(text, len, room);
			part = lines ? as_fits(text, part, room) : part;
			tfh_print(page->out, "%s%.*s", begun ? " " : "", (int)part, text);
			column = from + tfh_columns(text, part);
			text += part;
			begun = true;
		}
		if (part < len) { /* continues on the next line */
			if (lines == 1)
				break;
			tfh_print(page->out, "\n%s", rest);
			column = strlen(rest);
			begun = false;
			lines -= lines > 0;
		}
		text += strspn(text, " ");
	}
	tfh_print(page->out, "%s\n", *text ? " .." : "");
	return text;
}

void tfh_wrap_from(const struct tfh_page *page, size_t column, const char *rest, const char *text)
{
	wrap(page, column, rest, text, 0);
}

void tfh_wrap(const struct tfh_page *page, const char *first, const char *rest, const char *text)
{
	tfh_print(page->out, "%s", first);
	wrap(page, strlen(first), rest, text, 0);
}

struct dry_run {
	size_t column;
	const char *rest, *text;
	size_t *left; /* bytes of the text that do not fit */
};

static void try_wrap(const struct tfh_page *page, const void *arg)
{
	const struct dry_run *d = arg;

	*d->left = strlen(wrap(page, d->column, d->rest, d->text, page->style.lines));
}

/* The end of the last clause within the first `fits` bytes of a text, after its comma or semicolon;
 * 0: only a short part of them ends with one. */
static size_t last_clause(const char *text, size_t fits)
{
	size_t end = 0;

	for (size_t i = 1, depth = 0; i < fits; i++) {
		depth += text[i - 1] == '(';
		depth -= text[i - 1] == ')' && depth;
		if (text[i] == ' ' && !depth && (text[i - 1] == ',' || text[i - 1] == ';'))
			end = i;
	}
	return 3 * end > 2 * fits ? end : 0;
}

void tfh_wrap_most(const struct tfh_page *page, size_t column, const char *rest, const char *text)
{
	size_t left = 0;
	struct dry_run dry = {column, rest, text, &left};
	char shorter[1024];

	if (page->style.lines)
		free(tfh_in_memory(page, try_wrap, &dry));
	size_t clause = left ? last_clause(text, strlen(text) - left) : 0;
	if (clause && clause + sizeof(" ..") <= sizeof(shorter)) {
		snprintf(shorter, sizeof(shorter), "%.*s ..", (int)clause, text);
		text = shorter;
	}
	wrap(page, column, rest, text, page->style.lines);
}

void tfh_row(const struct tfh_page *page, const char *label, const char *text)
{
	char first[32];

	if (page->row) {
		page->row(page->arg, label, text);
		return;
	}
	snprintf(first, sizeof(first), "  %-8s ", label);
	tfh_print(page->out, "%s", first);
	tfh_wrap_most(page, strlen(first), "           ", text);
}

char *tfh_in_memory(const struct tfh_page *page,
		    void (*print)(const struct tfh_page *page, const void *arg), const void *arg)
{
	struct tfh_page copy = *page;
	char *text = NULL;
	size_t size;

	copy.out = open_memstream(&text, &size);
	if (!copy.out)
		return NULL;
	print(&copy, arg);
	if (!fclose(copy.out))
		return text;
	free(text);
	return NULL;
}

size_t tfh_lines_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

void tfh_pass_on(const struct tfh_page *page, const char *printed)
{
	tfh_put(printed, page->out);
}

void tfh_field(const struct tfh_page *page, size_t *column, const char *field)
{
	size_t len = tfh_columns(field, strlen(field));
	bool fits = *column + 3 + len <= tfh_page_columns(page);

	tfh_print(page->out, fits ? "   %s" : "\n   %s", field);
	*column = (fits ? *column : 0) + 3 + len;
}
