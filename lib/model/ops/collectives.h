/*
 * Matches kernels of different ranks that belong to one collective, by NCCL's calls. A communicator
 * has one key in all its ranks, which call its collectives in the same order, so key and sequence
 * number identify the collective.
 */
#ifndef TFH_MODEL_OPS_COLLECTIVES_H
#define TFH_MODEL_OPS_COLLECTIVES_H

#include "model/model.h"
#include "model/ops/ops.h"

/* The calls of one process. */
struct tfh_collectives;
struct tfh_collectives *tfh_collectives_new(void);
void tfh_collectives_free(struct tfh_collectives *c);

/* Takes an event of the process, in order of end time, and stores NCCL calls, at most 2^20. 0 or
 * -ENOMEM. */
int tfh_collectives_add(struct tfh_collectives *c, const struct tfh_event *ev);

/* The collective of an op issued on a thread at that time: a number shared by all its ops in all
 * ranks, and by no other's. 0 if unknown or a point-to-point message. In a group of calls, whose
 * kernels are launched together at its end, the first call counts. */
uint64_t tfh_collective_at(struct tfh_collectives *c, uint32_t thread, int64_t issued);

#endif
