/* Interception of NCCL. */
#ifndef TFH_HOOK_NCCL_H
#define TFH_HOOK_NCCL_H

#include <stdbool.h>
#include <string.h>

static inline bool tfh_nccl_name(const char *name)
{
	return !strncmp(name, "nccl", 4);
}

/* The wrapper to return to a program that looked up `name` and found `found`; NULL if there is
 * none. */
void *tfh_nccl_hook(const char *name, void *found);

#endif
