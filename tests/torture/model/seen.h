/* The states that ring.c has met. Included once, behind struct state. */
#ifndef TESTS_TORTURE_MODEL_SEEN_H
#define TESTS_TORTURE_MODEL_SEEN_H

static uint64_t *seen, seen_size, seen_used;

static uint64_t hash_of(const struct state *s)
{
	const uint8_t *p = (const uint8_t *)s;
	uint64_t h = 0xcbf29ce484222325ull, word;

	for (size_t i = 0; i + 8 <= sizeof(*s); i += 8) {
		memcpy(&word, p + i, 8);
		h = (h ^ word) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 29;
	}
	return h ? h : 1;
}

/* False: was there before. States are known by 64 bits: with 10^7 of them two are taken for one
 * once in 10^5 runs. */
static bool is_new(uint64_t hash)
{
	uint64_t i;

	if (seen_used * 2 >= seen_size) {
		uint64_t *old = seen, size = seen_size;

		seen_size = size ? size * 2 : 1 << 16;
		seen = calloc(seen_size, sizeof(*seen));
		if (!seen)
			exit(2);
		seen_used = 0;
		for (uint64_t k = 0; k < size; k++)
			if (old[k])
				is_new(old[k]);
		free(old);
	}
	for (i = hash & (seen_size - 1); seen[i]; i = (i + 1) & (seen_size - 1))
		if (seen[i] == hash)
			return false;
	seen[i] = hash;
	seen_used++;
	return true;
}

#endif
