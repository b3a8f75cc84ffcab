/* Finds functions that are traced and compiled again and again: many with the same base name, each
 * with a different number appended. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/hash.h"
#include "judge/facts/facts.h"

struct tag_name {
	uint64_t hash; /* hash of the name without its number */
	uint32_t tag;
};

static uint64_t base_of(const char *name)
{
	return tfh_hash_bytes(name, tfh_unnumbered(name, strlen(name)));
}

static int by_hash(const void *a, const void *b)
{
	const struct tag_name *x = a, *y = b;

	return x->hash != y->hash ? (x->hash < y->hash ? -1 : 1)
				  : (x->tag > y->tag) - (x->tag < y->tag);
}

/* Corrects long calls that were stored before their function was known to be retraced. */
static void mark_long(struct tfh_facts *facts, const struct tfh_tag *tag)
{
	size_t lo = TFH_BISECT(i, 0, facts->longs.n, facts->longs.v[i].t0 < tag->first);

	for (; lo < facts->longs.n && facts->longs.v[lo].t0 == tag->first; lo++)
		facts->longs.v[lo].makes |=
			facts->longs.v[lo].activity == TFH_ACTIVITY_EXEC && !tag->batches;
}

/* Marks n functions of the same base name. */
static void mark(struct tfh_facts *facts, const struct tag_name *v, size_t n)
{
	uint64_t count = 0;
	int64_t ns = 0;

	for (size_t i = 0; i < n; i++) {
		count += facts->tag.v[v[i].tag].count;
		ns += facts->tag.v[v[i].tag].ns;
	}
	for (size_t i = 0; i < n && n >= TFH_FACTS_RETRACED; i++) {
		struct tfh_tag *tag = &facts->tag.v[v[i].tag];
		tag->retraced = true;
		tag->base = v[i].hash;
		tag->all_count = count;
		tag->all_ns = ns;
		mark_long(facts, tag);
	}
}

int tfh_find_retraced(struct tfh_facts *facts)
{
	const struct tfh_feed *f = facts->feed;
	struct tag_name *v = calloc(facts->tag.n + 1, sizeof(*v));
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < facts->tag.n && !f->imported; i++)
		if (facts->tag.v[i].function)
			v[n++] = (struct tag_name){
				base_of(f->name(f->arg, facts->process, TFT_NAME_OP,
						facts->tag.v[i].name, NULL, NULL)),
				i};
	qsort(v, n, sizeof(*v), by_hash);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && v[end].hash == v[i].hash;)
			end++;
		mark(facts, v + i, end - i);
	}
	free(v);
	return 0;
}
