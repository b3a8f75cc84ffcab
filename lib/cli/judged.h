/* The judge's result for a recording, for commands that print it: from a digest, or judged now. */
#ifndef TFH_CLI_JUDGED_H
#define TFH_CLI_JUDGED_H

#include "cli/cli.h"
#include "digest/digest.h"
#include "judge/result.h"

struct tfh_judged {
	struct tfh_run *run;
	struct tfh_result *result;
	struct tfh_run_digest *digest; /* the digest that the result is from; NULL: judged now */
};

/* Reads the digest that PATHS name, the one in the run directory that they name, or the newest one
 * below "."; calls `judge` (with `arg`) if no digest is up to date. If the recording is gone, a
 * stale digest is used, with a message on stderr. `calls`: the output needs the recording, if it
 * still exists. */
typedef int (*tfh_judge_fn)(void *arg, struct tfh_run *run, struct tfh_result **out,
			    struct tfh_err *err);
int tfh_judged_open(const char *const *paths, uint32_t n, bool calls, tfh_judge_fn judge, void *arg,
		    struct tfh_judged *out, struct tfh_err *err);
void tfh_judged_close(struct tfh_judged *j);

#endif
