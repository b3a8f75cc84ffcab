/* The set of handles that were ever recorded: a hash table with open addressing. */
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "judge/facts/facts.h"

static size_t place(const struct tfh_handles *h, uint64_t handle)
{
	size_t at = tfh_hash_u64(handle) & (h->room - 1);

	while (h->v[at] && h->v[at] != handle)
		at = (at + 1) & (h->room - 1);
	return at;
}

static int grow(struct tfh_handles *h)
{
	struct tfh_handles more = {.room = h->room ? 2 * h->room : 256, .n = h->n};

	more.v = calloc(more.room, sizeof(*more.v));
	if (!more.v)
		return -ENOMEM;
	for (size_t i = 0; i < h->room; i++)
		if (h->v[i])
			more.v[place(&more, h->v[i])] = h->v[i];
	free(h->v);
	*h = more;
	return 0;
}

int tfh_handles_add(struct tfh_handles *h, uint64_t handle)
{
	if (!handle || h->full)
		return 0;
	if (2 * (h->n + 1) > h->room && grow(h))
		return -ENOMEM;
	size_t at = place(h, handle);
	h->n += !h->v[at];
	h->v[at] = handle;
	h->full = h->n >= TFH_FACTS_HANDLES;
	return 0;
}

bool tfh_handles_has(const struct tfh_handles *h, uint64_t handle)
{
	return h->full || (h->n && h->v[place(h, handle)] == handle);
}
