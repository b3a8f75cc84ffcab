/* Where in the program a call was made: backtraces as functions. */
#ifndef TFH_MODEL_SYMBOLS_BACKTRACES_H
#define TFH_MODEL_SYMBOLS_BACKTRACES_H

#include "model/model.h"
#include "model/symbols/pylines.h"

/* Texts live as long as the run. */
struct tfh_model_frame {
	const char *function; /* "" unknown */
	const char *module;   /* file name, "" unknown (code generated at run time) */
	uint64_t offset;      /* in the function; without one, in the file */
	uint64_t address;
	const char *file; /* its source, "" unknown: it has no debug information */
	uint32_t line;	  /* 0 unknown */
};

/* Frames of a backtrace (tfh_event.stack), innermost first; returns their number, 0: unknown. */
uint32_t tfh_run_stack(struct tfh_run *run, uint32_t process, uint32_t stack,
		       struct tfh_model_frame *frame, uint32_t most);

/* Its Python frames, innermost first; returns their number, 0: none. */
uint32_t tfh_run_python(struct tfh_run *run, uint32_t process, uint32_t stack,
			struct tfh_model_line *frame, uint32_t most);

/* Its frames of machine code outside the driver, CUDA's runtime and the C library's start,
 * innermost first, as lines; without debug information they have no number, and `file` is the
 * module's name. Modules other than the process' executable count as libraries. Returns their
 * number; 0: none of them is a function of the executable with a name, or Python runs in
 * between. */
uint32_t tfh_run_functions(struct tfh_run *run, uint32_t process, uint32_t stack,
			   struct tfh_model_line *frame, uint32_t most);

/* The same as one line. With Python frames, "train.py:142 step > torch/_tensor.py:89 item": the
 * innermost one of the program, and the library function that it called. Else "copy_batch
 * [libloader.so] < train.c:142 train_step < train.c:310 main [train]": the innermost frame outside
 * the driver, CUDA's runtime and tfhook, and up to two of its callers. "" if unknown. */
const char *tfh_run_site(struct tfh_run *run, uint32_t process, uint32_t stack);

/* The function of the executable that is at an address; false: unknown. */
bool tfh_run_function(struct tfh_run *run, uint32_t process, uint64_t address,
		      struct tfh_model_line *out);

#endif
