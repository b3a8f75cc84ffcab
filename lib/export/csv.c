#include "export/csv.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/clean.h"
#include "base/print.h"

static void separate(struct tfh_csv *c)
{
	if (c->fields++)
		tfh_put(",", c->out);
}

/* Whether a spreadsheet would read the text as a formula. A leading blank does not prevent that:
 * some drop it. */
static bool formula(const char *text)
{
	return strchr("=+-@\t\r", *text) && *text;
}

void tfh_csv_text(struct tfh_csv *c, const char *text)
{
	separate(c);
	if (!text || !*text)
		return;
	bool guarded = !c->plain && formula(text);
	bool quoted = guarded || strpbrk(text, ",\"\r\n; \t'") != NULL;
	if (quoted)
		putc('"', c->out);
	if (guarded)
		putc('\'', c->out);
	for (size_t n = strlen(text), i = 0, step; i < n; i += step) {
		uint32_t ch;
		step = tfh_utf8(text + i, n - i, &ch);
		if (!step)
			tfh_put("\xef\xbf\xbd", c->out);
		else
			fwrite(text + i, 1, step, c->out);
		if (text[i] == '"')
			putc('"', c->out);
		step += !step;
	}
	if (quoted)
		putc('"', c->out);
}

void tfh_csv_int(struct tfh_csv *c, int64_t value)
{
	separate(c);
	tfh_print(c->out, "%" PRId64, value);
}

void tfh_csv_double(struct tfh_csv *c, double value)
{
	separate(c);
	if (!isnan(value))
		tfh_print(c->out, "%.17g", value);
}

void tfh_csv_empty(struct tfh_csv *c)
{
	separate(c);
}

int tfh_csv_end(struct tfh_csv *c)
{
	tfh_put("\r\n", c->out);
	c->fields = 0;
	return ferror(c->out) ? -EIO : 0;
}
