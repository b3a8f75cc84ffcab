#include <stdlib.h>

#include "base/hash.h"

#include "base/key_table.h"

static struct tfh_map_place *place(const struct tfh_map *m, uint64_t key)
{
	uint32_t i = (uint32_t)tfh_hash_u64(key) & (m->size - 1);

	while (m->v[i].key && m->v[i].key != key)
		i = (i + 1) & (m->size - 1);
	return &m->v[i];
}

static bool grow(struct tfh_map *m)
{
	struct tfh_map old = *m;

	m->size = old.size ? old.size * 2 : 256;
	m->v = m->size > old.size ? calloc(m->size, sizeof(*m->v)) : NULL;
	if (!m->v) {
		*m = old;
		return false;
	}
	for (uint32_t i = 0; i < old.size; i++)
		if (old.v[i].key)
			*place(m, old.v[i].key) = old.v[i];
	free(old.v);
	return true;
}

uint64_t *tfh_map_put(struct tfh_map *m, uint64_t key, bool *fresh)
{
	key += !key;
	if (m->n >= m->size / 4 * 3 && !grow(m))
		return NULL;
	struct tfh_map_place *p = place(m, key);
	if (fresh)
		*fresh = !p->key;
	if (!p->key) {
		p->key = key;
		m->n++;
	}
	return &p->value;
}

const uint64_t *tfh_map_get(const struct tfh_map *m, uint64_t key)
{
	struct tfh_map_place *p;

	key += !key;
	if (!m->size)
		return NULL;
	p = place(m, key);
	return p->key ? &p->value : NULL;
}

void tfh_map_free(struct tfh_map *m)
{
	free(m->v);
	m->v = NULL;
	m->n = m->size = 0;
}
