/* Lines of Python: places that looks at threads, and backtraces, cite. */
#ifndef TFH_MODEL_PYLINES_H
#define TFH_MODEL_PYLINES_H

#include "model/model.h"

/* Texts live as long as the run; "" not known. */
struct tfh_model_line {
	const char *file, *function;
	uint32_t line; /* 0: none */
	bool library; /* of the standard library, or an installed package; a "<string>" is the program's own */
};

/* The frames of a place, the innermost first; returns how many, 0: not known. */
uint32_t tfh_run_place(struct tfh_run *run, uint32_t process, uint32_t place,
		       struct tfh_model_line *frame, uint32_t most);

/* The frame that people look for: the innermost one that is neither the standard library's nor of an
 * installed package; where all are, the innermost. n at least 1. */
uint32_t tfh_place_lead(const struct tfh_model_line *frame, uint32_t n);

/* The file as a person calls it: a module's path below its package, else the name, with its folder where many have that
 * one. */
const char *tfh_short_file(const char *path);

/* For people: "train.py:142 step", and the library's function that it called: "train.py:142 step >
 * torch/_tensor.py:89 Tensor.item". Returns the length. */
size_t tfh_place_text(const struct tfh_model_line *frame, uint32_t n, char *out, size_t size);

struct tfh_places;
void tfh_places_free(struct tfh_places *p);

#endif
