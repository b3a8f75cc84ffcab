#include "base/clean.h"

#include <string.h>

/* Ranges of characters that are escaped (Unicode 15: Cc, Cf, Zl, Zp, variation selectors and
 * letters without a glyph). */
static const struct {
	uint32_t first, last;
} hidden[] = {
	{0x0, 0x1f},	    {0x7f, 0x9f},	{0xad, 0xad},	    {0x34f, 0x34f},
	{0x600, 0x605},	    {0x61c, 0x61c},	{0x6dd, 0x6dd},	    {0x70f, 0x70f},
	{0x890, 0x891},	    {0x8e2, 0x8e2},	{0x115f, 0x1160},   {0x17b4, 0x17b5},
	{0x180b, 0x180f},   {0x200b, 0x200f},	{0x2028, 0x202e},   {0x2060, 0x206f},
	{0x3164, 0x3164},   {0xfe00, 0xfe0f},	{0xfeff, 0xfeff},   {0xffa0, 0xffa0},
	{0xfff0, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f},
	{0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

bool tfh_shown(uint32_t c)
{
	if (c >= 0x20 && c < 0x7f)
		return true;
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (c >= hidden[i].first && c <= hidden[i].last)
			return false;
	return (c & 0xfffe) != 0xfffe; /* not a character */
}

size_t tfh_utf8(const char *text, size_t left, uint32_t *c)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	uint32_t code = n == 1 ? p[0] : p[0] & (0x7fu >> n);

	if (!n || p[0] > 0xf4 || left < n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if ((n == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
	    (n == 4 && (code < 0x10000 || code > 0x10ffff)))
		return 0;
	if (c)
		*c = code;
	return n;
}

/* "\x1b", "\u202e", "\U000e0001" */
static void escape(struct tfh_glyph *g, char kind, uint32_t c, unsigned digits)
{
	g->text[0] = '\\';
	g->text[1] = kind;
	for (unsigned i = 0; i < digits; i++)
		g->text[2 + i] = "0123456789abcdef"[c >> 4 * (digits - 1 - i) & 0xf];
	g->len = g->columns = (uint8_t)(2 + digits);
}

size_t tfh_glyph(const char *text, size_t left, struct tfh_glyph *g)
{
	uint32_t c;
	size_t n = tfh_utf8(text, left, &c);

	if (!n) {
		escape(g, 'x', (unsigned char)*text, 2);
		return 1;
	}
	if (tfh_shown(c)) {
		memcpy(g->text, text, n);
		g->len = (uint8_t)n;
		g->columns = 1;
	} else if (c == '\n' || c == '\r' || c == '\t') {
		escape(g, c == '\n' ? 'n' : c == '\r' ? 'r' : 't', 0, 0);
	} else if (c < 0x80) {
		escape(g, 'x', c, 2);
	} else if (c < 0x10000) {
		escape(g, 'u', c, 4);
	} else {
		escape(g, 'U', c, 8);
	}
	return n;
}

size_t tfh_columns(const char *text, size_t len)
{
	struct tfh_glyph g;
	size_t columns = 0;

	while (len) {
		size_t n = tfh_glyph(text, len, &g);
		columns += g.columns;
		text += n;
		len -= n;
	}
	return columns;
}

size_t tfh_clean(char *out, size_t size, const char *text, size_t len)
{
	struct tfh_glyph g;
	size_t at = 0;

	while (len) {
		size_t n = tfh_glyph(text, len, &g);
		if (at + g.len >= size)
			break;
		memcpy(out + at, g.text, g.len);
		at += g.len;
		text += n;
		len -= n;
	}
	out[at] = '\0';
	return at;
}
