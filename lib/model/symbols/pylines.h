/* Lines of Python code that samples and backtraces refer to. */
#ifndef TFH_MODEL_SYMBOLS_PYLINES_H
#define TFH_MODEL_SYMBOLS_PYLINES_H

#include "model/model.h"

/* Texts live as long as the run; "" unknown. */
struct tfh_model_line {
	const char *file, *function;
	uint32_t line; /* 0: none */
	bool library;  /* of the standard library, an installed package, or code made by one */
};

/* The frames of a place, innermost first; returns their number, 0: unknown. */
uint32_t tfh_run_place(struct tfh_run *run, uint32_t process, uint32_t place,
		       struct tfh_model_line *frame, uint32_t most);

/* Code that a library generates and runs belongs to the library; generated code that no library
 * called belongs to the program. Innermost frame first. */
void tfh_own_generated(struct tfh_model_line *frame, uint32_t n);

/* The most informative frame: the innermost one outside the standard library and installed
 * packages, or else the innermost. n is at least 1. */
uint32_t tfh_place_lead(const struct tfh_model_line *frame, uint32_t n);

/* The number of library frames inside the program's innermost function; n: no frame is the
 * program's. */
uint32_t tfh_library_frames(const struct tfh_model_line *frame, uint32_t n);

/* "step" of "Trainer.step". Points into the name. */
const char *tfh_last_name(const char *function);

/* Whether a file belongs to the standard library or an installed package. */
bool tfh_file_of_library(const char *path);
/* Whether a part of a path ("/torch/nn/") occurs in it from the package's name on: the folder of an
 * environment may have a library's name. One that does not begin with a slash may be anywhere. */
bool tfh_is_in_package(const char *path, const char *part);
/* Whether a function belongs to the parts of JAX that make operations, of which none runs in a
 * jitted function once that is compiled. What makes arrays of other data is not among them. */
bool tfh_makes_jax_ops(const char *file, const char *function);
/* A short form of a file's path: below its package for a module, else the file name, with its
 * folder if the name is common. */
const char *tfh_short_file(const char *path);

/* "train.py:142 step", or with the library function that it called: "train.py:142 step >
 * torch/_tensor.py:89 Tensor.item". Returns the length. */
size_t tfh_place_text(const struct tfh_model_line *frame, uint32_t n, char *out, size_t size);

struct tfh_places;
void tfh_places_free(struct tfh_places *p);

#endif
