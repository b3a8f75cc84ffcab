/* Queries of a run that was built in memory. */
#include <stdlib.h>
#include <string.h>

#include "model/built/built.h"

const struct tfh_event *tfh_built_event(const struct tfh_run *run, uint32_t process, uint64_t i)
{
	if (process >= run->n_proc || i >= run->built->proc[process].n_ev)
		return NULL;
	return &run->built->proc[process].ev[i];
}

const struct tfh_op *tfh_built_op(const struct tfh_run *run, uint32_t process, uint64_t i)
{
	if (process >= run->n_proc || i >= run->built->proc[process].n_op)
		return NULL;
	return &run->built->proc[process].op[i];
}

/* An op whose call is unknown hides a dependency. Up to one in twenty is tolerated, as noise at the
 * edges of the recording. */
void tfh_built_gpu(const struct tfh_run *run, uint32_t process, struct tfh_gpu_info *out)
{
	const struct tfh_built_proc *p;

	*out = (struct tfh_gpu_info){.why = "", .library = "", .graphs = ""};
	if (process >= run->n_proc)
		return;
	p = &run->built->proc[process];
	if (!p->n_op) {
		out->why = "the trace has neither kernels nor copies";
		return;
	}
	out->source = TFH_GPU_IMPORTED;
	out->span = p->span;
	out->n_span = p->n_span;
	out->ops = p->n_op;
	out->unissued = p->unissued;
	out->processors = p->processors;
	out->early = p->early;
	out->dependencies = (p->unissued - p->early) * 20 <= p->n_op;
}

void tfh_built_clear(struct tfh_built_proc *p)
{
	free(p->ev);
	free(p->correlation);
	free(p->op);
	free(p->span);
	memset(p, 0, sizeof(*p));
}

void tfh_built_free(struct tfh_built *built)
{
	if (!built)
		return;
	for (uint32_t i = 0; i < built->cap_proc; i++)
		tfh_built_clear(&built->proc[i]);
	free(built->proc);
	free(built);
}
