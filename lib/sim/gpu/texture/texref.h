/* Texture and surface references (texref.c). */
#ifndef SIM_TEXREF_H
#define SIM_TEXREF_H

#include "sim/gpu/objects.h"

/* The references of a module go with it. */
void sim_texrefs_drop(const struct sim_module *m);

#endif
