/* Interned names of kernels. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#include "model/ops/device_ops.h"

static bool grow(struct tfh_texts *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : 256;
	const char **v = calloc(cap, sizeof(*v));

	if (!v)
		return false;
	for (uint32_t i = 0; i < t->cap; i++) {
		if (!t->v[i])
			continue;
		uint32_t at = (uint32_t)tfh_hash_str(t->v[i]) & (cap - 1);
		while (v[at])
			at = (at + 1) & (cap - 1);
		v[at] = t->v[i];
	}
	free(t->v);
	t->v = v;
	t->cap = cap;
	return true;
}

static const char *find(struct tfh_texts *t, const char *text)
{
	if (t->n * 2 >= t->cap && !grow(t))
		return NULL;
	uint32_t at = (uint32_t)tfh_hash_str(text) & (t->cap - 1);
	for (; t->v[at]; at = (at + 1) & (t->cap - 1))
		if (!strcmp(t->v[at], text))
			return t->v[at];
	t->v[at] = tfh_arena_strdup(&t->arena, text);
	t->n += t->v[at] != NULL;
	return t->v[at];
}

const char *tfh_texts_keep(struct tfh_texts *t, const char *text)
{
	const char *kept = "";

	if (!*text)
		return kept;
	pthread_mutex_lock(&t->lock);
	kept = find(t, text);
	pthread_mutex_unlock(&t->lock);
	return kept;
}
