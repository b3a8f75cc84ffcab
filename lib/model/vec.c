#include "model/vec.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LARGE_PAGE = 2 << 20 };

/* Like realloc(), but aligns arrays that are large enough for large pages: malloc() does not, so up
 * to 2 MiB at either end would be in small pages. */
static void *grown(void *v, size_t old, size_t bytes)
{
	if (bytes < 2 * LARGE_PAGE)
		return realloc(v, bytes);
	void *p = aligned_alloc(LARGE_PAGE, (bytes + LARGE_PAGE - 1) & ~(size_t)(LARGE_PAGE - 1));
	if (!p)
		return NULL;
	madvise(p, bytes, MADV_HUGEPAGE);
	if (old)
		memcpy(p, v, old);
	free(v);
	return p;
}

int tfh_vec_reserve(void **v, size_t *cap, size_t want, size_t size)
{
	void *p = grown(*v, *cap * size, want * size);

	if (!p)
		return -ENOMEM;
	*v = p;
	*cap = want;
	return 0;
}

int tfh_vec_grow(void **v, size_t *cap, size_t n, size_t size)
{
	size_t want = *cap ? *cap * 2 : 64;
	void *p;

	if (want <= n)
		want = n + 1;
	p = realloc(*v, want * size);
	if (!p)
		return -ENOMEM;
	*v = p;
	*cap = want;
	return 0;
}
