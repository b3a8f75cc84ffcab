/*
 * Conditional nodes. A real kernel may set the condition while the graph runs. Kernels here do not,
 * so the handle's default value decides, or the setting `condition`; `while_count` is the number of
 * iterations of a loop's body.
 */
#include "sim/gpu/graph/graph.h"

#include <stdlib.h>

enum { IF = 0, WHILE = 1, SWITCH = 2, ASSIGN_DEFAULT = 1 };

static CUresult create(struct sim_call *c, uint64_t *out, CUgraph g, CUcontext ctx, unsigned value,
		       unsigned flags)
{
	(void)c;
	(void)ctx;
	if (!out || !sim_graph_is(g) || flags > ASSIGN_DEFAULT)
		return CUDA_ERROR_INVALID_VALUE;
	/* Never freed: copies of graphs refer to it. */
	struct sim_condition *k = calloc(1, sizeof(*k));
	k->magic = SIM_MAGIC_CONDITION;
	k->graph = g;
	k->value = value;
	k->flags = flags;
	g->conditions++;
	*out = (uintptr_t)k;
	return CUDA_SUCCESS;
}

CUresult sim_condition_use(const CUDA_CONDITIONAL_NODE_PARAMS *p, struct sim_graph *g)
{
	struct sim_condition *k = (struct sim_condition *)(uintptr_t)p->handle;
	bool size = p->type == IF      ? p->size == 1 || p->size == 2
		    : p->type == WHILE ? p->size == 1
				       : p->type == SWITCH && p->size > 0;
	if (!k || k->magic != SIM_MAGIC_CONDITION || k->graph != g || k->used || !size)
		return CUDA_ERROR_INVALID_VALUE;
	k->used = true;
	g->conditions--;
	return CUDA_SUCCESS;
}

size_t sim_condition_choose(const struct sim_node *n, unsigned *times)
{
	const struct sim_condition *k = n->condition;
	unsigned value = k->flags & ASSIGN_DEFAULT ? k->value : 0;
	size_t body = 0;
	if (sim_cfg.condition >= 0)
		value = (unsigned)sim_cfg.condition;
	*times = 1;
	switch (n->condition_type) {
	case IF:
		body = value ? 0 : 1;
		break;
	case WHILE:
		*times = value ? (unsigned)sim_cfg.while_count : 0;
		break;
	default:
		body = value;
	}
	if (body >= n->nbodies)
		*times = 0;
	return body;
}

SIM_API(cuGraphConditionalHandleCreate, SIM_NEED_INIT, create,
	(uint64_t * out, CUgraph g, CUcontext ctx, unsigned value, unsigned flags),
	(out, g, ctx, value, flags))
