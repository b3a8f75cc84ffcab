#include "base/rules.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SLOW_NS 1000000ull /* for "slow" and `tfhook run`: 0.3 us per call of at least 1 ms */
#define PATTERN_NODES 65536u
#define LONGEST_S 1e9 /* 32 years; keeps nanoseconds within 64 bits */

/* ---- parts ---- */

/* Parses digits at *text and advances *text past them. */
static int number(const char **text, uint64_t *value)
{
	char *end;

	if (**text < '0' || **text > '9')
		return -EINVAL;
	*value = strtoull(*text, &end, 10);
	*text = end;
	return *value == UINT64_MAX ? -EINVAL : 0; /* overflow */
}

/* Parses "30s", "500ms", "2m" or plain seconds at *text and advances *text past it. */
static int duration(const char **text, uint64_t *ns)
{
	static const struct {
		const char *name; /* longer names before their prefixes */
		double ns;
	} units[] = {{"ns", 1},	  {"us", 1e3},	 {"ms", 1e6}, {"s", 1e9},
		     {"m", 60e9}, {"h", 3600e9}, {"", 1e9}};
	char *end;
	double n = strtod(*text, &end);

	if (end == *text || !(n >= 0) || n > LONGEST_S)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t length = strlen(units[i].name);

		if (strncmp(end, units[i].name, length))
			continue;
		if (n * units[i].ns > LONGEST_S * 1e9)
			return -EINVAL;
		*ns = (uint64_t)(n * units[i].ns);
		*text = end + length;
		return 0;
	}
	return -EINVAL;
}

static int signal_number(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} known[] = {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP}, {"WINCH", SIGWINCH}};

	if (!strncmp(name, "SIG", 3))
		name += 3;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(name, known[i].name))
			return known[i].number;
	return 0;
}

/* ---- TFHOOK_RANKS ---- */

static int match_share(const char *text, uint64_t me)
{
	uint64_t a, b;

	if (number(&text, &a) || *text++ != '/' || number(&text, &b) || *text || !a || a > b ||
	    b > UINT32_MAX)
		return -EINVAL;
	/* Rank r is selected if the share, summed from rank 0, reaches another integer at r. */
	return me % b * a % b < a;
}

int tfh_ranks_match(const char *list, int32_t rank)
{
	uint64_t me = rank < 0 ? 0 : (uint64_t)rank, a, b;
	int hit = 0;

	if (!list[0] || !strcmp(list, "all"))
		return 1;
	if (strchr(list, '/'))
		return match_share(list, me);
	for (;; list++) {
		if (number(&list, &a))
			return -EINVAL;
		b = a;
		if (*list == '-') {
			list++;
			if (number(&list, &b) || b < a)
				return -EINVAL;
		}
		hit |= me >= a && me <= b;
		if (!*list)
			return hit;
		if (*list != ',')
			return -EINVAL;
	}
}

/* ---- TFHOOK_WINDOW ---- */

static int parse_window(const char *text, struct tfh_rule_window *w)
{
	if (!strncmp(text, "steps:", 6)) {
		w->kind = TFH_WINDOW_STEPS;
		text += 6;
		if (number(&text, &w->first) || *text++ != '-' || number(&text, &w->last))
			return -EINVAL;
		return *text || w->last < w->first ? -EINVAL : 0;
	}
	if (!strncmp(text, "time:", 5)) {
		w->kind = TFH_WINDOW_TIME;
		text += 5;
		if (duration(&text, &w->first) || *text++ != '+' || duration(&text, &w->last))
			return -EINVAL;
		w->last += w->first;
		return *text ? -EINVAL : 0;
	}
	if (!strncmp(text, "signal:", 7)) {
		w->kind = TFH_WINDOW_SIGNAL;
		w->signal = signal_number(text + 7);
		return w->signal ? 0 : -EINVAL;
	}
	return *text ? -EINVAL : 0;
}

int tfh_window_parse(const char *text, struct tfh_rule_window *w)
{
	int error;

	*w = (struct tfh_rule_window){0};
	error = parse_window(text, w);
	if (error)
		*w = (struct tfh_rule_window){0};
	return error;
}

/* ---- TFHOOK_STACKS ---- */

int tfh_stack_rule_parse(const char *text, bool run, struct tfh_stack_rule *r)
{
	*r = (struct tfh_stack_rule){.least_ns = UINT64_MAX};
	if (!strcmp(text, "off") || (!strcmp(text, "auto") && !run))
		return 0;
	r->launches = !strcmp(text, "launch");
	r->copies = r->launches || !strcmp(text, "copy");
	if (r->copies || !strcmp(text, "auto") || !strcmp(text, "slow")) {
		r->least_ns = SLOW_NS;
		return 0;
	}
	if (!strncmp(text, "slow:", 5)) {
		text += 5;
		if (!duration(&text, &r->least_ns) && !*text)
			return 0;
	}
	r->least_ns = UINT64_MAX;
	return -EINVAL;
}

/* ---- TFHOOK_LABELS ---- */

int tfh_labels_check(const char *text)
{
	static const char name[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	while (*text) {
		size_t n = strspn(text, name);

		if (!n || text[n] != '=')
			return -EINVAL;
		text += n + strcspn(text + n, ",");
		if (*text && !*++text)
			return -EINVAL;
	}
	return 0;
}

/* ---- TFHOOK_ONLY, TFHOOK_SKIP ---- */

/* glibc expands repetitions: "a+" becomes "aa*", "a{9}" nine copies. */
bool tfh_pattern_bounded(const char *text)
{
	uint64_t nodes = strlen(text) + 1;

	for (const char *p = text; *p && nodes <= PATTERN_NODES; p++) {
		if (*p == '\\' && p[1] >= '1' && p[1] <= '9')
			return false;
		if (*p == '+')
			nodes *= 2;
		if (*p == '{') {
			char *end;
			unsigned long least = strtoul(p + 1, &end, 10);
			unsigned long most = *end == ',' ? strtoul(end + 1, &end, 10) : 0;
			most = most > least ? most : least;
			nodes *= most < PATTERN_NODES ? most + 1 : PATTERN_NODES;
		}
	}
	return nodes <= PATTERN_NODES;
}
