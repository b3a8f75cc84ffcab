/* The line of an instruction, from the line tables of CPython's code objects. */
#ifndef TFH_SAMPLING_LINES_H
#define TFH_SAMPLING_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "sampling/offsets.h"

/* `at`: offset in bytes of bytecode; negative: not begun. `table` has `bytes` bytes and may be
 * damaged. `first` is the code's first line. Returns 0 if the instruction belongs to no line. */
int32_t tfh_py_line(enum tfh_py_lines kind, const uint8_t *table, size_t bytes, int32_t first,
		    int32_t at);

/* In a table of TFH_PY_LOCATIONS: the instruction that loads the callee of the instruction at `at`,
 * which is a call. -1: the table does not show it. */
int32_t tfh_py_callee_at(const uint8_t *table, size_t bytes, int32_t at);

#endif
