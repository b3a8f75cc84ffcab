/* From a recording to a result. */
#ifndef TFH_JUDGE_JUDGE_H
#define TFH_JUDGE_JUDGE_H

#include "base/err.h"
#include "judge/result.h"

/* Judges a run. 0, -ENODATA if data is missing (`err` says what; exit code 5), or another negative
 * errno. */
int tfh_analyze(struct tfh_run *run, struct tfh_result **out, struct tfh_err *err);
/* Like tfh_analyze(). `fn` is called for each judged process (every rank, or the critical process),
 * in the order of the run's processes, while results still have each step's seconds by cause. A
 * result is valid until `fn` returns; an error of `fn` ends the analysis. Data about the whole run
 * (`run`, ranks, quality, end, machine) is only in *out. If the ranks were started several times
 * (judge/generations.h), those of the generations that are not judged come last. */
typedef int (*tfh_rank_fn)(void *arg, const struct tfh_result *r, struct tfh_err *err);
int tfh_analyze_ranks(struct tfh_run *run, tfh_rank_fn fn, void *arg, struct tfh_result **out,
		      struct tfh_err *err);
/* Like tfh_analyze_ranks(), with `fn` optional (NULL) and for the judged generation alone, and with
 * what some steps waited for: those of the chains (judge/chain.h) that `choose` creates once all
 * steps are judged. It returns the first of several linked chains, or NULL. `likely`: a step that
 * it will choose, TFH_NO_STEP: unknown. */
struct tfh_chain;
struct tfh_steps_wanted {
	struct tfh_chain *(*choose)(void *arg, const struct tfh_result *r);
	void *arg;
	uint64_t likely;
};
int tfh_analyze_steps(struct tfh_run *run, const struct tfh_steps_wanted *wanted, tfh_rank_fn fn,
		      void *arg, struct tfh_result **out, struct tfh_err *err);

#endif
