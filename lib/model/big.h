/*
 * Arrays that grow with the length of a run: a row for each step of weeks. Up to 8 MiB they are
 * ordinary memory. Beyond, they lie in a temporary file without a name, mapped: every row is there,
 * exact, at its place, and what has been walked over is given back by tfh_big_trim(), so that the
 * process holds a few MiB of them however long they are.
 *
 * Where no file can be made (no room, no directory), they stay in memory. For one thread.
 */
#ifndef TFH_MODEL_BIG_H
#define TFH_MODEL_BIG_H

#include <stddef.h>

/* As realloc, of an array of `had` bytes; new bytes are not set. NULL: out of memory, `old` stays
 * as it is. Only memory from here may be given, or NULL. */
void *tfh_big_resize(void *old, size_t had, size_t bytes);
/* n zeroed elements; NULL: out of memory. */
void *tfh_big_array(size_t n, size_t size);
void tfh_big_free(void *p);

/* A temporary file without a name, where the arrays lie, too; -1: none can be had. */
int tfh_big_file(void);

/* What lies in files is not held any more until it is touched again. */
void tfh_big_trim(void);
/* How many bytes lie in files. */
size_t tfh_big_filed(void);

/* Room for one more element than n. 0 or -ENOMEM. */
int tfh_big_grow(void **v, size_t *cap, size_t n, size_t size);

/* Called for each element by a loop over long arrays. */
static inline void tfh_big_pass(size_t i)
{
	if (!(i & 0xffff))
		tfh_big_trim();
}
#define TFH_EACH(i, n) for (size_t i = 0; i < (n); tfh_big_pass(++i))

#endif
