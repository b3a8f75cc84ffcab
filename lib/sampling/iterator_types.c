#include "sampling/iterator_types.h"

#include <string.h>

#include "sampling/dicts.h"

#define NAME_BYTES 24u
#define PROBES 4u
#define TYPES_AT_ONCE 64u

/* By the type's name. */
static const struct {
	const char *name;
	enum tfh_py_kind kind;
} kinds[] = {
	{"range_iterator", TFH_PY_RANGE},
	{"list_iterator", TFH_PY_INDEX_OF},
	{"tuple_iterator", TFH_PY_INDEX_OF},
	{"iterator", TFH_PY_INDEX}, /* of a sequence's __getitem__ */
	{"list_reverseiterator", TFH_PY_COUNTS_DOWN},
	{"enumerate", TFH_PY_ENUMERATE},
	{"zip", TFH_PY_FIRST_OF},
	{"map", TFH_PY_FIRST_OF},
	{"generator", TFH_PY_GENERATOR},
	{"itertools.islice", TFH_PY_ISLICE},
	{"dict_keyiterator", TFH_PY_DICT},
	{"dict_valueiterator", TFH_PY_DICT},
	{"dict_itemiterator", TFH_PY_DICT},
	{"list", TFH_PY_SEQUENCE},
	{"tuple", TFH_PY_SEQUENCE},
	{"method", TFH_PY_CALLABLE},
	{"builtin_function_or_method", TFH_PY_CALLABLE},
	{"function", TFH_PY_CALLABLE},
	{"method_descriptor", TFH_PY_CALLABLE},
};

bool tfh_py_word_at(const struct tfh_loop_reading *r, uint64_t from, uint64_t *to)
{
	const uint8_t *p = tfh_py_copied(r->c, from, sizeof(*to));

	if (p)
		*to = tfh_py_word(p);
	return p;
}

uint32_t tfh_py_type_slot(const struct tfh_py_types *types, uint64_t type, bool *free)
{
	uint32_t first = (uint32_t)(type * 0x9e3779b97f4a7c15ull >> 32);

	*free = false;
	for (uint32_t k = 0; k < PROBES; k++)
		if (types->type[(first + k) % TFH_PY_TYPES] == type)
			return (first + k) % TFH_PY_TYPES;
	*free = true;
	for (uint32_t k = 0; k < PROBES; k++)
		if (!types->type[(first + k) % TFH_PY_TYPES])
			return (first + k) % TFH_PY_TYPES;
	return first % TFH_PY_TYPES;
}

bool tfh_py_may_be_object(uint64_t address)
{
	return address >= TFH_PY_PAGE && address % 8 == 0;
}

static enum tfh_py_kind kind_named(const uint8_t *name)
{
	for (size_t i = 0; name && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strncmp((const char *)name, kinds[i].name, NAME_BYTES))
			return kinds[i].kind;
	return TFH_PY_UNKNOWN;
}

/* What is read of a type: its name, its flags, and whether its objects are iterators. */
enum { NAME, FLAGS, NEXT, TYPE_WORDS };

static enum tfh_py_kind kind_of_words(const struct tfh_loop_reading *r,
				      const uint64_t word[TYPE_WORDS])
{
	const uint8_t *name = word[NAME] ? tfh_py_copied(r->c, word[NAME], NAME_BYTES) : NULL;
	enum tfh_py_kind kind = kind_named(name);

	if (kind != TFH_PY_UNKNOWN || !name)
		return kind;
	return !word[NEXT]			  ? TFH_PY_NO_ITERATOR
	       : tfh_py_keeps(r->py, word[FLAGS]) ? TFH_PY_OBJECT
						  : TFH_PY_UNKNOWN;
}

void tfh_py_types_learn(const struct tfh_loop_reading *r, const uint64_t *type, uint32_t n)
{
	static const uint16_t offset[TYPE_WORDS] = {
		[NAME] = TFH_PY_TYPE_NAME, [FLAGS] = TFH_PY_TYPE_FLAGS, [NEXT] = TFH_PY_TYPE_NEXT};
	uint64_t at[TYPES_AT_ONCE * TYPE_WORDS], word[TYPES_AT_ONCE * TYPE_WORDS];
	struct tfh_py_piece name[TYPES_AT_ONCE];
	uint32_t found = 0;
	bool free;

	for (uint32_t i = 0; i < n && found < TYPES_AT_ONCE; i++) {
		uint32_t slot = tfh_py_type_slot(r->types, type[i], &free);

		if (!free || !tfh_py_may_be_object(type[i]))
			continue;
		r->types->type[slot] = type[i];
		r->types->kind[slot] = TFH_PY_UNKNOWN;
		r->types->kept[slot] = r->types->vain[slot] = 0;
		for (uint32_t k = 0; k < TYPE_WORDS; k++)
			at[TYPE_WORDS * found + k] = type[i] + offset[k];
		found++;
	}
	if (!found)
		return;
	tfh_py_words(r->c->pid, at, word, TYPE_WORDS * found);
	for (uint32_t i = 0; i < found; i++)
		name[i] = (struct tfh_py_piece){word[TYPE_WORDS * i + NAME], NAME_BYTES};
	tfh_py_fetch(r->c, name, found);
	for (uint32_t i = 0; i < found; i++) {
		uint64_t new = at[TYPE_WORDS * i + NAME] - offset[NAME];
		uint32_t slot = tfh_py_type_slot(r->types, new, &free);

		if (!free)
			r->types->kind[slot] = (uint8_t)kind_of_words(r, &word[TYPE_WORDS * i]);
	}
}

enum tfh_py_kind tfh_py_kind_of_type(const struct tfh_loop_reading *r, uint64_t type)
{
	bool free;
	uint32_t slot = tfh_py_type_slot(r->types, type, &free);

	if (free && tfh_py_may_be_object(type)) {
		tfh_py_types_learn(r, &type, 1);
		slot = tfh_py_type_slot(r->types, type, &free);
	}
	return free ? TFH_PY_UNKNOWN : (enum tfh_py_kind)r->types->kind[slot];
}

enum tfh_py_kind tfh_py_kind_of(const struct tfh_loop_reading *r, uint64_t object)
{
	uint64_t type;

	return tfh_py_may_be_object(object) && tfh_py_word_at(r, object + TFH_PY_OBJECT_TYPE, &type)
		       ? tfh_py_kind_of_type(r, type)
		       : TFH_PY_UNKNOWN;
}
