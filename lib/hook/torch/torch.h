/*
 * PyTorch's ranges: the names that `record_function` and torch's own code give to what runs, with
 * or without a profiler. torch calls back at the beginning and the end of each range of the scope
 * USER (at::addGlobalCallback). A data loader's get-next, an optimizer's step and the program's own
 * ranges have that scope; operators have other scopes and cost nothing.
 */
#ifndef TFH_HOOK_TORCH_TORCH_H
#define TFH_HOOK_TORCH_TORCH_H

#include <stdbool.h>

#include "record/record.h"

/* Called when a Python module is about to be initialized, or torch is used: registers with torch
 * once it is loaded. After that, or if it is impossible, a call costs one load. Preserves errno. */
void tfh_torch_find(void);
/* Whether PyTorch jobs are recorded (TFHOOK_TORCH). */
bool tfh_torch_wanted(void);
/* settings.c: finds where this library (libtorch_cpu, which must stay loaded) keeps its settings,
 * so that the recorder can read them. */
void tfh_torch_settings(void *library);
/* Id of the name (TFT_NAME_OP) of a backward pass. */
uint32_t tfh_torch_backward_name(struct tfh_self *self);

#endif
