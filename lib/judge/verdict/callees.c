/*
 * Frequent elements in one pass (Misra and Gries, 1982), weighted: a function with over half of the
 * time is always kept, and its count is too low by at most a ninth of all time.
 */
#include "judge/verdict/callees.h"

#include <math.h>

#include "judge/facts/place_role.h"

/* Majority vote (Boyer and Moore, 1981): the line within the function. */
static void count(struct tfh_callee *c, const struct tfh_model_line *line, double ns)
{
	c->ns += ns;
	c->line_ns += c->line.line == line->line ? ns : -ns;
	if (c->line_ns >= 0)
		return;
	c->line = *line;
	c->line_ns = -c->line_ns;
}

/* Makes room where all places are taken: as much time of every function is taken off as the
 * smallest has, or as `ns`. Returns what is left of `ns`. */
static double take_off(struct tfh_callees *to, double ns)
{
	double least = ns;

	for (int i = 0; i < TFH_VERDICT_CALLEES; i++)
		least = fmin(least, to->of[i].ns);
	for (int i = 0; i < TFH_VERDICT_CALLEES; i++)
		to->of[i].ns -= least;
	return ns - least;
}

void tfh_callee_add(struct tfh_callees *to, const struct tfh_model_line *callee, double ns)
{
	static const struct tfh_model_line none = {"", "", 0, false};
	struct tfh_callee *c = NULL;

	callee = callee ? callee : &none;
	to->ns += ns;
	for (int i = 0; i < TFH_VERDICT_CALLEES && !c; i++)
		if (to->of[i].ns > 0 && tfh_same_function(&to->of[i].line, callee))
			c = &to->of[i];
	for (int tries = 0; tries < 2 && !c; tries++) {
		for (int i = 0; i < TFH_VERDICT_CALLEES && !c; i++)
			if (to->of[i].ns <= 0) {
				to->of[i] = (struct tfh_callee){.line = *callee};
				c = &to->of[i];
			}
		ns = c ? ns : take_off(to, ns);
	}
	if (c)
		count(c, callee, ns);
}

const struct tfh_model_line *tfh_callee_most(const struct tfh_callees *of)
{
	for (int i = 0; i < TFH_VERDICT_CALLEES; i++)
		if (of->of[i].ns > of->ns / 2)
			return *of->of[i].line.function ? &of->of[i].line : NULL;
	return NULL;
}
