/* What a thread did in a pause, derived from the calls around it if no library function on its
 * stack shows it. */
#ifndef TFH_JUDGE_FACTS_PAUSE_ROLE_H
#define TFH_JUDGE_FACTS_PAUSE_ROLE_H

#include "judge/facts/place_role.h"
#include "judge/numbers.h"

/* The call that ended a pause. */
struct tfh_pause_end {
	struct tfh_model_line frame[TFH_VERDICT_FRAMES]; /* its stack, innermost first */
	/* Without a device: of the last call before that has a stack. */
	struct tfh_model_line last[TFH_VERDICT_FRAMES];
	uint32_t n, n_last;
	uint32_t stack;		/* that of `frame`, 0: none */
	int64_t t0, t1;		/* the pause; 0: a short one */
	uint16_t before, after; /* kinds of the calls around the pause: family << 3 | direction */
	bool soon;		/* the pause was short */
	bool inside;		/* the stack is of a range that began before the call */
};

/* The package of a library's frame, as its folder's name; "" if it is in the standard library or
 * the program. */
void tfh_package_of(const struct tfh_model_line *frame, char out[TFH_FACTS_PACKAGE]);

/* Replaces a copy's direction for TFE_Execute: a single op, or a function of many. */
enum { TFH_EAGER_OP = 1, TFH_GRAPH_OF_OPS = 2 };

/* Whether calls of that kind execute a whole function of TensorFlow. */
bool tfh_kind_is_graph(uint16_t kind);
/* Whether calls of that kind launch work. */
bool tfh_kind_launches(uint16_t kind);
/* Whether a sample of n frames was in library code called from the line of the program that also
 * made the call that ended the pause. */
bool tfh_stack_samples_lead_to(const struct tfh_model_line *seen, uint32_t n,
			       const struct tfh_pause_end *to);
/* Whether the line of the program that makes the next call was already running, or the pause is
 * short. */
bool tfh_stack_samples_on_line(const struct tfh_model_line *seen, uint32_t n,
			       const struct tfh_pause_end *to);
/* Whether a sample in the package `launcher`, which launches, was on the way to a driver call: to a
 * launch, or, in the function that makes it, to a copy. (In other functions before a copy it may
 * convert the data.) */
bool tfh_stack_samples_issue(const struct tfh_model_line *seen, uint32_t n,
			     const struct tfh_pause_end *to, const char *launcher);
/* Whether a sample between two copies was in a library, in the function that makes the second copy,
 * or in a short pause. */
bool tfh_stack_samples_copy(const struct tfh_model_line *seen, uint32_t n,
			    const struct tfh_pause_end *to);
/* Without a device: whether the sample's line is below that of the previous call, so that it is in
 * the middle of the step although it is above the next call. Code that follows a call of the input
 * pipeline is still before the step. */
bool tfh_stack_samples_within(const struct tfh_model_line *seen, uint32_t n,
			      const struct tfh_pause_end *to);
/* The role by the calls before and after the pause. `state`: enum tft_state; dispatch: the thread
 * was on the way to the next call (tfh_stack_samples_lead_to), or the pause was short; copies:
 * tfh_stack_samples_copy(). */
enum tfh_role tfh_role_between(int state, enum tfh_order order, bool dispatch, bool copies,
			       const struct tfh_pause_end *to);
/* Without a device: the role of a wait before the step's first call, TFH_ROLE_NONE for others. Its
 * line is above that of the next call and that of the call before, so a new iteration of the loop
 * began in between. */
enum tfh_role tfh_role_above(int state, const struct tfh_model_line *seen, uint32_t n,
			     const struct tfh_pause_end *to);

#endif
