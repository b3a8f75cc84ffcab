#include "base/options.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"

const struct tfh_option_spec tfh_option_specs[TFH_OPT_COUNT] = {
#define ROW(id, name, type, fallback, choices, least, greatest, help, later)                       \
	[TFH_OPT_##id] = {name, TFH_OPT_##type, fallback, choices, least, greatest, help, later},
#define OPTION(...) ROW(__VA_ARGS__, false)
#define LATER(...) ROW(__VA_ARGS__, true)
#include "base/options.def"
#undef LATER
#undef OPTION
#undef ROW
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

/* Decimal digits at *p into *value; moves *p behind them. */
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

/* Index of text among choices such as "auto|on|off". */
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

	if (spec->type == TFH_OPT_STRING)
		return store_string(options, id, text);
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
		id = tfh_option_find(entry, length);
		if (id < 0 || entry[length] != '=' || seen[id])
			continue;
		seen[id] = true;
		options->error[id] = (int8_t)tfh_options_set(options, id, entry + length + 1);
		wrong += options->error[id] != 0;
	}
	return wrong;
}

int tfh_option_find(const char *name, size_t length)
{
	for (int id = 0; id < TFH_OPT_COUNT; id++) {
		const char *known = tfh_option_specs[id].name;

		if (strlen(known) == length && !memcmp(known, name, length))
			return id;
	}
	return -1;
}

bool tfh_option_unknown(const char *entry)
{
	return !strncmp(entry, "TFHOOK_", 7) && tfh_option_find(entry, strcspn(entry, "=")) < 0;
}

const char *tfh_option_later(const char *entry)
{
	int id = tfh_option_find(entry, strcspn(entry, "="));

	return id >= 0 && tfh_option_specs[id].later ? tfh_option_specs[id].help : NULL;
}

const char *tfh_option_suggest(const char *entry)
{
	const char *names[TFH_OPT_COUNT];
	char name[LONGEST_NAME];
	size_t length = strcspn(entry, "=");
	const char *nearest;

	if (length < 7 || length - 7 >= sizeof(name))
		return NULL;
	/* The common beginning would make every name look near. */
	memcpy(name, entry + 7, length - 7);
	name[length - 7] = '\0';
	for (int id = 0; id < TFH_OPT_COUNT; id++)
		names[id] = id == TFH_OPT_ENABLED || tfh_option_specs[id].later
				    ? ""
				    : tfh_option_specs[id].name + 7;
	nearest = tfh_nearest(name, names, TFH_OPT_COUNT);
	for (int id = 0; nearest && id < TFH_OPT_COUNT; id++)
		if (nearest == names[id])
			return tfh_option_specs[id].name;
	return NULL;
}
