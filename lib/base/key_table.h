/* A growing table of 64-bit keys and values. Keys are hashes; key 0, which marks a free slot, is
 * stored as 1. */
#ifndef TFH_BASE_KEY_TABLE_H
#define TFH_BASE_KEY_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct tfh_map {
	struct tfh_map_place {
		uint64_t key, value;
	} * v;
	uint32_t n, size;
};

/* The value of a key, inserted as 0 with `*fresh` (may be NULL) true if new. NULL when out of
 * memory. Valid until the next call. */
uint64_t *tfh_map_put(struct tfh_map *m, uint64_t key, bool *fresh);
/* NULL if there is no such key. */
const uint64_t *tfh_map_get(const struct tfh_map *m, uint64_t key);
void tfh_map_free(struct tfh_map *m);

#endif
