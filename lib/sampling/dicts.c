#include "sampling/dicts.h"

#include <sys/uio.h>

#include "base/refused.h"

/* A dict and its keys. The values may be an array of their own: then the keys are shared by the
 * objects of a class. */
#define DICT_KEYS 32
#define DICT_VALUES 40
#define DICT_BYTES 48
#define KEYS_SIZE_10 8
#define KEYS_ENTRIES_10 32
#define KEYS_INDEX_10 40
#define KEYS_INDEX_BYTES 9
#define KEYS_KIND 10 /* 0: any keys, with hashes; other ones: only str */
#define KEYS_ENTRIES 24
#define KEYS_INDEX 32
#define KEYS_BYTES 40u
#define ENTRIES_MOST 4096u
#define ENTRIES_READ 128u
#define INDEXED 11 /* from this version on, the keys have the size of their index */

/* Classes. */
#define TYPE_OBJECT_BYTES 32
#define TYPE_GETS 144
#define TYPE_SETS 152
#define TYPE_FLAGS TFH_PY_TYPE_FLAGS
#define TYPE_DICT_OFFSET 288
#define TYPE_BYTES 296
#define HEAP_TYPE (1u << 9)
#define INLINE_VALUES (1u << 2)
#define MANAGED_DICT (1u << 4)

/* What is before an object with MANAGED_DICT: its dict, and in 3.11 its values before that; in 3.12
 * either of them, values with the lowest bit set and one less. From 3.13 on, values begin with a
 * head, and may be the end of the object. */
#define MANAGED 11
#define EITHER 12
#define HEADED 13
#define OBJECT_DICT 24
#define OBJECT_VALUES 32
#define VALUES_HEAD 8
#define VALUES_VALID 3

/* The keys of its objects in a class. */
static const uint16_t type_keys[] = {[11] = 872, [12] = 880, [13] = 880, [14] = 880, [15] = 888};

_Static_assert(sizeof(type_keys) / sizeof(*type_keys) == TFH_PY_LAST + 1, "of each version");

struct dict_reading {
	const struct tfh_py *py;
	int32_t pid;
};

bool tfh_py_fresh(int32_t pid, uint64_t from, void *to, size_t bytes)
{
	struct iovec into = {to, bytes}, at = {(void *)(uintptr_t)from, bytes};

	return from >= TFH_PY_PAGE && tfh_copy_memory(pid, &into, 1, &at, 1) == (ssize_t)bytes;
}

static uint64_t word_at(const struct dict_reading *r, uint64_t from)
{
	uint64_t word;

	return tfh_py_fresh(r->pid, from, &word, sizeof(word)) ? word : 0;
}

/* The entries of keys, and their number and bytes. */
struct entries {
	uint64_t at;
	uint32_t n, bytes, key; /* key: where in an entry */
};

static bool entries_of(const struct dict_reading *r, uint64_t keys, struct entries *e)
{
	uint8_t head[KEYS_BYTES];
	uint64_t size, count;

	if (!tfh_py_fresh(r->pid, keys, head, sizeof(head)))
		return false;
	if (r->py->minor < INDEXED) {
		size = tfh_py_word(head + KEYS_SIZE_10);
		count = tfh_py_word(head + KEYS_ENTRIES_10);
		e->at = keys + KEYS_INDEX_10 +
			size * (size <= UINT8_MAX    ? 1
				: size <= UINT16_MAX ? 2
						     : 4);
		e->bytes = 24;
	} else {
		count = tfh_py_word(head + KEYS_ENTRIES);
		e->at = keys + KEYS_INDEX + (1ull << (head[KEYS_INDEX_BYTES] & 31));
		e->bytes = head[KEYS_KIND] == 0 ? 24 : 16;
	}
	e->key = e->bytes - 16; /* after the hash, if there is one */
	e->n = count < ENTRIES_MOST ? (uint32_t)count : ENTRIES_MOST;
	return true;
}

/* The number of the entry of a name, which is also left in *hint. UINT32_MAX: there is none. */
static uint32_t find(const struct dict_reading *r, const struct entries *e, uint64_t name,
		     uint32_t *hint)
{
	uint64_t read[3 * ENTRIES_READ];

	if (*hint < e->n && word_at(r, e->at + (uint64_t)*hint * e->bytes + e->key) == name)
		return *hint;
	for (uint32_t i = 0; i < e->n; i += ENTRIES_READ) {
		uint32_t m = e->n - i < ENTRIES_READ ? e->n - i : ENTRIES_READ;

		if (!tfh_py_fresh(r->pid, e->at + (uint64_t)i * e->bytes, read,
				  (size_t)m * e->bytes))
			return UINT32_MAX;
		for (uint32_t k = 0; k < m; k++)
			if (read[(k * e->bytes + e->key) / 8] == name)
				return *hint = i + k;
	}
	return UINT32_MAX;
}

/* `values`: 0 if the entries have them. */
static uint64_t item(const struct dict_reading *r, uint64_t keys, uint64_t values, uint64_t name,
		     uint32_t *hint)
{
	struct entries e;
	uint32_t i = keys && entries_of(r, keys, &e) ? find(r, &e, name, hint) : UINT32_MAX;

	if (i == UINT32_MAX)
		return 0;
	return values ? values + 8ull * i : e.at + (uint64_t)i * e.bytes + e.key + 8;
}

uint64_t tfh_py_item(const struct tfh_py *py, int32_t pid, uint64_t dict, uint64_t name,
		     uint32_t *hint)
{
	const struct dict_reading r = {py, pid};
	uint8_t head[DICT_BYTES];
	uint64_t values;

	if (!tfh_py_fresh(pid, dict, head, sizeof(head)))
		return 0;
	values = tfh_py_word(head + DICT_VALUES);
	if (values && py->minor >= HEADED)
		values += VALUES_HEAD;
	return item(&r, tfh_py_word(head + DICT_KEYS), values, name, hint);
}

/* The values of an object whose keys are those of its class; 0: it has a dict, which is left in
 * *dict. */
static uint64_t values_of(const struct dict_reading *r, uint64_t object, const uint8_t *type,
			  uint64_t *dict)
{
	unsigned minor = r->py->minor;
	uint64_t flags = tfh_py_word(type + TYPE_FLAGS), values;
	uint8_t head[VALUES_HEAD];

	*dict = 0;
	if (minor < MANAGED || !(flags & MANAGED_DICT))
		return 0;
	if (minor >= HEADED && flags & INLINE_VALUES) {
		values = object + tfh_py_word(type + TYPE_OBJECT_BYTES);
		if (tfh_py_fresh(r->pid, values, head, sizeof(head)) && head[VALUES_VALID])
			return values + VALUES_HEAD;
	}
	if (minor == MANAGED && (values = word_at(r, object - OBJECT_VALUES)))
		return values;
	*dict = word_at(r, object - OBJECT_DICT);
	return minor == EITHER && *dict & 1 ? *dict + 1 : 0;
}

uint64_t tfh_py_attribute(const struct tfh_py *py, struct tfh_py_copies *c, uint64_t object,
			  uint64_t name, uint32_t *hint)
{
	const struct dict_reading r = {py, c->pid};
	uint64_t at = object ? word_at(&r, object + TFH_PY_OBJECT_TYPE) : 0, values, dict;
	/* Classes stay as they are. */
	const uint8_t *type = tfh_py_copied(c, at, TYPE_BYTES);
	const uint8_t *usual = tfh_py_copied(c, py->code_type, TYPE_BYTES), *keys;
	int64_t offset;

	if (py->minor > TFH_PY_LAST || !type || !usual ||
	    !(tfh_py_word(type + TYPE_FLAGS) & HEAP_TYPE) ||
	    tfh_py_word(type + TYPE_GETS) != tfh_py_word(usual + TYPE_GETS) ||
	    tfh_py_word(type + TYPE_SETS) != tfh_py_word(usual + TYPE_SETS))
		return 0;
	values = values_of(&r, object, type, &dict);
	if (values) {
		keys = tfh_py_copied(c, at + type_keys[py->minor], sizeof(uint64_t));
		return keys ? item(&r, tfh_py_word(keys), values, name, hint) : 0;
	}
	offset = (int64_t)tfh_py_word(type + TYPE_DICT_OFFSET);
	if (!dict && offset > 0)
		dict = word_at(&r, object + (uint64_t)offset);
	return dict ? tfh_py_item(py, c->pid, dict, name, hint) : 0;
}

bool tfh_py_keeps(const struct tfh_py *py, uint64_t flags)
{
	return py->minor >= MANAGED && py->minor <= TFH_PY_LAST && flags & HEAP_TYPE &&
	       flags & MANAGED_DICT;
}

/* Where the object's keys are, and its values, if they are an array of their own. */
static uint64_t keys_of(const struct dict_reading *r, struct tfh_py_copies *c, uint64_t object,
			uint64_t *values)
{
	uint64_t at = word_at(r, object + TFH_PY_OBJECT_TYPE), dict;
	const uint8_t *type = tfh_py_copied(c, at, TYPE_BYTES), *keys;
	uint8_t head[DICT_BYTES];

	if (!type || !tfh_py_keeps(r->py, tfh_py_word(type + TYPE_FLAGS)))
		return 0;
	*values = values_of(r, object, type, &dict);
	if (*values) {
		keys = tfh_py_copied(c, at + type_keys[r->py->minor], sizeof(uint64_t));
		return keys ? tfh_py_word(keys) : 0;
	}
	if (!dict || !tfh_py_fresh(r->pid, dict, head, sizeof(head)))
		return 0;
	*values = tfh_py_word(head + DICT_VALUES);
	*values += *values && r->py->minor >= HEADED ? VALUES_HEAD : 0;
	return tfh_py_word(head + DICT_KEYS);
}

uint32_t tfh_py_attributes(const struct tfh_py *py, struct tfh_py_copies *c, uint64_t object,
			   uint64_t *value, uint32_t most)
{
	const struct dict_reading r = {py, c->pid};
	uint64_t entry[3 * TFH_PY_ATTRIBUTES], values = 0, keys = keys_of(&r, c, object, &values);
	struct entries e;
	uint32_t n;

	if (!keys || !entries_of(&r, keys, &e))
		return 0;
	n = e.n < most ? e.n : most;
	n = n < TFH_PY_ATTRIBUTES ? n : TFH_PY_ATTRIBUTES;
	if (values)
		return tfh_py_fresh(r.pid, values, value, n * sizeof(*value)) ? n : 0;
	if (!tfh_py_fresh(r.pid, e.at, entry, (size_t)n * e.bytes))
		return 0;
	for (uint32_t i = 0; i < n; i++)
		value[i] = entry[(i * e.bytes + e.key) / 8 + 1];
	return n;
}
