/* The settings of options.def, read from an environment.
 *
 * Reading allocates nothing and calls nothing but string functions, so that the library can do it
 * before the C library is fully up. A value that cannot be understood leaves the default and is
 * marked; it never stops a job.
 */
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
	TFH_OPT_STRING, /* from here on the value is a text */
	TFH_OPT_PATTERN,
	TFH_OPT_RANK_LIST,
	TFH_OPT_PART,
	TFH_OPT_SITES
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

/* Room for all string values together; paths are rarely over 100 bytes. */
#define TFH_OPTIONS_TEXT 16384

struct tfh_options {
	int64_t number[TFH_OPT_COUNT];	/* BOOL, INT, SIZE, ENUM */
	uint16_t string[TFH_OPT_COUNT]; /* texts: offset in text */
	bool given[TFH_OPT_COUNT];	/* set by the user to something valid */
	int8_t error[TFH_OPT_COUNT];	/* 0, or negative errno of a value that was passed over */
	uint32_t used;
	char text[TFH_OPTIONS_TEXT];
};

/* Fills *options from a NULL-terminated list of NAME=VALUE (such as environ; NULL is an empty one).
 * The strings are copied, since the job may change its environment. The first of two equal names
 * counts. Returns the number of values passed over: -EINVAL not understood, -ERANGE out of bounds,
 * -E2BIG too long.
 */
int tfh_options_read(struct tfh_options *options, char *const *env);

/* Sets one option from text, or back to its default with "". Returns 0 or one of the errors above,
 * and then leaves the option as it was.
 */
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

/* Never NULL; "" when nothing is set. Lives as long as *options. */
static inline const char *tfh_opt_str(const struct tfh_options *options, enum tfh_option id)
{
	return options->text + options->string[id];
}

/* True for NAME=VALUE whose name starts with TFHOOK_ but is none of ours: most likely a mistyped
 * one. */
bool tfh_option_unknown(const char *entry);

/* 0 when NAME=VALUE is none of our settings or has a value that is understood; else one of the
 * errors above, and a sentence that says what holds in its place and what may stand there. Unlike
 * the reading of all settings this tries patterns, too, and so may allocate.
 */
int tfh_option_check(const char *entry, char *sentence, size_t size);

/* The known name nearest to that of NAME=VALUE or NAME, NULL if none is near. */
const char *tfh_option_suggest(const char *entry);

/* Number of bytes meant by "4G", "512K", "1.5M", "65536" (K, M, G, T are powers of 1024; an ending
 * B or iB is allowed). Returns 0, -EINVAL or -ERANGE.
 */
int tfh_parse_size(const char *text, int64_t *bytes);

#endif
