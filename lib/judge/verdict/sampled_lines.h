/* The lines and functions of the program at which a sampled run spends its time
 * (sampled_lines.c). */
#ifndef TFH_JUDGE_VERDICT_SAMPLED_LINES_H
#define TFH_JUDGE_VERDICT_SAMPLED_LINES_H

#include "judge/verdict/callees.h"
#include "judge/verdict/line_tree.h"
#include "judge/verdict/sampled.h"
#include "judge/verdict/sampled_loops.h"

/* A line of the program: the innermost one of a stack. */
struct tfh_sampled_lead {
	struct tfh_model_line line;
	struct tfh_callees calls;
	double ns, cause[TFH_CAUSE_COUNT], state[TFT_STATE_COUNT];
	double module_ns; /* in PyTorch's modules */
	uint64_t samples;
};

/* A function of the program, with all that it calls. */
struct tfh_own_function {
	struct tfh_model_line line;
	uint32_t first, last, depth;
	double ns, cause[TFH_CAUSE_COUNT];
	double module_ns; /* in PyTorch's modules, that it calls or is a part of */
	struct tfh_model_line caller;
	bool is_main; /* called by the program itself */
};

/* lead.v and own.v are freed with free(), also after an error. */
struct tfh_sampled_lines {
	TFH_VEC(struct tfh_sampled_lead) lead;
	TFH_VEC(struct tfh_own_function) own;
};

/* Counts a sample; 0 or -ENOMEM. */
int tfh_sampled_lines_add(struct tfh_sampled_lines *x, const struct tfh_sampled_steps *steps,
			  const struct tfh_start_sample *k, const struct tfh_model_line *frame,
			  uint32_t n, enum tfh_cause cause);
/* When all are counted: sorts the lines by time, fills the result's table of them, and names the
 * function that has the loop. `all`: the time of all samples, ns. */
void tfh_sampled_lines_list(struct tfh_sampled_lines *x, const struct tfh_start *s, double all,
			    struct tfh_sampled *out);
/* The line with most of the verdict's cause, in r->found.line, and what to remove; its ns is 0: no
 * line has enough samples. `loop_ns`: time of the loop over steps. */
struct tfh_sampled_place tfh_sampled_place(const struct tfh_sampled_lines *x,
					   const struct tfh_sampled_steps *steps, double loop_ns,
					   struct tfh_result *r);
/* The next place, in another function than that line; its ns is 0: none has a tenth of the
 * cause. */
struct tfh_sampled_place tfh_sampled_next(const struct tfh_sampled_lines *x,
					  const struct tfh_sampled_steps *steps, double loop_ns,
					  const struct tfh_result *r);

#endif
