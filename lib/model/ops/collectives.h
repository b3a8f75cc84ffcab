/*
 * Which kernels of different ranks are one collective: the calls of NCCL tell. A communicator has
 * one key in all its ranks, and they make its collectives in one order, so that key and number
 * together stand for the collective.
 */
#ifndef TFH_MODEL_COLLECTIVES_H
#define TFH_MODEL_COLLECTIVES_H

#include "model/model.h"
#include "model/ops/ops.h"

/* The calls of one process. */
struct tfh_collectives;
struct tfh_collectives *tfh_collectives_new(void);
void tfh_collectives_free(struct tfh_collectives *c);

/* Takes an event of the process, in order of end time; keeps calls of NCCL. Beyond 2^20 of them the
 * rest is not known. 0 or -ENOMEM. */
int tfh_collectives_add(struct tfh_collectives *c, const struct tfh_event *ev);

/* What an op, issued on a thread at that time, belongs to: a number that is the same for all ops of
 * one collective in all ranks, and for no other's. 0: not known, or a message between two. Of a
 * group of calls, whose kernels are launched together at its end, the first. */
uint64_t tfh_collective_at(struct tfh_collectives *c, uint32_t thread, int64_t issued);

#endif
