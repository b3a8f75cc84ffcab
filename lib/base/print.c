#include "base/print.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"

struct sink {
	FILE *out;
	size_t n;
	char text[4096];
};

static void flush(struct sink *s)
{
	if (s->n)
		fwrite(s->text, 1, s->n, s->out);
	s->n = 0;
}

static void add(struct sink *s, const char *text, size_t len)
{
	if (s->n + len > sizeof(s->text))
		flush(s);
	if (len > sizeof(s->text)) {
		fwrite(text, 1, len, s->out);
		return;
	}
	memcpy(s->text + s->n, text, len);
	s->n += len;
}

static void pad(struct sink *s, size_t columns)
{
	while (columns--)
		add(s, " ", 1);
}

/* One conversion such as "%-14.3f". */
struct spec {
	char flags[8];
	int width, precision; /* precision < 0: none */
	char length;	      /* 'l'; 'q' for ll, j; 'z' for z, t; 0 for int and shorter */
	char conversion;
};

static void add_clean(struct sink *s, const struct spec *p, const char *text)
{
	text = text ? text : "(null)";
	size_t len = p->precision < 0 ? strlen(text) : strnlen(text, (size_t)p->precision);
	size_t columns = tfh_columns(text, len);
	size_t fill = (size_t)p->width > columns ? (size_t)p->width - columns : 0;
	bool left = strchr(p->flags, '-');
	struct tfh_glyph g;

	pad(s, left ? 0 : fill);
	while (len) {
		size_t n = tfh_glyph(text, len, &g);
		add(s, g.text, g.len);
		text += n;
		len -= n;
	}
	pad(s, left ? fill : 0);
}

/* A va_list that can be passed on by pointer, whether or not it is an array type. */
struct arguments {
	va_list list;
};

/* "12", or "*" for an argument */
static int number(const char **fmt, struct arguments *a)
{
	char *end;

	if (**fmt == '*') {
		++*fmt;
		return va_arg(a->list, int);
	}
	long n = strtol(*fmt, &end, 10);
	*fmt = end;
	return (int)n;
}

static struct spec parse(const char **fmt, struct arguments *a)
{
	struct spec p = {.precision = -1};
	size_t n = strspn(*fmt, "-+ #0");

	memcpy(p.flags, *fmt, n < sizeof(p.flags) - 1 ? n : sizeof(p.flags) - 1);
	*fmt += n;
	if (**fmt == '*' || (**fmt >= '1' && **fmt <= '9'))
		p.width = number(fmt, a);
	if (p.width < 0) { /* as in printf */
		p.width = -p.width;
		memcpy(p.flags, "-", 2);
	}
	if (**fmt == '.') {
		++*fmt;
		p.precision = number(fmt, a);
	}
	for (; **fmt && strchr("hlqjzt", **fmt); ++*fmt)
		if (**fmt != 'h')
			p.length = **fmt == 'j' || (**fmt == 'l' && p.length) ? 'q'
				   : **fmt == 't'			      ? 'z'
									      : **fmt;
	p.conversion = **fmt;
	*fmt += **fmt != '\0';
	return p;
}

/* 1.7e308 has 309 digits, and no format has more than a few decimals. */
#define LONGEST_NUMBER 512

static void add_number(struct sink *s, const struct spec *p, struct arguments *a)
{
	char form[32], text[LONGEST_NUMBER];
	bool real = strchr("fFeEgGaA", p->conversion), isigned = strchr("di", p->conversion);
	int n, precision = p->precision < 100 ? p->precision : 100,
	       width = p->width < 100 ? p->width : 100;

	snprintf(form, sizeof(form), "%%%s*%s%s%c", p->flags, precision < 0 ? "" : ".*",
		 real ? "" : "j", p->conversion);
	if (real) {
		double v = va_arg(a->list, double);
		n = precision < 0 ? snprintf(text, sizeof(text), form, width, v)
				  : snprintf(text, sizeof(text), form, width, precision, v);
	} else {
		uintmax_t v;
		if (p->length == 'l')
			v = isigned ? (uintmax_t)va_arg(a->list, long)
				    : va_arg(a->list, unsigned long);
		else if (p->length == 'q')
			v = isigned ? (uintmax_t)va_arg(a->list, long long)
				    : va_arg(a->list, unsigned long long);
		else if (p->length == 'z')
			v = isigned ? (uintmax_t)va_arg(a->list, ptrdiff_t)
				    : va_arg(a->list, size_t);
		else
			v = isigned ? (uintmax_t)va_arg(a->list, int)
				    : va_arg(a->list, unsigned int);
		n = precision < 0 ? snprintf(text, sizeof(text), form, width, v)
				  : snprintf(text, sizeof(text), form, width, precision, v);
	}
	if (n > 0)
		add(s, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static void add_conversion(struct sink *s, const struct spec *p, struct arguments *a)
{
	char one[2] = "";

	switch (p->conversion) {
	case 's':
		add_clean(s, p, va_arg(a->list, const char *));
		break;
	case 'c':
		one[0] = (char)va_arg(a->list, int);
		add_clean(s, p, one);
		break;
	case '%':
		add(s, "%", 1);
		break;
	default:
		add_number(s, p, a);
	}
}

void tfh_vprint(FILE *out, const char *fmt, va_list args)
{
	struct sink s;
	struct arguments a;

	s.out = out;
	s.n = 0;
	va_copy(a.list, args);
	while (*fmt) {
		size_t plain = strcspn(fmt, "%");
		add(&s, fmt, plain);
		fmt += plain;
		if (!*fmt)
			break;
		fmt++;
		struct spec p = parse(&fmt, &a);
		add_conversion(&s, &p, &a);
	}
	va_end(a.list);
	flush(&s);
}

void tfh_print(FILE *out, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	tfh_vprint(out, fmt, args);
	va_end(args);
}

void tfh_put(const char *ours, FILE *out)
{
	fputs(ours, out);
}
