/* What a kernel does, by its name: the tables of kernel_families.def. */
#ifndef TFH_MODEL_KERNEL_FAMILY_H
#define TFH_MODEL_KERNEL_FAMILY_H

enum tfh_kernel_family {
#define FAMILY(id, name, words) TFH_FAMILY_##id,
#include "model/symbols/kernel_families.def"
#undef FAMILY
	TFH_FAMILY_COUNT
};

/* Of a name as recorded, mangled or not. TFH_FAMILY_OTHER: it does not tell. */
enum tfh_kernel_family tfh_kernel_family(const char *name);
/* "matmul.plain"; "matrix products without tensor cores". */
const char *tfh_family_name(enum tfh_kernel_family family);
const char *tfh_family_words(enum tfh_kernel_family family);

#endif
