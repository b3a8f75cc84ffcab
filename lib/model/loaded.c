/* The libraries that a process had loaded. */
#include "model/model.h"

#include <string.h>

const struct tfh_software *tfh_find_software(const struct tfh_process *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_software; i++)
		if (!strcmp(p->software[i].name, name))
			return &p->software[i];
	return NULL;
}
