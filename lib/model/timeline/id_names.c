/* Texts of the ids in records. NAME records hold them and precede the ids' first use; EXT records
 * continue long texts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/opened.h"

#define MAX_IDS (1u << 20)
#define MAX_TEXT 65536u

static struct tfh_name *slot(struct tfh_names *names, uint32_t kind, uint32_t id)
{
	if (kind >= TFH_MODEL_NAME_KINDS || id >= MAX_IDS)
		return NULL;
	if (id >= names->n[kind]) {
		uint32_t want = names->n[kind] ? names->n[kind] : 64;
		while (want <= id)
			want *= 2;
		struct tfh_name *v = realloc(names->v[kind], want * sizeof(*v));
		if (!v)
			return NULL;
		memset(v + names->n[kind], 0, (want - names->n[kind]) * sizeof(*v));
		names->v[kind] = v;
		names->n[kind] = want;
	}
	return &names->v[kind][id];
}

int tfh_names_add(struct tfh_arena *arena, struct tfh_names *names, const struct tfh_rec *rec,
		  struct tfh_name_part *part)
{
	struct tfh_name *name = slot(names, rec->fn, rec->stream);
	uint32_t want = rec->w[2] < MAX_TEXT ? (uint32_t)rec->w[2] : MAX_TEXT;

	part->text = NULL;
	part->want = part->have = 0;
	if (!name)
		return rec->fn < TFH_MODEL_NAME_KINDS && rec->stream < MAX_IDS ? -ENOMEM : 0;
	name->handle = rec->w[0];
	name->extra = rec->w[1];
	/* The same name again: each thread that uses it records it, and each pass reads it. */
	if (name->text && strlen(name->text) == want &&
	    !(rec->fn == TFT_NAME_STAGE || rec->fn == TFT_NAME_THREAD))
		return 0;
	char *text = name->text && strlen(name->text) == want ? (char *)name->text
							      : tfh_arena_alloc(arena, want + 1);
	if (!text)
		return -ENOMEM;
	name->text = text;
	part->text = text;
	part->want = want;
	return 0;
}

void tfh_names_part(struct tfh_name_part *part, const struct tfh_rec *ext)
{
	uint32_t left = part->want - part->have;
	uint32_t n = left < TFT_EXT_BYTES ? left : TFT_EXT_BYTES;

	if (!part->text || !n)
		return;
	memcpy(part->text + part->have, (const char *)ext + offsetof(struct tfh_rec, stream), n);
	part->have += n;
}

void tfh_names_free(struct tfh_names *names)
{
	for (int k = 0; k < TFH_MODEL_NAME_KINDS; k++)
		free(names->v[k]);
}
