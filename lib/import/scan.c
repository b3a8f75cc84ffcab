#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/scan.h"

void tfh_scan_init(struct tfh_scan *s, struct tfh_bytes *bytes)
{
	memset(s, 0, offsetof(struct tfh_scan, text));
	s->bytes = bytes;
	s->text[0] = '\0';
}

/* ---- bytes ---- */

static bool refill(struct tfh_scan *s)
{
	size_t n;

	if (s->error)
		return false;
	s->before += (uint64_t)(s->end - s->block);
	s->block = s->p = s->end = tfh_bytes_next(s->bytes, &n);
	if (!s->p)
		return false;
	s->end += n;
	/* A byte order mark that some editors write. */
	if (!s->before && n >= 3 && !memcmp(s->p, "\xef\xbb\xbf", 3))
		s->p += 3;
	return s->p < s->end;
}

static void broken(struct tfh_scan *s, const char *why)
{
	if (s->error)
		return;
	s->before += (uint64_t)(s->p - s->block);
	s->error = why;
	s->p = s->end = s->block = NULL;
}

static inline int get(struct tfh_scan *s)
{
	if (s->p == s->end && !refill(s))
		return -1;
	return *s->p++;
}

int tfh_scan_peek(struct tfh_scan *s)
{
	for (;;) {
		while (s->p < s->end) {
			uint8_t c = *s->p;
			if (c != ' ' && c != '\n' && c != '\r' && c != '\t' && c != ',' && c != ':')
				return c;
			s->p++;
		}
		if (!refill(s))
			return 0;
	}
}

/* ---- strings ---- */

static void add(struct tfh_scan *s, const void *data, size_t n)
{
	if (n > TFH_SCAN_TEXT - s->length)
		n = TFH_SCAN_TEXT - s->length;
	memcpy(s->text + s->length, data, n);
	s->length += n;
}

static void add_code(struct tfh_scan *s, uint32_t c)
{
	uint8_t u[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (n == 1)
		u[0] = (uint8_t)c;
	for (size_t i = n; n > 1 && i-- > 1; c >>= 6)
		u[i] = (uint8_t)(0x80 | (c & 0x3f));
	if (n > 1)
		u[0] = (uint8_t)((0xf00u >> n & 0xff) | c);
	add(s, u, n);
}

/* Four hexadecimal digits; other characters count as 0. */
static uint32_t hex4(struct tfh_scan *s)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++) {
		int c = get(s);
		if (c < 0)
			return 0;
		v = v << 4 | (uint32_t)(c >= '0' && c <= '9'		     ? c - '0'
					: (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
									     : 0);
	}
	return v;
}

/* Whether no other than hexadecimal digits are next, as far as the block shows: PyTorch wrote paths
 * of Windows as they are ("torch\utils\data"). */
static bool digits_next(const struct tfh_scan *s)
{
	for (const uint8_t *p = s->p; p < s->end && p < s->p + 4; p++)
		if (!isxdigit(*p))
			return false;
	return true;
}

static void escape(struct tfh_scan *s)
{
	static const char from[] = "bfnrt\"\\/", to[] = "\b\f\n\r\t\"\\/";
	int c = get(s);
	const char *at = c > 0 ? strchr(from, c) : NULL;

	if (c < 0)
		return;
	if (c != 'u' || !digits_next(s)) {
		char byte[] = {'\\', (char)c};
		if (at)
			add(s, &to[at - from], 1);
		else
			add(s, byte, 2);
		return;
	}
	uint32_t code = hex4(s);
	/* A surrogate pair is one character; a lone surrogate is replaced. */
	if (code >= 0xd800 && code < 0xdc00 && s->end - s->p >= 6 && s->p[0] == '\\' &&
	    s->p[1] == 'u') {
		s->p += 2;
		uint32_t low = hex4(s);
		code = low >= 0xdc00 && low < 0xe000
			       ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
			       : 0xfffd;
	}
	add_code(s, code >= 0xd800 && code < 0xe000 ? 0xfffd : code ? code : 0xfffd);
}

/* Whether the quote before s->p ends its string. PyTorch does not escape quotes in the names of
 * functions (`validator.py(0): "combo_kernels""`). */
static bool closes(struct tfh_scan *s)
{
	return (s->p == s->end && !refill(s)) || strchr(",:}] \t\r\n", *s->p);
}

/* After the opening quote. `keep`: copy into s->text. The next quote is searched once, not after
 * every backslash. */
static void string(struct tfh_scan *s, bool keep)
{
	const uint8_t *quote = NULL;
	/* The block that contains `quote`, by its offset in the file. */
	uint64_t block = UINT64_MAX;

	s->length = 0;
	for (;;) {
		if (s->p == s->end && !refill(s)) {
			s->text[s->length = 0] = '\0';
			broken(s, "it ends within a string");
			return;
		}
		const uint8_t *p = s->p;
		if (block != s->before || (quote && quote < p)) {
			block = s->before;
			quote = memchr(p, '"', (size_t)(s->end - p));
		}
		const uint8_t *end = quote ? quote : s->end;
		const uint8_t *slash = memchr(p, '\\', (size_t)(end - p));
		if (keep)
			add(s, p, (size_t)((slash ? slash : end) - p));
		s->p = slash ? slash + 1 : end;
		if (slash) {
			if (keep)
				escape(s);
			else
				get(s);
		} else if (quote) {
			s->p++;
			if (closes(s)) {
				s->text[s->length] = '\0';
				return;
			}
			if (keep)
				add(s, "\"", 1);
		}
	}
}

/* A number or word: everything up to the next structural byte. */
static void word(struct tfh_scan *s)
{
	s->length = 0;
	for (;;) {
		while (s->p < s->end) {
			uint8_t c = *s->p;
			if (c <= ' ' || c == ',' || c == ':' || c == '}' || c == ']' || c == '{' ||
			    c == '[' || c == '"')
				goto done;
			if (s->length < 64)
				s->text[s->length++] = (char)c;
			s->p++;
		}
		if (!refill(s))
			break;
	}
done:
	s->text[s->length] = '\0';
	char c = s->text[0];
	if (!s->length ||
	    !((c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' ||
	      !strcmp(s->text, "true") || !strcmp(s->text, "false") || !strcmp(s->text, "null") ||
	      !strcmp(s->text, "NaN") || !strcmp(s->text, "Infinity") || !strcmp(s->text, "nan") ||
	      !strcmp(s->text, "inf")))
		broken(s, "it is not JSON");
}

/* ---- structure ---- */

bool tfh_scan_enter(struct tfh_scan *s, char open)
{
	if (tfh_scan_peek(s) != open)
		return false;
	s->p++;
	if (++s->depth > TFH_SCAN_DEPTH) {
		broken(s, "it is nested too deeply");
		return false;
	}
	return true;
}

const char *tfh_scan_key(struct tfh_scan *s)
{
	int c = tfh_scan_peek(s);

	if (c == '}') {
		s->p++;
		s->depth--;
		return NULL;
	}
	if (c != '"') {
		broken(s, c ? "it is not JSON" : "it ends within an object");
		return NULL;
	}
	s->p++;
	string(s, true);
	return s->error ? NULL : s->text;
}

bool tfh_scan_item(struct tfh_scan *s)
{
	int c = tfh_scan_peek(s);

	if (c == ']') {
		s->p++;
		s->depth--;
		return false;
	}
	if (!c || c == '}')
		broken(s, c ? "it is not JSON" : "it ends within a list");
	return !s->error;
}

bool tfh_scan_enter_or_skip(struct tfh_scan *s, char open)
{
	if (tfh_scan_enter(s, open))
		return true;
	tfh_scan_skip(s);
	return false;
}

bool tfh_scan_object(struct tfh_scan *s)
{
	while (tfh_scan_item(s))
		if (tfh_scan_enter_or_skip(s, '{'))
			return true;
	return false;
}

void tfh_scan_skip(struct tfh_scan *s)
{
	uint32_t depth = s->depth;

	do {
		int c = tfh_scan_peek(s);
		if (c == '{' || c == '[') {
			tfh_scan_enter(s, (char)c);
		} else if (c == '}' || c == ']') {
			if (s->depth == depth) {
				broken(s, "it is not JSON");
				return;
			}
			s->p++;
			s->depth--;
		} else if (c == '"') {
			s->p++;
			string(s, false);
		} else if (c) {
			word(s);
		} else {
			broken(s, "it ends too early");
		}
	} while (s->depth > depth && !s->error);
}

const char *tfh_scan_text(struct tfh_scan *s)
{
	int c = tfh_scan_peek(s);

	if (c == '"') {
		s->p++;
		string(s, true);
	} else if (c == '{' || c == '[') {
		tfh_scan_skip(s);
		s->length = 0;
		s->text[0] = '\0';
	} else if (c && c != '}' && c != ']') {
		word(s);
	} else {
		broken(s, c ? "it is not JSON" : "it ends too early");
	}
	return s->text;
}

/* ---- numbers ---- */

/* Digits and up to three decimals of `text`, times `scale` (1 or 1000). */
static int64_t decimal(const char *text, int64_t scale)
{
	const char *p = text + (*text == '-' || *text == '+');
	uint64_t v = 0;
	uint32_t digits = 0, round = 0;

	for (; *p >= '0' && *p <= '9'; p++, digits++)
		v = v > (uint64_t)INT64_MAX / 10 ? (uint64_t)INT64_MAX
						 : v * 10 + (uint64_t)(*p - '0');
	if (v > (uint64_t)(INT64_MAX / scale - 1))
		return *text == '-' ? INT64_MIN : INT64_MAX;
	v *= (uint64_t)scale;
	if (*p == '.') {
		int64_t unit = scale / 10;
		for (p++; *p >= '0' && *p <= '9'; p++, digits++, unit /= 10) {
			if (!unit && !round)
				round = *p >= '5' ? 1 : 2;
			v += unit ? (uint64_t)(unit * (*p - '0')) : 0;
		}
		v += round == 1;
	}
	if (!digits || *p == 'e' || *p == 'E') {
		double d = strtod(text, NULL) * (double)scale;
		return isnan(d)	    ? 0
		       : d >= 9e18  ? INT64_MAX
		       : d <= -9e18 ? INT64_MIN
				    : (int64_t)llround(d);
	}
	return *text == '-' ? -(int64_t)v : (int64_t)v;
}

int64_t tfh_scan_int(struct tfh_scan *s)
{
	return decimal(tfh_scan_text(s), 1);
}

int64_t tfh_scan_thousandths(struct tfh_scan *s)
{
	return decimal(tfh_scan_text(s), 1000);
}

int tfh_scan_finish(struct tfh_scan *s, const char *path, struct tfh_err *err)
{
	struct tfh_err why = {0};

	if (tfh_bytes_error(s->bytes, &why))
		return tfh_err_set(err, why.code, "%s: %s", path, why.text);
	if (s->error)
		return tfh_err_set(err, -EBADMSG, "%s: %s (at byte %llu)", path, s->error,
				   (unsigned long long)s->before);
	return 0;
}
