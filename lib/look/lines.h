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

#endif
