/* Texture and surface references (texref.c). */
#ifndef TFH_SIM_GPU_TEXTURE_TEXREF_H
#define TFH_SIM_GPU_TEXTURE_TEXREF_H

#include "sim/gpu/objects.h"

/* Drops a module's references. */
void sim_texrefs_drop(const struct sim_module *m);

#endif
