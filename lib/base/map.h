/*
 * Zeroed memory in separate mappings. A static array of a preloaded library would count against
 * every process's address space limit, used or not.
 */
#ifndef TFH_BASE_MAP_H
#define TFH_BASE_MAP_H

#include <stddef.h>

/* Pages are allocated on first use. Free with munmap, if at all. Returns NULL on failure. */
void *tfh_map(size_t bytes);

/* Maps the memory behind the pointer at `place` once, whichever thread comes first. It is never
 * freed. Returns NULL on failure; the next caller tries again. */
void *tfh_map_once(void *place, size_t bytes);

#endif
