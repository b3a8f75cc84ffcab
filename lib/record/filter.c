/* Who is recorded, and when: TFHOOK_ONLY, TFHOOK_SKIP, TFHOOK_RANKS, TFHOOK_WINDOW. */
#include "record/internal.h"

#include <errno.h>
#include <regex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* A pattern that cannot be understood matches nothing and hinders nothing. */
static int matches(const char *pattern, const struct tfh_proc *p)
{
	regex_t re;
	int hit;

	if (!pattern[0] || regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB))
		return -1;
	hit = !regexec(&re, p->exe, 0, NULL, 0) || !regexec(&re, p->command, 0, NULL, 0);
	regfree(&re);
	return hit;
}

bool tfh_filter_program(const struct tfh_proc *p)
{
	return matches(tfh_opt_str(&p->options, TFH_OPT_ONLY), p) != 0 &&
	       matches(tfh_opt_str(&p->options, TFH_OPT_SKIP), p) != 1;
}

/* "all", "0-7,64", or "1/16": every 16th. A process without a rank counts as rank 0. */
bool tfh_filter_rank(const char *list, int32_t rank)
{
	unsigned long me = rank < 0 ? 0 : (unsigned long)rank, a, b;
	char *end;

	if (!list[0] || !strcmp(list, "all"))
		return true;
	a = strtoul(list, &end, 10);
	if (end != list && *end == '/') {
		b = strtoul(end + 1, &end, 10);
		/* Rank r is taken when the share, counted up from rank 0, reaches another whole at
		 * r. */
		return *end || !a || !b || me % b * a % b < a;
	}
	for (;;) {
		a = b = strtoul(list, &end, 10);
		if (end == list)
			return true; /* not understood: record rather than miss */
		if (*end == '-') {
			list = end + 1;
			b = strtoul(list, &end, 10);
			if (end == list)
				return true;
		}
		if (me >= a && me <= b)
			return true;
		if (*end != ',')
			return *end != '\0';
		list = end + 1;
	}
}

/* "30s", "500ms", "2m" or plain seconds. */
static int duration(const char *text, const char **end, uint64_t *ns)
{
	char *after;
	double n = strtod(text, &after);

	if (after == text || !(n >= 0) || n > 1e9)
		return -EINVAL;
	if (!strncmp(after, "ms", 2)) {
		n /= 1e3;
		after += 2;
	} else if (*after == 's') {
		after++;
	} else if (*after == 'm') {
		n *= 60;
		after++;
	} else if (*after == 'h') {
		n *= 3600;
		after++;
	}
	*ns = (uint64_t)(n * 1e9);
	*end = after;
	return 0;
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

int tfh_window_parse(const char *text, struct tfh_window *w)
{
	char *end;

	memset(w, 0, sizeof(*w));
	if (!text[0])
		return 0;
	if (!strncmp(text, "steps:", 6)) {
		w->first = strtoull(text + 6, &end, 10);
		if (end == text + 6 || *end != '-')
			return -EINVAL;
		text = end + 1;
		w->last = strtoull(text, &end, 10);
		if (end == text || *end || w->last < w->first)
			return -EINVAL;
		w->kind = TFH_WINDOW_STEPS;
		return 0;
	}
	if (!strncmp(text, "time:", 5)) {
		const char *at = text + 5;

		if (duration(at, &at, &w->first) || *at != '+' || duration(at + 1, &at, &w->last) ||
		    *at)
			return -EINVAL;
		w->last += w->first;
		w->kind = TFH_WINDOW_TIME;
		return 0;
	}
	if (!strncmp(text, "signal:", 7) && signal_number(text + 7)) {
		w->signal = signal_number(text + 7);
		w->kind = TFH_WINDOW_SIGNAL;
		return 0;
	}
	return -EINVAL;
}
