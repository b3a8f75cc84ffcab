/* Streaming JSON writer without a tree or allocation. It inserts commas and escapes.
 *
 * Text from traces may contain anything. Bytes that are not UTF-8 become U+FFFD, so that the output
 * is always valid JSON, and characters that base/clean.h hides from terminals are escaped. Numbers
 * survive a round trip: 64-bit integers exactly, doubles with the fewest digits that read back to
 * the same value. NaN and infinities become null, which means "not measured".
 *
 *	struct tfh_json j;
 *	tfh_json_init(&j, stdout, 2);
 *	tfh_json_object(&j);
 *	tfh_json_key(&j, "count");
 *	tfh_json_u64(&j, 7);
 *	tfh_json_end(&j);
 *	if (tfh_json_finish(&j)) ...
 *
 * Calls in a wrong order (a value without a key, a surplus end) are reported by finish() as
 * -EINVAL.
 */
#ifndef TFH_BASE_JSON_H
#define TFH_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TFH_JSON_DEPTH 64

struct tfh_json {
	FILE *out;
	int indent;	/* spaces per level; 0: everything on one line */
	int depth;	/* open objects and arrays */
	int error;	/* first negative errno */
	bool after_key; /* a key was written, but not yet its value */
	bool root_done;
	struct {
		bool array;
		bool any; /* it has elements already */
	} level[TFH_JSON_DEPTH];
};

/* Starts a document on `out` (not owned). */
void tfh_json_init(struct tfh_json *json, FILE *out, int indent);

/* Opens an object or array as the next value; end() closes the innermost. */
void tfh_json_object(struct tfh_json *json);
void tfh_json_array(struct tfh_json *json);
void tfh_json_end(struct tfh_json *json);

/* Name of the next value in an object. */
void tfh_json_key(struct tfh_json *json, const char *key);

void tfh_json_str(struct tfh_json *json, const char *text); /* NULL becomes null */
void tfh_json_strn(struct tfh_json *json, const char *text, size_t length);
void tfh_json_u64(struct tfh_json *json, uint64_t value);
/* An array of n numbers. */
void tfh_json_u64s(struct tfh_json *json, const uint64_t *value, size_t n);
void tfh_json_i64(struct tfh_json *json, int64_t value);
void tfh_json_f64(struct tfh_json *json, double value);
void tfh_json_bool(struct tfh_json *json, bool value);
void tfh_json_null(struct tfh_json *json);

/* Key and value in one call. */
void tfh_json_kstr(struct tfh_json *json, const char *key, const char *text);
void tfh_json_ku64(struct tfh_json *json, const char *key, uint64_t value);
void tfh_json_ki64(struct tfh_json *json, const char *key, int64_t value);
void tfh_json_kf64(struct tfh_json *json, const char *key, double value);
void tfh_json_kbool(struct tfh_json *json, const char *key, bool value);
void tfh_json_knull(struct tfh_json *json, const char *key);
/* The same for what may not be known: otherwise the value is null. */
void tfh_json_ku64_if(struct tfh_json *json, const char *key, bool known, uint64_t value);
void tfh_json_ki64_if(struct tfh_json *json, const char *key, bool known, int64_t value);
/* Begins an object, which the caller ends, and returns true; otherwise the value is null. */
bool tfh_json_kobject_if(struct tfh_json *json, const char *key, bool known);

/* Ends the document with a newline. Returns 0, -EINVAL for an incomplete document or calls in a
 * wrong order, or -EIO if `out` failed. init() starts the next document (JSON lines). */
int tfh_json_finish(struct tfh_json *json);

/* Shortest decimal text that reads back to the same finite value; returns its length. */
size_t tfh_json_format_double(char text[32], double value);

#endif
