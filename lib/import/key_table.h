/* A table of 64-bit keys and values that only grows. Key 0 cannot be told from a free place and is
 * stored as 1: keys are hashes. */
#ifndef TFH_IMPORT_KEY_TABLE_H
#define TFH_IMPORT_KEY_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct tfh_map {
	struct tfh_map_place {
		uint64_t key, value;
	} * v;
	uint32_t n, size;
};

/* The value of a key, a new one is 0 and `*fresh` (may be NULL) true. NULL: no memory. Valid until
 * the next call. */
uint64_t *tfh_map_put(struct tfh_map *m, uint64_t key, bool *fresh);
/* NULL: there is no such key. */
const uint64_t *tfh_map_get(const struct tfh_map *m, uint64_t key);
void tfh_map_free(struct tfh_map *m);

#endif
