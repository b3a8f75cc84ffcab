/*
 * PyTorch's ranges: what `record_function` and torch's own code name while they run, with or without a profiler. torch
 * calls back at the begin and the end of each range of the scope USER (at::addGlobalCallback), which is what a data
 * loader's get-next, an optimizer's step and the program's own ranges have; operators have other scopes and cost nothing.
 */
#ifndef TFH_HOOK_TORCH_H
#define TFH_HOOK_TORCH_H

#include <stdbool.h>

#include "record/record.h"

/* A module of Python's is about to be initialized, or torch is used: asks torch to call back, once it is loaded. Once it
 * has, or cannot be, this costs a load. Preserves errno. */
void tfh_torch_look(void);
/* Whether jobs of PyTorch's are recorded (TFHOOK_TORCH). */
bool tfh_torch_wanted(void);
/* settings.c: finds where this library (libtorch_cpu, which must stay loaded) keeps its settings, for the recorder to read. */
void tfh_torch_settings(void *library);
/* Id of the name (TFT_NAME_OP) of a backward pass. */
uint32_t tfh_torch_backward_name(struct tfh_self *self);

#endif
