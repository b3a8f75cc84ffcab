/*
 * Arrays that grow with the length of a run, such as a row per step over weeks. Up to 8 MiB they
 * are ordinary memory. Larger ones are a mapped, unlinked temporary file: every row stays
 * addressable, and tfh_big_trim() gives back the pages that a loop has passed, so that the process
 * holds only a few MiB of them.
 *
 * Where no file can be made (no space, no directory), they stay in memory. Not thread-safe.
 */
#ifndef TFH_MODEL_BIG_H
#define TFH_MODEL_BIG_H

#include <stddef.h>

/* n zeroed elements; NULL when out of memory. */
void *tfh_big_array(size_t n, size_t size);
void tfh_big_free(void *p);

/* An unlinked temporary file in the arrays' directory; -1 on failure. */
int tfh_big_file(void);

/* Releases the pages of arrays in files until they are accessed again. */
void tfh_big_trim(void);
/* Total bytes of arrays in files. */
size_t tfh_big_filed(void);

/* Ensures capacity for n + 1 elements. 0 or -ENOMEM. */
int tfh_big_grow(void **v, size_t *cap, size_t n, size_t size);

/* Called for each element by a loop over long arrays. */
static inline void tfh_big_pass(size_t i)
{
	if (!(i & 0xffff))
		tfh_big_trim();
}
#define TFH_EACH(i, n) for (size_t i = 0; i < (n); tfh_big_pass(++i))

#endif
