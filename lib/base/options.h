/* The settings of options.def, read from an environment.
 *
 * Reading allocates nothing and calls only string functions, so that the library can do it before
 * libc is fully initialised. An invalid value leaves the default and is marked; it never stops a
 * job. */
#ifndef TFH_BASE_OPTIONS_H
#define TFH_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tfh_option {
#define OPTION(id, name, type, fallback, choices, least, greatest, help) TFH_OPT_##id,
#include "base/options.def"
#undef OPTION
	TFH_OPT_COUNT
};

enum tfh_option_type {
	TFH_OPT_BOOL,
	TFH_OPT_INT,
	TFH_OPT_SIZE,
	TFH_OPT_ENUM,
	TFH_OPT_STRING, /* from here on, the value is a string */
	TFH_OPT_PATTERN,
	TFH_OPT_RANK_LIST,
	TFH_OPT_PART,
	TFH_OPT_SITES,
	TFH_OPT_LABEL_LIST
};

/* Values of TFHOOK_CUPTI, in the order of its choices. */
enum tfh_option_cupti { TFH_CUPTI_AUTO, TFH_CUPTI_ON, TFH_CUPTI_OFF, TFH_CUPTI_WINDOW };

struct tfh_option_spec {
	const char *name;
	enum tfh_option_type type;
	const char *fallback; /* default, as a user would write it */
	const char *choices;  /* of an ENUM, separated by | */
	int64_t least, greatest;
	const char *help;
};

extern const struct tfh_option_spec tfh_option_specs[TFH_OPT_COUNT];

/* Capacity for all string values together; paths are rarely over 100 bytes. */
#define TFH_OPTIONS_TEXT 16384

struct tfh_options {
	int64_t number[TFH_OPT_COUNT];	/* BOOL, INT, SIZE, ENUM */
	uint16_t string[TFH_OPT_COUNT]; /* strings: offset in text */
	bool given[TFH_OPT_COUNT];	/* set by the user to a valid value */
	int8_t error[TFH_OPT_COUNT];	/* 0, or the negative errno of an ignored value */
	uint32_t used;
	char text[TFH_OPTIONS_TEXT];
};

/* Fills *options from a NULL-terminated list of NAME=VALUE (such as environ; NULL is an empty
 * list). Strings are copied, since the job may change its environment. The first of two equal names
 * counts. Returns the number of ignored values; their errors are -EINVAL (not understood), -ERANGE
 * (out of bounds) or -E2BIG (too long). */
int tfh_options_read(struct tfh_options *options, char *const *env);

/* Sets one option from text; "" restores the default. On one of the errors above the option stays
 * unchanged. */
int tfh_options_set(struct tfh_options *options, enum tfh_option id, const char *text);

static inline bool tfh_option_is_text(const struct tfh_option_spec *spec)
{
	return spec->type >= TFH_OPT_STRING;
}

static inline bool tfh_opt_bool(const struct tfh_options *options, enum tfh_option id)
{
	return options->number[id] != 0;
}

static inline int64_t tfh_opt_int(const struct tfh_options *options, enum tfh_option id)
{
	return options->number[id];
}

/* Never NULL; "" if not set. Lives as long as *options. */
static inline const char *tfh_opt_str(const struct tfh_options *options, enum tfh_option id)
{
	return options->text + options->string[id];
}

/* True for NAME=VALUE whose name starts with TFHOOK_ but is not a setting, most likely a typing
 * error. */
bool tfh_option_unknown(const char *entry);

/* Returns 0 if NAME=VALUE is not a setting or its value is valid; else one of the errors above and
 * a sentence that says which value is used instead and which are valid. Unlike tfh_options_read()
 * this compiles patterns, so it may allocate. */
int tfh_option_check(const char *entry, char *sentence, size_t size);

/* The setting whose name is nearest to that of NAME=VALUE or NAME, or NULL. */
const char *tfh_option_suggest(const char *entry);

/* Parses "4G", "512K", "1.5M" or "65536" into bytes (K, M, G, T are powers of 1024; a suffix B or
 * iB is allowed). Returns 0, -EINVAL or -ERANGE. */
int tfh_parse_size(const char *text, int64_t *bytes);

#endif
