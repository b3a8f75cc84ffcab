/* The minor versions of CPython 3 whose stacks can be read; each has a row in
 * sampling/offsets.c. */
#ifndef TFH_BASE_PYTHON_H
#define TFH_BASE_PYTHON_H

#define TFH_PY_FIRST 8
#define TFH_PY_LAST 15

#endif
