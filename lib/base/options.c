#include "base/options.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "base/rules.h"

const struct tfh_option_spec tfh_option_specs[TFH_OPT_COUNT] = {
#define OPTION(id, name, type, fallback, choices, least, greatest, help)                           \
	[TFH_OPT_##id] = {name, TFH_OPT_##type, fallback, choices, least, greatest, help},
#include "base/options.def"
#undef OPTION
};

#define LONGEST_NAME 64

static int parse_bool(const char *text, int64_t *value)
{
	static const char *const words[][2] = {
		{"0", "1"}, {"off", "on"}, {"no", "yes"}, {"false", "true"}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		for (int truth = 0; truth < 2; truth++) {
			if (!strcasecmp(text, words[i][truth])) {
				*value = truth;
				return 0;
			}
		}
	}
	return -EINVAL;
}

/* Parses decimal digits at *p and advances *p past them. */
static int parse_digits(const char **p, int64_t *value)
{
	const char *start = *p;

	*value = 0;
	for (; **p >= '0' && **p <= '9'; ++*p)
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, **p - '0', value))
			return -ERANGE;
	return *p == start ? -EINVAL : 0;
}

static int parse_int(const char *text, int64_t *value)
{
	bool negative = *text == '-';
	const char *p = text + negative;
	int error = parse_digits(&p, value);

	if (error)
		return error;
	if (*p)
		return -EINVAL;
	if (negative)
		*value = -*value;
	return 0;
}

int tfh_parse_size(const char *text, int64_t *bytes)
{
	static const char units[] = "KMGT";
	const char *p = text, *unit;
	int64_t whole, unit_bytes = 1, fraction = 0, divisor = 1;
	int error = parse_digits(&p, &whole);

	if (error)
		return error;
	if (*p == '.') {
		for (p++; *p >= '0' && *p <= '9'; p++) {
			if (divisor > 100000)
				return -EINVAL;
			fraction = 10 * fraction + *p - '0';
			divisor *= 10;
		}
	}
	unit = *p ? strchr(units, *p & ~0x20) : NULL;
	if (unit) {
		unit_bytes = (int64_t)1 << (10 * (unit - units + 1));
		p++;
		if (*p == 'i')
			p++;
	}
	if (*p == 'B' || *p == 'b')
		p++;
	if (*p)
		return -EINVAL;
	if (__builtin_mul_overflow(whole, unit_bytes, &whole) ||
	    __builtin_add_overflow(whole, fraction * unit_bytes / divisor, bytes))
		return -ERANGE;
	return 0;
}

/* Index of text in a list such as "auto|on|off". */
static int parse_choice(const char *choices, const char *text, int64_t *value)
{
	size_t length = strlen(text);

	*value = 0;
	for (const char *p = choices;; p++, ++*value) {
		size_t n = strcspn(p, "|");

		if (n == length && !strncasecmp(p, text, n))
			return 0;
		p += n;
		if (!*p)
			return -EINVAL;
	}
}

static int parse_number(const struct tfh_option_spec *spec, const char *text, int64_t *value)
{
	int error;

	if (spec->type == TFH_OPT_BOOL)
		return parse_bool(text, value);
	if (spec->type == TFH_OPT_ENUM)
		return parse_choice(spec->choices, text, value);
	error = spec->type == TFH_OPT_SIZE ? tfh_parse_size(text, value) : parse_int(text, value);
	if (!error && (*value < spec->least || *value > spec->greatest))
		error = -ERANGE;
	return error;
}

/* Checks strings with a syntax of their own, except patterns: compiling one allocates. */
static int check_text(const struct tfh_option_spec *spec, const char *text)
{
	struct tfh_stack_rule rule;
	struct tfh_rule_window window;
	int match;

	switch (spec->type) {
	case TFH_OPT_RANK_LIST:
		match = tfh_ranks_match(text, 0);
		return match < 0 ? match : 0;
	case TFH_OPT_PART:
		return tfh_window_parse(text, &window);
	case TFH_OPT_SITES:
		return tfh_stack_rule_parse(text, false, &rule);
	case TFH_OPT_LABEL_LIST:
		return tfh_labels_check(text);
	default:
		return 0;
	}
}

static int store_string(struct tfh_options *options, enum tfh_option id, const char *text)
{
	size_t room = sizeof(options->text) - options->used;
	size_t size = strnlen(text, room) + 1;

	if (size > room)
		return -E2BIG;
	memcpy(options->text + options->used, text, size);
	options->string[id] = (uint16_t)options->used;
	options->used += (uint32_t)size;
	return 0;
}

static int store(struct tfh_options *options, enum tfh_option id, const char *text)
{
	const struct tfh_option_spec *spec = &tfh_option_specs[id];
	int64_t value;
	int error;

	if (tfh_option_is_text(spec)) {
		error = check_text(spec, text);
		return error ? error : store_string(options, id, text);
	}
	error = parse_number(spec, text, &value);
	if (!error)
		options->number[id] = value;
	return error;
}

int tfh_options_set(struct tfh_options *options, enum tfh_option id, const char *text)
{
	int error = store(options, id, *text ? text : tfh_option_specs[id].fallback);

	if (!error)
		options->given[id] = *text != '\0';
	return error;
}

/* Number of the option called name (`length` bytes), or -1. */
static int find_option(const char *name, size_t length)
{
	for (int id = 0; id < TFH_OPT_COUNT; id++) {
		const char *known = tfh_option_specs[id].name;

		if (strlen(known) == length && !memcmp(known, name, length))
			return id;
	}
	return -1;
}

int tfh_options_read(struct tfh_options *options, char *const *env)
{
	bool seen[TFH_OPT_COUNT] = {false};
	int wrong = 0;

	memset(options, 0, offsetof(struct tfh_options, text) + 1);
	options->used = 1; /* text[0] is the empty string */
	for (int id = 0; id < TFH_OPT_COUNT; id++)
		tfh_options_set(options, id, "");
	for (; env && *env; env++) {
		const char *entry = *env;
		size_t length;
		int id;

		if (strncmp(entry, "TFHOOK", 6))
			continue;
		length = strcspn(entry, "=");
		id = find_option(entry, length);
		if (id < 0 || entry[length] != '=' || seen[id])
			continue;
		seen[id] = true;
		options->error[id] = (int8_t)tfh_options_set(options, id, entry + length + 1);
		wrong += options->error[id] != 0;
	}
	return wrong;
}

bool tfh_option_unknown(const char *entry)
{
	return !strncmp(entry, "TFHOOK_", 7) && find_option(entry, strcspn(entry, "=")) < 0;
}

/* Describes the valid values. */
static void describe(const struct tfh_option_spec *spec, char *text, size_t size)
{
	const char *language = strstr(spec->help, ": ");

	switch (spec->type) {
	case TFH_OPT_BOOL:
		snprintf(text, size, "0 or 1");
		return;
	case TFH_OPT_INT:
		if (spec->greatest == INT64_MAX)
			snprintf(text, size, "a whole number of at least %lld",
				 (long long)spec->least);
		else
			snprintf(text, size, "a whole number from %lld to %lld",
				 (long long)spec->least, (long long)spec->greatest);
		return;
	case TFH_OPT_SIZE:
		snprintf(text, size, "a size such as %s, at least %lldK", spec->fallback,
			 (long long)(spec->least >> 10));
		return;
	case TFH_OPT_ENUM:
		snprintf(text, size, "one of %s", spec->choices);
		return;
	case TFH_OPT_PATTERN:
		snprintf(text, size, "a regular expression");
		return;
	default:
		snprintf(text, size, "%s", language ? language + 2 : "a shorter text");
	}
}

static int check_value(const struct tfh_option_spec *spec, const char *text)
{
	int64_t value;
	regex_t re;

	if (!*text)
		return 0;
	if (strlen(text) >= TFH_OPTIONS_TEXT - 1)
		return -E2BIG;
	if (!tfh_option_is_text(spec))
		return parse_number(spec, text, &value);
	if (spec->type != TFH_OPT_PATTERN)
		return check_text(spec, text);
	if (!tfh_pattern_bounded(text) || regcomp(&re, text, REG_EXTENDED | REG_NOSUB))
		return -EINVAL;
	regfree(&re);
	return 0;
}

int tfh_option_check(const char *entry, char *sentence, size_t size)
{
	size_t length = strcspn(entry, "=");
	int id = find_option(entry, length), error;
	const struct tfh_option_spec *spec;
	char wanted[256];

	if (id < 0 || !entry[length])
		return 0;
	spec = &tfh_option_specs[id];
	error = check_value(spec, entry + length + 1);
	if (!error)
		return 0;
	describe(spec, wanted, sizeof(wanted));
	snprintf(sentence, size, "%s=%.60s%s %s %s%s; it takes %s", spec->name, entry + length + 1,
		 strlen(entry + length + 1) > 60 ? "..." : "",
		 error == -ERANGE  ? "is out of bounds"
		 : error == -E2BIG ? "is too long"
				   : "is not understood",
		 *spec->fallback ? "and stays " : "and has no effect", spec->fallback, wanted);
	return error;
}

const char *tfh_option_suggest(const char *entry)
{
	const char *names[TFH_OPT_COUNT];
	char name[LONGEST_NAME];
	size_t length = strcspn(entry, "=");
	const char *nearest;

	if (length < 7 || length - 7 >= sizeof(name))
		return NULL;
	/* The common prefix would make every name look similar. */
	memcpy(name, entry + 7, length - 7);
	name[length - 7] = '\0';
	for (int id = 0; id < TFH_OPT_COUNT; id++)
		names[id] = id == TFH_OPT_ENABLED ? "" : tfh_option_specs[id].name + 7;
	nearest = tfh_nearest(name, names, TFH_OPT_COUNT);
	for (int id = 0; nearest && id < TFH_OPT_COUNT; id++)
		if (nearest == names[id])
			return tfh_option_specs[id].name;
	return NULL;
}
