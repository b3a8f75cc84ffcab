/* Which programs are recorded: TFHOOK_ONLY, TFHOOK_SKIP. */
#include "record/run/rundir.h"

#include <regex.h>

#include "base/rules.h"

/* 1: matches, 0: does not match, -1: there is no valid pattern. */
static int matches(const char *pattern, const struct tfh_recorder *p)
{
	regex_t re;
	int hit;

	if (!pattern[0] || !tfh_pattern_bounded(pattern) ||
	    regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB))
		return -1;
	hit = !regexec(&re, p->exe, 0, NULL, 0) || !regexec(&re, p->command, 0, NULL, 0);
	regfree(&re);
	return hit;
}

bool tfh_filter_program(const struct tfh_recorder *p)
{
	return matches(tfh_opt_str(&p->options, TFH_OPT_ONLY), p) != 0 &&
	       matches(tfh_opt_str(&p->options, TFH_OPT_SKIP), p) != 1;
}
