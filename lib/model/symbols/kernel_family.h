/* Classifies a kernel by its name, with the tables of kernel_families.def. */
#ifndef TFH_MODEL_SYMBOLS_KERNEL_FAMILY_H
#define TFH_MODEL_SYMBOLS_KERNEL_FAMILY_H

enum tfh_kernel_family {
#define FAMILY(id, name, words) TFH_FAMILY_##id,
#include "model/symbols/kernel_families.def"
#undef FAMILY
	TFH_FAMILY_COUNT
};

/* Family of a kernel by its name as recorded, mangled or not. TFH_FAMILY_OTHER: unknown. */
enum tfh_kernel_family tfh_kernel_family(const char *name);
/* Short name ("matmul.plain") and description ("matrix products without tensor cores"). */
const char *tfh_family_name(enum tfh_kernel_family family);
const char *tfh_family_words(enum tfh_kernel_family family);

#endif
