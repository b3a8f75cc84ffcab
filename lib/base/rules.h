/* The syntax of settings: TFHOOK_RANKS, TFHOOK_WINDOW, TFHOOK_STACKS, TFHOOK_LABELS and
 * patterns. */
#ifndef TFH_BASE_RULES_H
#define TFH_BASE_RULES_H

#include <stdbool.h>
#include <stdint.h>

/* "all" (or ""), "0-7,64", or "1/16" (every 16th rank). A process without a rank (-1) counts as
 * rank 0. Returns 1 if `rank` is selected, 0 if not, -EINVAL for an invalid list. */
int tfh_ranks_match(const char *list, int32_t rank);

/* "steps:100-200", "time:30s+60s", "signal:USR2"; "" is the whole run. */
struct tfh_rule_window {
	enum { TFH_WINDOW_ALL, TFH_WINDOW_STEPS, TFH_WINDOW_TIME, TFH_WINDOW_SIGNAL } kind;
	uint64_t first, last; /* steps, or ns after the start */
	int signal;
};
/* Returns 0, or -EINVAL for an invalid text. */
int tfh_window_parse(const char *text, struct tfh_rule_window *w);

/* "off", "slow", "slow:1ms", "copy", "launch" or "auto": which calls get a backtrace. */
struct tfh_stack_rule {
	bool launches, copies; /* whatever their duration */
	uint64_t least_ns;     /* of other calls; UINT64_MAX: none */
};
/* Returns 0, or -EINVAL for an invalid text, which selects no calls. `run`: the program was started
 * by `tfhook run`. */
int tfh_stack_rule_parse(const char *text, bool run, struct tfh_stack_rule *rule);

/* "team=vision,image=train:7": names of letters, digits and "._-"; values without commas. Returns
 * 0, or -EINVAL for an invalid text. "" is no label. */
int tfh_labels_check(const char *text);

/* For TFHOOK_ONLY and TFHOOK_SKIP: whether compiling and matching this regular expression takes
 * bounded time and memory (a few MB). Each nested repetition doubles the size, and a back-reference
 * tries every way to divide the text. */
bool tfh_pattern_bounded(const char *text);

#endif
