/* What the surroundings of calls show: what a launch launches (its kernel, or the op that made it),
 * and which frees load a library. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/built/built.h"

#define LIBRARY_NS 1000000 /* loading a library takes longer; freeing itself takes less */

/* Gives each launch its kernel's name id, as in a recording of our own.
 * *any: a launch has a kernel. */
static int name_by_kernel(struct tfh_builder *b, uint32_t process, struct tfh_built_proc *p,
			  uint32_t n_threads, bool *any)
{
	uint64_t *first = calloc(n_threads + 1, sizeof(*first));
	uint32_t *at = malloc((p->n_ev + 1) * sizeof(*at));
	int rc = first && at ? 0 : -ENOMEM;

	/* maps (thread, number) to the event: a thread's events are numbered consecutively */
	for (uint32_t k = 0; k < p->n_ev && !rc; k++)
		first[p->ev[k].thread + 1]++;
	for (uint32_t t = 0; t < n_threads && !rc; t++)
		first[t + 1] += first[t];
	for (uint32_t k = 0; k < p->n_ev && !rc; k++)
		at[first[p->ev[k].thread] + p->ev[k].number] = k;
	for (uint32_t k = 0; k < p->n_op && !rc; k++) {
		const struct tfh_op *op = &p->op[k];
		if (op->thread == UINT32_MAX || op->kind != TFH_OP_KERNEL)
			continue;
		struct tfh_event *ev = &p->ev[at[first[op->thread] + op->call]];
		if (ev->fn->family != TFH_FAM_LAUNCH)
			continue;
		*any = true;
		if ((uint32_t)ev->w[0])
			continue;
		int64_t id = tfh_build_name(b, process, TFT_NAME_FUNCTION, op->name);
		rc = id < 0 ? (int)id : 0;
		ev->w[0] |= rc ? 0 : (uint64_t)id;
	}
	free(first);
	free(at);
	return rc;
}

/* A trace without kernels (its profiler had no access to the device's counters) tells launches
 * apart only by the ops that made them. */
static int name_by_op(struct tfh_builder *b, uint32_t process, struct tfh_built_proc *p,
		      const uint32_t *op)
{
	char name[300];

	for (uint32_t i = 0; i < p->n_ev; i++) {
		struct tfh_event *ev = &p->ev[i];
		if (!op[i] || ev->fn->family != TFH_FAM_LAUNCH || (uint32_t)ev->w[0])
			continue;
		snprintf(name, sizeof(name), "kernel of %s",
			 tfh_build_text(b, process, TFT_NAME_STRING,
					(uint32_t)p->ev[op[i] - 1].w[0]));
		int64_t id = tfh_build_name(b, process, TFT_NAME_FUNCTION, name);
		if (id < 0)
			return (int)id;
		ev->w[0] |= (uint64_t)id;
	}
	return 0;
}

/* The first op that uses a library (cuBLAS, cuDNN) loads the library's kernels, during a free of
 * nothing: `cudaFree(0)`. An allocator frees memory inside an op only after it failed to allocate.
 * So the long frees of the first op that has any are taken for loading, unless an allocation on the
 * device comes right before. */
static int name_frees(struct tfh_builder *b, struct tfh_built_proc *p, uint32_t n_threads,
		      const uint32_t *op)
{
	bool *failed = calloc(n_threads + 1, sizeof(*failed)); /* the last call allocated */
	uint32_t first = 0;
	char name[300];
	int rc = failed ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < p->n_ev && !rc; i++) {
		struct tfh_event *ev = &p->ev[i];
		if (ev->kind != TFT_CALL)
			continue;
		if (ev->fn->family != TFH_FAM_FREE) { /* an allocator may free several blocks */
			failed[ev->thread] =
				ev->fn->family == TFH_FAM_ALLOC && !strstr(ev->fn->name, "Host");
			continue;
		}
		first = first ? first : op[i] ? op[i] : UINT32_MAX;
		if (op[i] != first || failed[ev->thread] || ev->t1 - ev->t0 < LIBRARY_NS)
			continue;
		snprintf(name, sizeof(name), "%s (loads a library)", ev->fn->name);
		ev->fn = tfh_build_fn(b, name, &tfh_fn_table[TFH_FN_cuLibraryLoadData]);
		rc = ev->fn ? 0 : -ENOMEM;
	}
	free(failed);
	return rc;
}

int tfh_name_calls(struct tfh_builder *b, uint32_t process, struct tfh_built_proc *p,
		   uint32_t n_threads)
{
	bool any = false;
	uint32_t *op = calloc(p->n_ev + 1, sizeof(*op));
	int rc = op ? tfh_innermost_ops(p, n_threads, op) : -ENOMEM;

	rc = rc ? rc : name_by_kernel(b, process, p, n_threads, &any);
	if (!any)
		rc = rc ? rc : name_by_op(b, process, p, op);
	rc = rc ? rc : name_frees(b, p, n_threads, op);
	free(op);
	return rc;
}
