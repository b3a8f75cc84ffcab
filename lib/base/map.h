/*
 * Zeroed memory in mappings of its own. A static array of a preloaded library would count against
 * every process' address space limit, used or not.
 */
#ifndef TFH_BASE_MAP_H
#define TFH_BASE_MAP_H

#include <stddef.h>

/* Pages are allocated on first use; free with munmap, if at all. NULL on failure. */
void *tfh_map(size_t bytes);

/* Maps the memory behind the pointer at `place` once, whichever thread comes first; it is never
 * freed. NULL on failure, and the next caller tries again. */
void *tfh_map_once(void *place, size_t bytes);

#endif
