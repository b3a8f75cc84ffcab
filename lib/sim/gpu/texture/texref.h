/* Texture and surface references (texref.c). */
#ifndef SIM_TEXREF_H
#define SIM_TEXREF_H

#include "sim/gpu/objects.h"

/* Drops a module's references. */
void sim_texrefs_drop(const struct sim_module *m);

#endif
