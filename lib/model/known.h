/* Stacks and places of a run whose files are gone, as they were resolved when the run was
 * judged. */
#ifndef TFH_MODEL_KNOWN_H
#define TFH_MODEL_KNOWN_H

#include "model/symbols/backtraces.h"

struct tfh_known_stack {
	uint32_t process, stack;
	struct tfh_model_line *python;
	uint32_t n_python;
	struct tfh_model_frame *native;
	uint32_t n_native;
};

struct tfh_known_place {
	uint32_t process, place;
	struct tfh_model_line *frame;
	uint32_t n_frame;
};

struct tfh_known {
	struct tfh_known_stack *stack;
	uint32_t n_stack;
	struct tfh_known_place *place;
	uint32_t n_place;
};

/* Like tfh_run_place(), tfh_run_python() and tfh_run_stack(). */
uint32_t tfh_known_place(const struct tfh_known *k, uint32_t process, uint32_t place,
			 struct tfh_model_line *frame, uint32_t most);
uint32_t tfh_known_python(const struct tfh_known *k, uint32_t process, uint32_t stack,
			  struct tfh_model_line *frame, uint32_t most);
uint32_t tfh_known_frames(const struct tfh_known *k, uint32_t process, uint32_t stack,
			  struct tfh_model_frame *frame, uint32_t most);

#endif
