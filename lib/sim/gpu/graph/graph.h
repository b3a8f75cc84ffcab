/* Shared by the files about graphs. */
#ifndef TFH_SIM_GPU_GRAPH_GRAPH_H
#define TFH_SIM_GPU_GRAPH_GRAPH_H

#include "sim/gpu/api.h"

static inline bool sim_graph_is(const struct sim_graph *g)
{
	return g && g->magic == SIM_MAGIC_GRAPH;
}

static inline bool sim_node_is(const struct sim_node *n)
{
	return n && n->magic == SIM_MAGIC_NODE;
}

/* ---- structure.c ---- */
/* With edge NULL: an ordinary dependency. False if there is one already with different data. */
bool sim_node_depend(struct sim_node *n, struct sim_node *on, const CUgraphEdgeData *edge);
/* Deep copy; each node's origin is the id of the node it was copied from. */
struct sim_graph *sim_graph_copy(const struct sim_graph *g);
/* True if the graph, or one below it, has a node of this type. */
bool sim_graph_has(const struct sim_graph *g, int type);
/* The node in copy (or below it) whose origin is n; NULL if there is none. */
struct sim_node *sim_graph_find(const struct sim_graph *copy, const struct sim_node *n);
/* Gives a node n empty graphs below it. */
void sim_node_bodies(struct sim_node *n, size_t count);

/* ---- nodes.c ---- */
/* Fills the work of a node with parameters p in this context; CUDA_ERROR_NOT_SUPPORTED for nodes
 * with child graphs or memory. */
CUresult sim_node_work(struct sim_work *w, const CUgraphNodeParams *p, struct sim_ctx *ctx);
/* The first version of the parameters is shorter. */
void sim_node_kernel_v1(CUgraphNodeParams *out, const CUDA_KERNEL_NODE_PARAMS *p);

/* ---- graph_memory.c ---- */
/* Memory of allocation nodes keeps its address while a graph refers to it. */
struct sim_reserve *sim_reserve_new(struct sim_device *dev, size_t n);
void sim_reserve_ref(struct sim_reserve *r);
void sim_reserve_unref(struct sim_reserve *r);
CUdeviceptr sim_reserve_address(const struct sim_reserve *r);
/* Counts it as allocated from now on. */
void sim_reserve_take(struct sim_reserve *r);
bool sim_reserve_taken(const struct sim_reserve *r);

/* The parameters read back from an allocation node. */
void sim_reserve_describe(const struct sim_reserve *r, CUDA_MEM_ALLOC_NODE_PARAMS *p);

/* ---- exec.c ---- */
/* Gives the nodes of graph `to` the work of g's nodes if both have the same shape. */
bool sim_graph_update(struct sim_graph *to, const struct sim_graph *g,
		      CUgraphExecUpdateResultInfo *info);
struct sim_exec {
	int magic;
	uint32_t id;
	struct sim_ctx *ctx;
	unsigned long long flags;
	struct sim_graph *g; /* a copy: nodes are found by their origin */
};
/* The node of e made from n, if it has this type (-1: any); else NULL. */
struct sim_node *sim_exec_find(CUgraphExec e, CUgraphNode n, int type);

/* ---- conditional.c ---- */
struct sim_condition {
	int magic;
	struct sim_graph *graph;
	unsigned value, flags;
	bool used;
};
CUresult sim_condition_use(const CUDA_CONDITIONAL_NODE_PARAMS *p, struct sim_graph *g);
/* The graph below n that runs, and how often. */
size_t sim_condition_choose(const struct sim_node *n, unsigned *times);

/* ---- userobj.c ---- */
void sim_graph_users_copy(struct sim_graph *to, const struct sim_graph *from);
void sim_graph_users_free(struct sim_graph *g);

#endif
