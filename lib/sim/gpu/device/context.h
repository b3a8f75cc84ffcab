/* Contexts (context.c). */
#ifndef TFH_SIM_GPU_DEVICE_CONTEXT_H
#define TFH_SIM_GPU_DEVICE_CONTEXT_H

#include "sim/gpu/objects.h"

enum { SIM_MULTIPROCESSORS = 108, SIM_SHARED_PER_SM = 167936, SIM_THREADS_PER_SM = 2048 };

struct sim_ctx *sim_ctx_new(struct sim_device *dev, unsigned flags);
/* Waits for its work and frees its streams; ctx itself is not freed. */
void sim_ctx_end(struct sim_ctx *ctx);
/* NULL means the current context; returns NULL if there is none. */
struct sim_ctx *sim_ctx_or_current(CUcontext ctx);
struct sim_ctx *sim_primary_retain(struct sim_device *dev);
/* False if it is not retained. */
bool sim_primary_release(struct sim_device *dev);

#endif
