/*
 * Passes a run to a format's writer: for each process its steps, its calls in order of their begin,
 * and its ops in order of their start.
 */
#ifndef TFH_EXPORT_WALK_H
#define TFH_EXPORT_WALK_H

#include "export/export.h"

/* A host call, a range, a mark, or a sum of short calls. */
struct tfh_walk_call {
	const struct tfh_event *ev;
	const char *name;   /* the displayed name: its own or that of the function */
	const char *kernel; /* launches: the launched kernel, "" unknown */
	uint64_t id;	    /* of this call, not 0; ops refer to it */
	uint64_t count;	    /* number of calls that it represents */
};

/* Each may be NULL. All return 0 or an errno that ends the walk. */
struct tfh_walker {
	int (*process)(void *arg, uint32_t process, const struct tfh_process *p);
	int (*step)(void *arg, const struct tfh_export_rank *rank, const struct tfh_step *s);
	int (*call)(void *arg, const struct tfh_walk_call *call);
	int (*op)(void *arg, const struct tfh_op *op, uint64_t call); /* 0: the call is unknown */
	int (*end)(void *arg, uint32_t process);
};

int tfh_walk(const struct tfh_export *x, const struct tfh_walker *w, void *arg,
	     struct tfh_err *err);

#endif
