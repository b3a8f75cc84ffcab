/* Hashes for tables in memory and for signatures in trace files. Stable: values may be stored. */
#ifndef TFH_BASE_HASH_H
#define TFH_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Spreads every input bit over the whole word: the finaliser of splitmix64 (Steele, Lea, Flood
 * 2014). A bijection, so distinct keys stay distinct.
 */
static inline uint64_t tfh_hash_u64(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	x ^= x >> 31;
	return x;
}

/* Adds a word to a running hash; the order of words counts. */
static inline uint64_t tfh_hash_add(uint64_t hash, uint64_t x)
{
	return tfh_hash_u64(hash * 0x9e3779b97f4a7c15ull + x + 1);
}

/* Hash of size bytes, eight at a time; the length is part of it. If size is 0, data may be NULL.
 * Not for keys that an attacker may choose. */
static inline uint64_t tfh_hash_bytes(const void *data, size_t size)
{
	const unsigned char *p = data;
	uint64_t hash = size;
	uint64_t word;

	for (; size >= 8; size -= 8, p += 8) {
		memcpy(&word, p, 8);
		hash = tfh_hash_add(hash, word);
	}
	word = 0;
	if (size)
		memcpy(&word, p, size);
	return tfh_hash_add(hash, word);
}

static inline uint64_t tfh_hash_str(const char *text)
{
	return tfh_hash_bytes(text, strlen(text));
}

#endif
