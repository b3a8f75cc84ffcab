/* Where the value of a name is, in a dict or in an object, whose keys are the very strings of the
 * code. */
#ifndef TFH_SAMPLING_DICTS_H
#define TFH_SAMPLING_DICTS_H

#include "sampling/frames.h"

/* Memory as it is now; copies may be older. */
bool tfh_py_fresh(int32_t pid, uint64_t from, void *to, size_t bytes);

/* The address of the reference to the value of a name in a dict. 0: it has none. *hint: the number
 * of the entry last time. */
uint64_t tfh_py_item(const struct tfh_py *py, int32_t pid, uint64_t dict, uint64_t name,
		     uint32_t *hint);
/* The same for an attribute that an object keeps in its own dict. 0 also if its class decides
 * itself what reading or storing attributes means. */
uint64_t tfh_py_attribute(const struct tfh_py *py, struct tfh_py_copies *c, uint64_t object,
			  uint64_t name, uint32_t *hint);

/* Where a class has its flags and the function that gives its objects' next element. */
#define TFH_PY_TYPE_FLAGS 168
#define TFH_PY_TYPE_NEXT 224
/* Whether the objects of a class with these flags keep their attributes where they are known:
 * classes that programs make do. From 3.11 on. */
bool tfh_py_keeps(const struct tfh_py *py, uint64_t flags);
/* Copies what such an object's attributes refer to, at most `most`, in the order in which they were
 * made; 0: it has none of that number. Returns their number. */
uint32_t tfh_py_attributes(const struct tfh_py *py, struct tfh_py_copies *c, uint64_t object,
			   uint64_t *value, uint32_t most);
#define TFH_PY_ATTRIBUTES 32u

#endif
