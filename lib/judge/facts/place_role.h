/*
 * What a thread does, by its lines of Python (places.def): reading, saving, compiling; and where in
 * the loop's body the line is: before or after the step's first call.
 */
#ifndef TFH_JUDGE_FACTS_PLACE_ROLE_H
#define TFH_JUDGE_FACTS_PLACE_ROLE_H

#include "judge/feed.h"

enum tfh_role {
	TFH_ROLE_NONE,
#define ROLE(id, cause, whole) TFH_ROLE_##id,
#include "judge/facts/places.def"
#undef ROLE
	TFH_ROLE_COUNT
};

enum tfh_cause tfh_role_cause(enum tfh_role role);
/* Whether it compiles code, or generates what is compiled. */
bool tfh_role_compiles(enum tfh_role role);
/* Whether only a thread that sleeps, or is in a function that only waits, has it. */
bool tfh_role_waits(enum tfh_role role);
bool tfh_place_waits(const struct tfh_model_line *frame); /* whether the function only waits */
/* Whether a library's function is a profiler's, or measures the machine. */
bool tfh_profiles(const char *file, const char *function);
bool tfh_role_takes(enum tfh_role role); /* the thread takes a result or the next batch */

bool tfh_same_function(const struct tfh_model_line *a, const struct tfh_model_line *b);
bool tfh_same_line(const struct tfh_model_line *a, const struct tfh_model_line *b);

/* Whether it is a frame of CPython's own import of a module. */
bool tfh_is_import(const struct tfh_model_line *f);

/* Position of a line in a loop's body. */
enum tfh_order { TFH_ORDER_UNKNOWN, TFH_ORDER_BEFORE, TFH_ORDER_AFTER, TFH_ORDERS };
/* Compares two stacks, innermost frame first, by the lines of the innermost function that both
 * contain: of a sample, and of the call that the thread made next. A line above that call's runs
 * before it; a line below it ran after the previous iteration's call. */
enum tfh_order tfh_order_of(const struct tfh_model_line *seen, uint32_t n_seen,
			    const struct tfh_model_line *call, uint32_t n_call);

/* The function of the program that a library called and that, directly or not, called the program's
 * innermost one; NULL: none, the program itself called it. */
const struct tfh_model_line *tfh_place_called(const struct tfh_model_line *frame, uint32_t n);

/* Whether a library's function of this name passes data through a model that it does not train. */
bool tfh_makes_pass(const char *function);

/* Whether it is in the file from which TensorFlow calls Python functions of pipelines, graphs. */
bool tfh_in_script_ops(const char *file);

/* Whether a library's function only passes a call on. */
bool tfh_passes_on(const struct tfh_model_line *frame);

/* The outermost function of the program that a library other than PyTorch calls, and that calls
 * PyTorch's modules, or what computes without gradients (torch.no_grad() as a decorator); NULL:
 * there is none, or no line of the program called that library. */
const struct tfh_model_line *tfh_place_evaluates(const struct tfh_model_line *frame, uint32_t n);

/* Role of a stack of frames, innermost first. */
enum tfh_role tfh_place_role(const struct tfh_model_line *frame, uint32_t n, enum tfh_order order);

/* How much of a frame's path is known: all of it; what is below a folder that Python looks for
 * modules in (PyTorch's profiler); the file's name (JAX's). Of the last two, `library` is only set
 * if the path belongs to a known one; a row for a library shows it, too. */
enum tfh_path { TFH_PATH_WHOLE, TFH_PATH_BELOW, TFH_PATH_NAME };
/* What the table says of a frame; kept for each name of an imported trace. */
struct tfh_role_frame {
	uint16_t row; /* 0: none */
	bool library;
};
struct tfh_role_frame tfh_role_frame(const struct tfh_model_line *frame, enum tfh_path path);
/* Role of a stack of frames, innermost last. */
enum tfh_role tfh_role_of_frames(const struct tfh_role_frame *frame, uint32_t n);

/* What a loader does, in a call for its next batch or in a worker process. The program's own
 * functions below the loader's make the samples, or combine them; otherwise the role is the
 * loader's. `state`: enum tft_state. */
enum tfh_role tfh_loader_role(const struct tfh_model_line *frame, uint32_t n, int state);

/* Index of the frame to show (tfh_place_lead); for compiling, the frame that triggered it, not a
 * function that is being compiled; for a profiler, the one that called it, not its handler of
 * traces. *callee: the frame it called (the compiler's or profiler's outermost function), without
 * those that only pass the call on; n if none. */
uint32_t tfh_role_lead(const struct tfh_model_line *frame, uint32_t n, enum tfh_role role,
		       uint32_t *callee);

#endif
