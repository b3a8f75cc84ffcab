/* Numbered places in Python code, for start.json (format/FORMAT.md, 5). */
#ifndef TFH_CLI_START_PLACES_H
#define TFH_CLI_START_PLACES_H

#include "base/json.h"
#include "sampling/walks.h"

struct tfh_start_places;
/* NULL: out of memory. Freed with free(). */
struct tfh_start_places *tfh_start_places_new(void);
/* The place of these frames (innermost first), 0: none. */
uint32_t tfh_start_place(struct tfh_start_places *p, const struct tfh_py *py,
			 struct tfh_py_copies *copies, const struct tfh_py_frame *frame,
			 uint32_t n);
/* Writes the members `functions` and `places`. */
void tfh_start_places_write(const struct tfh_start_places *p, struct tfh_json *j);

#endif
