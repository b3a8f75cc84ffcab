/* The minor versions of CPython 3 whose stacks can be read; hook/python/offsets.c has a row of each. */
#ifndef TFH_BASE_PYTHON_H
#define TFH_BASE_PYTHON_H

#define TFH_PY_FIRST 8
#define TFH_PY_LAST 15

#endif
