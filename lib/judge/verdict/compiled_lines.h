/* The lines of the program that compile (compiled_lines.c). */
#ifndef TFH_JUDGE_VERDICT_COMPILED_LINES_H
#define TFH_JUDGE_VERDICT_COMPILED_LINES_H

#include "judge/verdict/verdict.h"

struct tfh_compiled_at {
	struct tfh_model_line line;
	const char *callee_file; /* of the compiler's function that it called; NULL: unknown */
	double ns;
};

struct tfh_compiled_lines {
	TFH_VEC(struct tfh_compiled_at) at; /* the caller frees it */
};

/* Adds `ns` of compiling with this stack, whose innermost frame comes first. At most
 * TFH_VERDICT_LINES lines; others are left out. 0 or -ENOMEM. */
int tfh_compiled_lines_add(struct tfh_compiled_lines *lines, const struct tfh_model_line *frame,
			   uint32_t n, enum tfh_role role, double ns);
/* Makes the line with most of it that of `out`. */
void tfh_compiled_lines_keep(const struct tfh_compiled_lines *lines, struct tfh_compiling *out);

#endif
