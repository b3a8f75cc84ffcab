/* NCCL's calls as the hooks see them. */
#ifndef TFH_HOOK_NCCL_H
#define TFH_HOOK_NCCL_H

#include <stdbool.h>
#include <string.h>

static inline bool tfh_nccl_name(const char *name)
{
	return !strncmp(name, "nccl", 4);
}

/* What a program that looked `name` up and found `found` is to call: our wrapper, NULL if it is
 * none of ours. */
void *tfh_nccl_hook(const char *name, void *found);

#endif
