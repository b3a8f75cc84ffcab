/* Names and functions of a run that is being built, each kept once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#include "model/built/built.h"

#define MAX_NAMES (1u << 20) /* per kind and process; further names have no text */
#define MAX_TEXT 65536u

static struct tfh_built_text *find(struct tfh_built_table *t, uint64_t hash)
{
	uint32_t i = (uint32_t)hash & (t->size - 1);

	while (t->v[i].hash && t->v[i].hash != hash)
		i = (i + 1) & (t->size - 1);
	return &t->v[i];
}

struct tfh_built_text *tfh_built_enter(struct tfh_built_table *t, uint64_t hash)
{
	hash += !hash;
	if (t->n * 4 >= t->size * 3) {
		struct tfh_built_table old = *t;
		t->size = old.size ? old.size * 2 : 1024;
		t->v = calloc(t->size, sizeof(*t->v));
		if (!t->v) {
			*t = old;
			return NULL;
		}
		for (uint32_t i = 0; i < old.size; i++)
			if (old.v[i].hash)
				*find(t, old.v[i].hash) = old.v[i];
		free(old.v);
	}
	struct tfh_built_text *e = find(t, hash);
	if (!e->hash) {
		e->hash = hash;
		e->what = NULL;
		t->n++;
	}
	return e;
}

static int room_for_name(struct tfh_names *names, enum tft_name kind, uint32_t id)
{
	uint32_t want = names->n[kind] ? names->n[kind] : 64;

	if (id < names->n[kind])
		return 0;
	while (want <= id)
		want *= 2;
	struct tfh_name *v = realloc(names->v[kind], want * sizeof(*v));
	if (!v)
		return -ENOMEM;
	memset(v + names->n[kind], 0, (want - names->n[kind]) * sizeof(*v));
	names->v[kind] = v;
	names->n[kind] = want;
	return 0;
}

int64_t tfh_build_name(struct tfh_builder *b, uint32_t process, enum tft_name kind,
		       const char *text)
{
	struct tfh_names *names = &b->run->proc[process].names;
	if (!*text)
		return 0;
	uint64_t serial = b->run->built->proc[process].serial;
	uint64_t key = tfh_hash_add(tfh_hash_str(text), serial << 8 | (uint64_t)kind);
	struct tfh_built_text *e = tfh_built_enter(&b->names, key);

	if (!e)
		return -ENOMEM;
	if (e->what)
		return e->id;
	uint32_t *count = &b->run->proc[process].name_count[kind];
	uint32_t id = *count + 1;
	if (id >= MAX_NAMES)
		return 0;
	if (room_for_name(names, kind, id))
		return -ENOMEM;
	names->v[kind][id].text = tfh_arena_strndup(&b->run->arena, text, strnlen(text, MAX_TEXT));
	if (!names->v[kind][id].text)
		return -ENOMEM;
	*count = id;
	e->what = names->v[kind][id].text;
	e->id = id;
	return id;
}

const char *tfh_build_text(struct tfh_builder *b, uint32_t process, enum tft_name kind, uint32_t id)
{
	return tfh_run_name(b->run, process, kind, id, NULL, NULL);
}

const struct tfh_fn_info *tfh_build_fn(struct tfh_builder *b, const char *name,
				       const struct tfh_fn_info *like)
{
	struct tfh_built_text *e = tfh_built_enter(&b->fns, tfh_hash_str(name));
	struct tfh_fn_info *row;

	if (!e || e->what)
		return e ? e->what : NULL;
	row = tfh_arena_alloc(&b->run->arena, sizeof(*row));
	if (!row)
		return NULL;
	*row = *like;
	row->name = tfh_arena_strndup(&b->run->arena, name, strnlen(name, 255));
	e->what = row->name ? row : NULL;
	return e->what;
}
