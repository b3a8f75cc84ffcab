/* What the judge found of a recording, for commands that print it: from a digest, or judged now. */
#ifndef TFH_CLI_JUDGED_H
#define TFH_CLI_JUDGED_H

#include "cli/cli.h"
#include "digest/digest.h"
#include "judge/result.h"

struct tfh_judged {
	struct tfh_run *run;
	struct tfh_result *result;
	struct tfh_run_digest *digest; /* it is from this one; NULL: judged now */
};

/* From the digest that PATHS name, or that of the run directory that they name, or the newest one here; 0 or -errno with `err`.
 * `stale`: one that is not up to date will do. -ENOENT without a message: there is none of that kind. */
int tfh_judged_from_digest(const char *const *paths, uint32_t n, bool stale, struct tfh_judged *out,
			   struct tfh_err *err);

/* The same, `judge` (with `arg`) being asked where there is no digest that is up to date; where the recording is gone a stale one
 * stands for it, which is said on stderr. `calls`: what is printed needs the recording, as long as it is there. */
typedef int (*tfh_judge_fn)(void *arg, struct tfh_run *run, struct tfh_result **out,
			    struct tfh_err *err);
int tfh_judged_open(const char *const *paths, uint32_t n, bool calls, tfh_judge_fn judge, void *arg,
		    struct tfh_judged *out, struct tfh_err *err);
void tfh_judged_close(struct tfh_judged *j);

#endif
