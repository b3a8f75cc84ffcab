/* Which function a line of the program mostly calls. */
#ifndef TFH_JUDGE_VERDICT_CALLEES_H
#define TFH_JUDGE_VERDICT_CALLEES_H

#include "judge/numbers.h"
#include "model/symbols/pylines.h"

struct tfh_callee {
	/* The line that most of its samples are at; "": none is called. */
	struct tfh_model_line line;
	double line_ns; /* by which these exceed its other samples */
	double ns;
};

struct tfh_callees {
	struct tfh_callee of[TFH_VERDICT_CALLEES];
	double ns; /* of all */
};

/* Adds `ns` of samples in which the line called `callee`; NULL: it called nothing. */
void tfh_callee_add(struct tfh_callees *to, const struct tfh_model_line *callee, double ns);
/* The function with over half of the time, with the line that it is mostly at. NULL: there is none,
 * or most of the time is the line's own. Borrowed from `of`. */
const struct tfh_model_line *tfh_callee_most(const struct tfh_callees *of);

#endif
