/* A run that was built in memory: filled by build.c, sorted by join.c, read by built.c. */
#ifndef TFH_MODEL_BUILT_BUILT_H
#define TFH_MODEL_BUILT_BUILT_H

#include "model/built/build.h"
#include "model/opened.h"

struct tfh_built_proc {
	struct tfh_event *ev;
	uint32_t *correlation; /* correlation id of each event; freed when joined */
	uint32_t n_ev, cap_ev, cap_correlation;
	struct tfh_op *op;
	uint32_t n_op, cap_op;
	struct tfh_gpu_span *span;
	uint32_t n_span, cap_span;
	/* Ops without a call; `early`: those queued before the first recorded call. */
	uint64_t unissued, early;
	uint32_t processors;
	int64_t shift;
	int64_t ready;	 /* see tfh_build_ready() */
	bool is_ready;	 /* `ready` is known */
	uint32_t serial; /* identifies the process in its builder */
};

struct tfh_built {
	struct tfh_built_proc *proc; /* by process */
	uint32_t cap_proc;
};

/* Interned texts: an open-addressed hash table that never shrinks. */
struct tfh_built_text {
	uint64_t hash; /* 0: free */
	const void *what;
	uint32_t id;
};
struct tfh_built_table {
	struct tfh_built_text *v;
	uint32_t n, size;
};

struct tfh_builder {
	struct tfh_run *run;
	struct tfh_built_table texts; /* op names: one copy of each */
	struct tfh_built_table names; /* (process, kind, text) -> id */
	/* Number of processes ever begun: part of a name's key, so that names of a removed process
	 * are not found again. */
	uint32_t serial;
	struct tfh_built_table fns;
};

/* built_names.c: the entry of a text's hash, new if `what` is NULL. The 64 bits of the hash
 * represent the text: among a million texts, two collide once in 10^7 runs. NULL when out of
 * memory. */
struct tfh_built_text *tfh_built_enter(struct tfh_built_table *t, uint64_t hash);

/* Frees a process' data and clears it. */
void tfh_built_clear(struct tfh_built_proc *p);

/* join.c. Both sort and number one process' events or ops. 0 or -ENOMEM. */
int tfh_order_events(struct tfh_built_proc *p, uint32_t n_threads);
/* After tfh_order_events(): for each call the innermost op range around it on its thread, + 1;
 * `op` is zeroed. */
int tfh_innermost_ops(struct tfh_built_proc *p, uint32_t n_threads, uint32_t *op);
/* After tfh_order_events(): finds the call of each op, and copies the op's bytes and direction to
 * it. */
int tfh_join_ops(struct tfh_built_proc *p);
/* name.c, after tfh_join_ops(): gives each launch the name of its kernel; if there is no kernel at
 * all, that of the op around it. Frees by which a library begins load it. 0 or -ENOMEM. */
int tfh_name_calls(struct tfh_builder *b, uint32_t process, struct tfh_built_proc *p,
		   uint32_t n_threads);

#endif
