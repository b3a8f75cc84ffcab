#include "report/page/html.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "base/json.h"
#include "base/print.h"
#include "base/text.h"
#include "report/format.h"

/* ---- escapes ---- */

static const char *entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

static void escape(FILE *out, const char *text, size_t len)
{
	char piece[512];
	struct tfh_glyph g;
	size_t n = 0;

	while (len) {
		size_t took = tfh_glyph(text, len, &g);
		const char *as = g.len == 1 ? entity(g.text[0]) : NULL;
		size_t size = as ? strlen(as) : g.len;
		if (n + size >= sizeof(piece)) {
			tfh_print(out, "%.*s", (int)n, piece);
			n = 0;
		}
		memcpy(piece + n, as ? as : g.text, size);
		n += size;
		text += took;
		len -= took;
	}
	tfh_print(out, "%.*s", (int)n, piece);
}

void tfh_html(FILE *out, const char *fmt, ...)
{
	va_list args;
	size_t n;

	va_start(args, fmt);
	for (; *fmt; fmt += n) {
		n = strcspn(fmt, "%\n");
		if (n) {
			tfh_print(out, "%.*s", (int)n, fmt);
			continue;
		}
		if (*fmt == '\n') {
			tfh_put("\n", out);
			n = 1;
			continue;
		}
		n = 2;
		if (fmt[1] == 's') {
			const char *text = va_arg(args, const char *);
			escape(out, text ? text : "", text ? strlen(text) : 0);
		} else if (fmt[1] == 'u') {
			tfh_print(out, "%u", va_arg(args, unsigned));
		} else if (fmt[1] == 'd') {
			tfh_print(out, "%d", va_arg(args, int));
		} else if (fmt[1] == 'c') {
			char c = (char)va_arg(args, int);
			escape(out, &c, 1);
		} else if (tfh_starts_with(fmt, "%llu")) {
			tfh_print(out, "%llu", va_arg(args, unsigned long long));
			n = 4;
		} else if (fmt[1] == '%') {
			tfh_put("%", out);
		} else {
			abort(); /* a format string with an unknown conversion */
		}
	}
	va_end(args);
}

void tfh_html_lines(FILE *out, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		escape(out, text, n);
		tfh_put("\n", out);
		text += n + (text[n] == '\n');
	}
}

void tfh_html_json(FILE *out, const char *json)
{
	while (*json) {
		size_t n = strcspn(json, "<>&\n");
		tfh_print(out, "%.*s", (int)n, json);
		json += n;
		if (!*json)
			return;
		if (*json != '\n')
			tfh_print(out, "\\u%04x", (unsigned)(unsigned char)*json);
		json++;
	}
}

/* ---- tables ---- */

void tfh_html_table(FILE *out, const char *caption, const char *heads)
{
	tfh_put("<div class=\"scroll\"><table>\n", out);
	if (caption)
		tfh_html(out, "<caption>%s</caption>\n", caption);
	tfh_print(out, "<thead%s><tr>", heads[strspn(heads, "<|")] ? "" : " class=\"none\"");
	while (*heads) {
		bool text = *heads == '<';
		size_t n = strcspn(heads, "|");
		tfh_print(out, "<th scope=\"col\"%s>", text ? " class=\"t\"" : "");
		escape(out, heads + text, n - text);
		tfh_put("</th>", out);
		heads += n + (heads[n] == '|');
	}
	tfh_put("</tr></thead>\n<tbody>\n", out);
}

void tfh_html_table_end(FILE *out)
{
	tfh_put("</tbody></table></div>\n", out);
}

void tfh_html_row(FILE *out, const char *name)
{
	tfh_html(out, "<tr><th scope=\"row\">%s</th>", name);
}

void tfh_html_row_end(FILE *out)
{
	tfh_put("</tr>\n", out);
}

void tfh_html_note(FILE *out, const char *text)
{
	tfh_html(out, "<p class=\"note\">%s</p>\n", text);
}

/* ---- cells ---- */

void tfh_html_text(FILE *out, const char *text)
{
	tfh_html(out, "<td class=\"t\">%s</td>", text && *text ? text : "-");
}

/* `exact`: as in the JSON; `words`: as shown. */
static void number_cell(FILE *out, const char *exact, const char *words)
{
	tfh_html(out, "<td data-v=\"%s\">%s</td>", exact, words);
}

static void cell(FILE *out, double value, const char *words)
{
	char exact[32];

	if (!isfinite(value)) {
		tfh_html(out, "<td class=\"na\">%s</td>", TFH_NOT_MEASURED);
		return;
	}
	tfh_json_format_double(exact, value);
	number_cell(out, exact, words);
}

#define CELL(kind)                                                                                 \
	void tfh_html_##kind(FILE *out, double value)                                              \
	{                                                                                          \
		char text[TFH_TEXT];                                                               \
                                                                                                   \
		cell(out, value, tfh_fmt_##kind(text, value));                                     \
	}
CELL(time)
CELL(share)
CELL(bytes)
CELL(rate)
CELL(mean)
CELL(factor)

void tfh_html_count(FILE *out, uint64_t n)
{
	char text[TFH_TEXT], exact[32];

	snprintf(exact, sizeof(exact), "%" PRIu64, n);
	number_cell(out, exact, tfh_fmt_count(text, n));
}

void tfh_html_number(FILE *out, int64_t n)
{
	char exact[32];

	snprintf(exact, sizeof(exact), "%" PRId64, n);
	number_cell(out, exact, exact);
}

void tfh_html_yes(FILE *out, bool yes)
{
	tfh_html(out, "<td class=\"t\">%s</td>", yes ? "yes" : "no");
}

void tfh_html_bar(FILE *out, double share, const char *kind)
{
	double width = share > 0 ? fmin(share, 1) * 100 : 0;

	tfh_print(
		out,
		"<td class=\"b\"><svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" "
		"aria-hidden=\"true\"><rect class=\"%s\" width=\"%.2f\" height=\"10\"/></svg></td>",
		kind, width);
}
