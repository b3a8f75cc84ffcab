/*
 * Zeroed memory in mappings of their own. A static array of a library that is loaded into every
 * program is part of each one's address space, which may be limited, whether it is used or not.
 */
#ifndef TFH_BASE_MAP_H
#define TFH_BASE_MAP_H

#include <stddef.h>

/* Pages come with use; to be given back by munmap, if at all. NULL: refused. */
void *tfh_map(size_t bytes);

/* What the pointer at `place` points at, mapped by whichever thread comes first; it stays. NULL:
 * refused, and asked for again by the next. */
void *tfh_map_once(void *place, size_t bytes);

#endif
