/* Which of Python's types are iterators, and of which kind: found out once for each type, by its
 * name. */
#ifndef TFH_SAMPLING_ITERATOR_TYPES_H
#define TFH_SAMPLING_ITERATOR_TYPES_H

#include "sampling/counters.h"
#include "sampling/frames.h"

enum tfh_py_kind {
	TFH_PY_UNKNOWN,
	TFH_PY_NO_ITERATOR,
	TFH_PY_CALLABLE, /* such as a context manager's __exit__ */
	TFH_PY_RANGE,
	TFH_PY_INDEX_OF,
	TFH_PY_INDEX, /* of an object whose length is not known */
	TFH_PY_COUNTS_DOWN,
	TFH_PY_ENUMERATE,
	TFH_PY_FIRST_OF,
	TFH_PY_GENERATOR,
	TFH_PY_ISLICE,
	TFH_PY_DICT,
	TFH_PY_OBJECT,	/* an iterator of a class written in Python */
	TFH_PY_SEQUENCE /* from 3.15 on, a loop over it has no iterator */
};

/* Types seen so far, of one process: a hash table by address. All zeros at first. */
#define TFH_PY_TYPES 256u
struct tfh_py_types {
	uint64_t type[TFH_PY_TYPES];
	uint8_t kind[TFH_PY_TYPES];
	/* Of a class written in Python: the number of the attribute that counts, from 1 on; and
	 * how often it was looked for in vain. */
	uint8_t kept[TFH_PY_TYPES], vain[TFH_PY_TYPES];
	struct tfh_py_counters *counters; /* NULL: loops that only the program counts are unknown */
};

/* A walk over the loops of one sample. */
struct tfh_loop_reading {
	const struct tfh_py *py;
	struct tfh_py_types *types;
	struct tfh_py_copies *c;
};

/* False: it cannot be read. */
bool tfh_py_word_at(const struct tfh_loop_reading *r, uint64_t from, uint64_t *to);
bool tfh_py_may_be_object(uint64_t address);
/* The place of a type in the table; *free: of one that is not in it yet. */
uint32_t tfh_py_type_slot(const struct tfh_py_types *types, uint64_t type, bool *free);
/* Finds out the kinds of the types that were not met before: of all at once, since a system call
 * costs more than what it copies. */
void tfh_py_types_learn(const struct tfh_loop_reading *r, const uint64_t *type, uint32_t n);
enum tfh_py_kind tfh_py_kind_of_type(const struct tfh_loop_reading *r, uint64_t type);
enum tfh_py_kind tfh_py_kind_of(const struct tfh_loop_reading *r, uint64_t object);

#endif
