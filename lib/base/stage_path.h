/* Paths of tf.data stages: "Iterator::Root::BatchV2::Zip[1]::FlatMap[0]::Generator". */
#ifndef TFH_BASE_STAGE_PATH_H
#define TFH_BASE_STAGE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Whether the number in brackets that follows the first n characters says which of several
 * pipelines this is, in the order of the program. After other stages it counts elements, each of
 * which has a pipeline of the same stages. */
static inline bool tfh_stage_branches(const char *path, size_t n)
{
	static const char *const types[] = {"Zip", "Concatenate", "DirectedInterleave", "Choose"};
	size_t from = n;

	while (from && path[from - 1] != ':')
		from--;
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (n - from >= strlen(types[i]) &&
		    !strncmp(path + from, types[i], strlen(types[i])))
			return true;
	return false;
}

#endif
