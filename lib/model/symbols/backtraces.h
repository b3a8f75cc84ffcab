/* Where in the program a call was made: backtraces as functions. */
#ifndef TFH_MODEL_BACKTRACES_H
#define TFH_MODEL_BACKTRACES_H

#include "model/model.h"
#include "model/symbols/pylines.h"

/* Texts live as long as the run. */
struct tfh_model_frame {
	const char *function; /* "" not known */
	const char *module;   /* name of the file, "" not known (code made at run time) */
	uint64_t offset;      /* into the function; without one into the file */
	uint64_t address;
};

/* Frames of a backtrace (tfh_event.stack), the innermost first; returns how many, 0: not known. */
uint32_t tfh_run_stack(struct tfh_run *run, uint32_t process, uint32_t stack,
		       struct tfh_model_frame *frame, uint32_t most);

/* Python's frames of it, the innermost first; returns how many, 0: there are none. */
uint32_t tfh_run_python(struct tfh_run *run, uint32_t process, uint32_t stack,
			struct tfh_model_line *frame, uint32_t most);

/* The same as a line for people. Where Python's frames are known, "train.py:142 step > torch/_tensor.py:89 item": the
 * innermost of the program's own, and the library's function that it called. Else "copy_batch [libloader.so] < train_step < main [train]": the
 * innermost frame outside of the driver, CUDA's runtime and tfhook, and up to two of its callers.
 * "" if not known. */
const char *tfh_run_site(struct tfh_run *run, uint32_t process, uint32_t stack);

#endif
