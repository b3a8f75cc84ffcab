/* The groups of similar pauses, as a hash table. */
#include "judge/facts/sample_groups.h"

#include "base/hash.h"

/* Index of the group of a key, or of a free slot for it; TFH_NO_GROUP: the table is full. */
static uint32_t place_of(const struct tfh_stack_samples *l, uint64_t key)
{
	uint32_t at = (uint32_t)(key % TFH_FACTS_SAMPLE_GROUPS);

	for (uint32_t i = 0; i < TFH_FACTS_SAMPLE_GROUPS / 4;
	     i++, at = (at + 1) % TFH_FACTS_SAMPLE_GROUPS)
		if (!l->group[at].key || l->group[at].key == (key | 1))
			return at;
	return TFH_NO_GROUP;
}

/* The group of a key, created if necessary; TFH_NO_GROUP: the table is full. */
static uint32_t group_of(struct tfh_stack_samples *l, uint64_t key, uint32_t parent)
{
	uint32_t at = place_of(l, key);

	if (at != TFH_NO_GROUP && !l->group[at].key) {
		l->group[at].key = key | 1;
		l->group[at].parent = parent;
	}
	return at;
}

static uint32_t length_class(int64_t ns)
{
	uint32_t n = 0;

	for (; ns >= TFH_FACTS_SAMPLE_PAUSE_NS * TFH_FACTS_SAMPLE_LENGTHS; n++)
		ns /= TFH_FACTS_SAMPLE_LENGTHS;
	return n;
}

uint32_t tfh_group_of_pause(struct tfh_stack_samples *l, uint32_t thread, uint16_t before,
			    uint16_t after, int64_t ns, enum tfh_feeds feeds)
{
	uint64_t key = tfh_hash_u64(thread + 1);
	uint32_t all = group_of(l, key, TFH_NO_GROUP);
	uint64_t long_key = tfh_hash_add(key, length_class(ns) + 1);
	uint32_t length = group_of(l, long_key, all);
	uint64_t place_key =
		tfh_hash_add(long_key, (uint64_t)before << 32 | (uint64_t)after << 8 | feeds);
	uint32_t at = group_of(l, place_key, length);

	if (at != TFH_NO_GROUP)
		l->group[at].feeds = feeds;
	return at == TFH_NO_GROUP ? length : at;
}

uint32_t tfh_make_group_of_brief(struct tfh_stack_samples *l, uint32_t thread)
{
	uint64_t key = tfh_hash_u64(thread + 1);
	uint32_t at = group_of(l, tfh_hash_add(key, 0), group_of(l, key, TFH_NO_GROUP));

	if (at != TFH_NO_GROUP)
		l->group[at].brief = true;
	return at;
}

uint32_t tfh_group_of_brief(const struct tfh_stack_samples *l, uint32_t thread)
{
	uint32_t at = place_of(l, tfh_hash_add(tfh_hash_u64(thread + 1), 0));

	return at != TFH_NO_GROUP && l->group[at].key ? at : TFH_NO_GROUP;
}

bool tfh_has_groups(const struct tfh_stack_samples *l, uint32_t thread)
{
	uint32_t all = place_of(l, tfh_hash_u64(thread + 1));

	return all != TFH_NO_GROUP && l->group[all].key;
}

void tfh_group_add(struct tfh_stack_samples *l, uint32_t at, const double seen[TFH_AT_COUNT],
		   uint32_t samples, int64_t wall, int64_t asleep)
{
	for (; at != TFH_NO_GROUP; at = l->group[at].parent) {
		struct tfh_sample_group *g = &l->group[at];
		for (int i = 0; i < TFH_AT_COUNT; i++)
			g->seen[i] += seen[i];
		g->samples += samples;
		g->wall += (double)wall;
		g->asleep += (double)asleep;
	}
}
