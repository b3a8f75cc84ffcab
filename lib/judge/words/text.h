/* The words of a verdict: text.c says what it rests on, text_cause.c what its cause means and what
 * to do about it. Strings are static or live as long as the job's arena. */
#ifndef TFH_JUDGE_TEXT_H
#define TFH_JUDGE_TEXT_H

#include "judge/remark.h"
#include "judge/verdict/verdict.h"

/* text.c: the sentences of a verdict. */
void tfh_explain(const struct tfh_accounts *accounts, struct tfh_result *r);
/* Steps that stood still; loops that were judged together. */
void tfh_tell_stalls(const struct tfh_accounts *accounts, struct tfh_result *r);
void tfh_tell_alike_loops(const struct tfh_accounts *accounts, struct tfh_result *r);

/* text_site.c: who makes the calls behind a cause of the host's, NULL where it is not known. */
const char *tfh_site_line(const struct tfh_accounts *accounts, enum tfh_cause cause);
/* What to do about a cause of the host's, where a trace tells of its functions; NULL. */
const char *tfh_site_advice(const struct tfh_accounts *accounts, enum tfh_cause cause);

/* say.c: a line below the verdict's sentence; left out where there is no place for it. */
void tfh_evidence(struct tfh_verdict *v, const char *line);

/* An entry of the advice: what was found, the line that shows it, what to do. gain: the factor at
 * best, NAN unknown. Left out after the fifth. */
void tfh_advise(struct tfh_result *r, const char *finding, const char *why, const char *todo,
		double gain);

/* The factor at best without that part of the steps, NAN where the what-ifs have none. */
double tfh_ceiling(const struct tfh_result *r, enum tfh_remove what);

/* Seconds in a sentence: "5.41 s", "19 ms", "2.05 ms", "454 us". */
const char *tfh_text_time(const struct tfh_accounts *accounts, double s);

/* The sentence, the evidence and the advice of a class that has a cause; false for the others. */
bool tfh_explain_cause(const struct tfh_accounts *accounts, struct tfh_result *r);

/* Where input is the second class, its stage is worth a line, too. */
void tfh_explain_also(const struct tfh_accounts *accounts, struct tfh_result *r);

/* One op that is most of a computing that matters is worth a line whatever the class. */
void tfh_explain_kernels(const struct tfh_accounts *accounts, struct tfh_result *r);

#endif
