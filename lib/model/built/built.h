/* A run that was built in memory: what build.c fills, join.c puts in order, built.c hands out. */
#ifndef TFH_MODEL_BUILT_H
#define TFH_MODEL_BUILT_H

#include "model/built/build.h"
#include "model/opened.h"

struct tfh_built_proc {
	struct tfh_event *ev;
	uint32_t *correlation; /* of each event; freed when joined */
	uint32_t n_ev, cap_ev, cap_correlation;
	struct tfh_op *op;
	uint32_t n_op, cap_op;
	struct tfh_gpu_span *span;
	uint32_t n_span, cap_span;
	uint64_t unissued, early; /* ops without their call; of those, queued before all calls */
	uint32_t processors;
	int64_t shift;
	uint32_t serial; /* of the process in its builder */
};

struct tfh_built {
	struct tfh_built_proc *proc; /* by process */
	uint32_t cap_proc;
};

/* Frees what a process holds, and empties it. */
void tfh_built_clear(struct tfh_built_proc *p);

/* join.c. 0 or -ENOMEM. Both bring one process' events or ops in order and number them. */
int tfh_order_events(struct tfh_built_proc *p, uint32_t n_threads);
/* After tfh_order_events: finds the call of each op, and tells the call what the op moved. */
int tfh_join_ops(struct tfh_built_proc *p);

#endif
