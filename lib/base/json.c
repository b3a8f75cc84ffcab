#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"

void tfh_json_init(struct tfh_json *json, FILE *out, int indent)
{
	memset(json, 0, sizeof(*json));
	json->out = out;
	json->indent = indent;
}

static void fail(struct tfh_json *json)
{
	if (!json->error)
		json->error = -EINVAL;
}

static void new_line(struct tfh_json *json)
{
	if (json->indent)
		fprintf(json->out, "\n%*s", json->depth * json->indent, "");
}

/* Writes the comma and line break before the next element of the innermost level. */
static void separate(struct tfh_json *json)
{
	if (json->level[json->depth - 1].any)
		putc(',', json->out);
	json->level[json->depth - 1].any = true;
	new_line(json);
}

/* Called before every value. Returns false if no value is allowed here. */
static bool value(struct tfh_json *json)
{
	if (json->error)
		return false;
	if (json->after_key) {
		json->after_key = false;
		return true;
	}
	if (json->depth == 0) {
		if (json->root_done) {
			fail(json);
			return false;
		}
		json->root_done = true;
		return true;
	}
	if (!json->level[json->depth - 1].array) {
		fail(json);
		return false;
	}
	separate(json);
	return true;
}

static void open_level(struct tfh_json *json, bool array)
{
	if (!value(json))
		return;
	if (json->depth == TFH_JSON_DEPTH) {
		fail(json);
		return;
	}
	putc(array ? '[' : '{', json->out);
	json->level[json->depth].array = array;
	json->level[json->depth].any = false;
	json->depth++;
}

void tfh_json_object(struct tfh_json *json)
{
	open_level(json, false);
}

void tfh_json_array(struct tfh_json *json)
{
	open_level(json, true);
}

void tfh_json_end(struct tfh_json *json)
{
	if (json->depth == 0 || json->after_key)
		fail(json);
	if (json->error)
		return;
	json->depth--;
	if (json->level[json->depth].any)
		new_line(json);
	putc(json->level[json->depth].array ? ']' : '}', json->out);
}

/* Short escape of a character, 0 if there is none. */
static char short_escape(unsigned char c)
{
	switch (c) {
	case '"':
	case '\\':
		return (char)c;
	case '\b':
		return 'b';
	case '\f':
		return 'f';
	case '\n':
		return 'n';
	case '\r':
		return 'r';
	case '\t':
		return 't';
	default:
		return 0;
	}
}

/* Escapes a character that JSON strings must not contain or a terminal must not receive. */
static void write_escape(FILE *out, uint32_t c)
{
	char brief = c < 0x80 ? short_escape((unsigned char)c) : 0;

	if (brief)
		fprintf(out, "\\%c", brief);
	else if (c < 0x10000)
		fprintf(out, "\\u%04x", c);
	else
		fprintf(out, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 | (c & 0x3ff));
}

/* With quotes. */
static void write_string(FILE *out, const char *text, size_t length)
{
	size_t plain = 0; /* bytes since the last escape, written at once */

	putc('"', out);
	while (plain < length) {
		uint32_t c = 0xfffd;
		size_t n = tfh_utf8(text + plain, length - plain, &c);

		if (n && tfh_shown(c) && c != '"' && c != '\\') {
			plain += n;
			continue;
		}
		fwrite(text, 1, plain, out);
		write_escape(out, c);
		plain += n ? n : 1;
		text += plain;
		length -= plain;
		plain = 0;
	}
	fwrite(text, 1, plain, out);
	putc('"', out);
}

void tfh_json_key(struct tfh_json *json, const char *key)
{
	if (json->depth == 0 || json->level[json->depth - 1].array || json->after_key)
		fail(json);
	if (json->error)
		return;
	separate(json);
	write_string(json->out, key, strlen(key));
	fputs(json->indent ? ": " : ":", json->out);
	json->after_key = true;
}

void tfh_json_str(struct tfh_json *json, const char *text)
{
	if (text)
		tfh_json_strn(json, text, strlen(text));
	else
		tfh_json_null(json);
}

void tfh_json_strn(struct tfh_json *json, const char *text, size_t length)
{
	if (value(json))
		write_string(json->out, text, length);
}

void tfh_json_u64(struct tfh_json *json, uint64_t number)
{
	if (value(json))
		fprintf(json->out, "%" PRIu64, number);
}

void tfh_json_u64s(struct tfh_json *json, const uint64_t *value, size_t n)
{
	tfh_json_array(json);
	for (size_t i = 0; i < n; i++)
		tfh_json_u64(json, value[i]);
	tfh_json_end(json);
}

void tfh_json_i64(struct tfh_json *json, int64_t number)
{
	if (value(json))
		fprintf(json->out, "%" PRId64, number);
}

void tfh_json_f64(struct tfh_json *json, double number)
{
	char text[32];

	if (!isfinite(number)) {
		tfh_json_null(json);
	} else if (value(json)) {
		tfh_json_format_double(text, number);
		fputs(text, json->out);
	}
}

void tfh_json_bool(struct tfh_json *json, bool truth)
{
	if (value(json))
		fputs(truth ? "true" : "false", json->out);
}

void tfh_json_null(struct tfh_json *json)
{
	if (value(json))
		fputs("null", json->out);
}

void tfh_json_kstr(struct tfh_json *json, const char *key, const char *text)
{
	tfh_json_key(json, key);
	tfh_json_str(json, text);
}

void tfh_json_ku64(struct tfh_json *json, const char *key, uint64_t number)
{
	tfh_json_key(json, key);
	tfh_json_u64(json, number);
}

void tfh_json_ki64(struct tfh_json *json, const char *key, int64_t number)
{
	tfh_json_key(json, key);
	tfh_json_i64(json, number);
}

void tfh_json_kf64(struct tfh_json *json, const char *key, double number)
{
	tfh_json_key(json, key);
	tfh_json_f64(json, number);
}

void tfh_json_kbool(struct tfh_json *json, const char *key, bool truth)
{
	tfh_json_key(json, key);
	tfh_json_bool(json, truth);
}

void tfh_json_knull(struct tfh_json *json, const char *key)
{
	tfh_json_key(json, key);
	tfh_json_null(json);
}

void tfh_json_ku64_if(struct tfh_json *json, const char *key, bool known, uint64_t number)
{
	if (known)
		tfh_json_ku64(json, key, number);
	else
		tfh_json_knull(json, key);
}

void tfh_json_ki64_if(struct tfh_json *json, const char *key, bool known, int64_t number)
{
	if (known)
		tfh_json_ki64(json, key, number);
	else
		tfh_json_knull(json, key);
}

bool tfh_json_kobject_if(struct tfh_json *json, const char *key, bool known)
{
	tfh_json_key(json, key);
	if (known)
		tfh_json_object(json);
	else
		tfh_json_null(json);
	return known;
}

int tfh_json_finish(struct tfh_json *json)
{
	if (json->depth || !json->root_done)
		fail(json);
	putc('\n', json->out);
	if (!json->error && (fflush(json->out) || ferror(json->out)))
		json->error = -EIO;
	return json->error;
}

size_t tfh_json_format_double(char text[32], double number)
{
	/* A double keeps any 15 digits; 17 digits distinguish it from its neighbours. */
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, 32, "%.*g", digits, number);
		if (strtod(text, NULL) == number)
			break;
	}
	/* The locale's decimal point may differ and have several bytes. */
	char *to = text;
	for (const char *from = text; *from; from++) {
		if (strchr("0123456789+-e", *from))
			*to++ = *from;
		else if (to == text || to[-1] != '.')
			*to++ = '.';
	}
	*to = '\0';
	return (size_t)(to - text);
}
