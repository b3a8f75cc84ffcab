/* The line of an instruction, from the tables of CPython's code objects. */
#ifndef TFH_LOOK_LINES_H
#define TFH_LOOK_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "look/offsets.h"

/* `at`: bytes into the bytecode, negative: not begun. `table` has `bytes` bytes and may be damaged; `first` is the
 * code's first line. 0: the instruction belongs to no line. */
int32_t tfh_py_line(enum tfh_py_lines kind, const uint8_t *table, size_t bytes, int32_t first,
		    int32_t at);

/* In a table of TFH_PY_LOCATIONS: the instruction that loads the function which the instruction at `at`, a call, calls; -1: the table
 * does not tell. */
int32_t tfh_py_callee_at(const uint8_t *table, size_t bytes, int32_t at);

#endif
