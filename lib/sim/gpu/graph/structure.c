/* Graphs: nodes, dependencies, copies. Nodes are created in nodes.c and run in exec.c. */
#include "sim/gpu/graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_graph *sim_graph_new(void)
{
	struct sim_graph *g = calloc(1, sizeof(*g));
	g->magic = SIM_MAGIC_GRAPH;
	g->id = (uint32_t)sim_new_id();
	return g;
}

static size_t position(const struct sim_node *n, const struct sim_node *on)
{
	size_t i = 0;
	while (i < n->ndeps && n->deps[i] != on)
		i++;
	return i;
}

bool sim_node_depend(struct sim_node *n, struct sim_node *on, const CUgraphEdgeData *edge)
{
	CUgraphEdgeData e = {0};
	if (edge)
		e = *edge;
	size_t i = position(n, on);
	if (i < n->ndeps)
		return !memcmp(&n->edges[i], &e, sizeof(e));
	n->deps = realloc(n->deps, (n->ndeps + 1) * sizeof(*n->deps));
	n->edges = realloc(n->edges, (n->ndeps + 1) * sizeof(*n->edges));
	n->edges[n->ndeps] = e;
	n->deps[n->ndeps++] = on;
	return true;
}

static void forget(struct sim_node *n, size_t i)
{
	n->ndeps--;
	memmove(n->deps + i, n->deps + i + 1, (n->ndeps - i) * sizeof(*n->deps));
	memmove(n->edges + i, n->edges + i + 1, (n->ndeps - i) * sizeof(*n->edges));
}

/* Appends n; NULL keeps the index of a destroyed node of the copied graph. */
static void append(struct sim_graph *g, struct sim_node *n)
{
	if (!(g->n & (g->n + 1))) /* full at each power of two less one */
		g->nodes = realloc(g->nodes, (g->n * 2 + 2) * sizeof(*g->nodes));
	g->nodes[g->n++] = n;
}

struct sim_node *sim_graph_add(struct sim_graph *g, int type, const struct sim_work *w,
			       struct sim_node *const *deps, size_t ndeps)
{
	struct sim_node *n = calloc(1, sizeof(*n));
	n->magic = SIM_MAGIC_NODE;
	n->type = type;
	n->graph = g;
	n->index = g->n;
	n->id = sim_new_id();
	n->work = *w;
	for (size_t i = 0; i < ndeps; i++)
		sim_node_depend(n, deps[i], NULL);
	append(g, n);
	return n;
}

void sim_node_bodies(struct sim_node *n, size_t count)
{
	n->bodies = calloc(count + 1, sizeof(*n->bodies));
	n->nbodies = count;
	for (size_t i = 0; i < count; i++) {
		n->bodies[i] = sim_graph_new();
		n->bodies[i]->owner = n;
	}
}

static void free_node(struct sim_node *n)
{
	if (n->type == SIM_NODE_ALLOC)
		sim_reserve_unref(n->work.reserve);
	sim_work_release(&n->work);
	for (size_t i = 0; i < n->nbodies; i++)
		sim_graph_free(n->bodies[i]);
	n->magic = 0;
	free(n->bodies);
	free(n->attributes);
	free(n->params);
	free(n->deps);
	free(n->edges);
	free(n);
}

void sim_graph_free(struct sim_graph *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->nodes[i])
			free_node(g->nodes[i]);
	sim_graph_users_free(g);
	g->magic = 0;
	free(g->nodes);
	free(g);
}

static struct sim_node *copy_node(struct sim_graph *to, const struct sim_node *n)
{
	struct sim_work w = sim_work_dup(&n->work);
	struct sim_node *k = sim_graph_add(to, n->type, &w, NULL, 0);
	k->origin = n->id;
	k->condition = n->condition;
	k->condition_type = n->condition_type;
	k->attributes = sim_attributes_copy(n->attributes);
	if (n->type == SIM_NODE_ALLOC)
		sim_reserve_ref(w.reserve);
	k->nbodies = n->nbodies;
	k->bodies = calloc(n->nbodies + 1, sizeof(*k->bodies));
	for (size_t i = 0; i < n->nbodies; i++) {
		k->bodies[i] = sim_graph_copy(n->bodies[i]);
		k->bodies[i]->owner = k;
	}
	return k;
}

struct sim_graph *sim_graph_copy(const struct sim_graph *g)
{
	struct sim_graph *k = sim_graph_new();
	for (size_t i = 0; i < g->n; i++) {
		if (g->nodes[i])
			copy_node(k, g->nodes[i]);
		else
			append(k, NULL);
	}
	for (size_t i = 0; i < g->n; i++)
		for (size_t j = 0; g->nodes[i] && j < g->nodes[i]->ndeps; j++)
			sim_node_depend(k->nodes[i], k->nodes[g->nodes[i]->deps[j]->index],
					&g->nodes[i]->edges[j]);
	sim_graph_users_copy(k, g);
	return k;
}

bool sim_graph_has(const struct sim_graph *g, int type)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct sim_node *n = g->nodes[i];
		if (n && n->type == type)
			return true;
		for (size_t j = 0; n && j < n->nbodies; j++)
			if (sim_graph_has(n->bodies[j], type))
				return true;
	}
	return false;
}

struct sim_node *sim_graph_find(const struct sim_graph *copy, const struct sim_node *n)
{
	if (n->index < copy->n && copy->nodes[n->index] && copy->nodes[n->index]->origin == n->id)
		return copy->nodes[n->index];
	for (size_t i = 0; i < copy->n; i++) {
		const struct sim_node *k = copy->nodes[i];
		for (size_t j = 0; k && j < k->nbodies; j++) {
			struct sim_node *found = sim_graph_find(k->bodies[j], n);
			if (found)
				return found;
		}
	}
	return NULL;
}

static CUresult create(struct sim_call *c, CUgraph *out, unsigned flags)
{
	(void)c;
	if (!out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*out = sim_graph_new();
	return CUDA_SUCCESS;
}

/* Destroys a graph, with those below its nodes. */
static CUresult destroy(struct sim_call *c, CUgraph g)
{
	(void)c;
	if (!sim_graph_is(g) || g->owner)
		return CUDA_ERROR_INVALID_VALUE;
	sim_graph_free(g);
	return CUDA_SUCCESS;
}

static CUresult copy_graph(struct sim_call *c, CUgraph *out, CUgraph g)
{
	(void)c;
	if (!out || !sim_graph_is(g))
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_graph_has(g, SIM_NODE_ALLOC) || sim_graph_has(g, SIM_NODE_FREE))
		return CUDA_ERROR_NOT_SUPPORTED;
	*out = sim_graph_copy(g);
	return CUDA_SUCCESS;
}

static CUresult find_in_clone(struct sim_call *c, CUgraphNode *out, CUgraphNode n, CUgraph g)
{
	(void)c;
	if (!out || !sim_node_is(n) || !sim_graph_is(g))
		return CUDA_ERROR_INVALID_VALUE;
	*out = sim_graph_find(g, n);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool owns_memory(const struct sim_node *n)
{
	return n->type == SIM_NODE_ALLOC || n->type == SIM_NODE_FREE;
}

static CUresult destroy_node(struct sim_call *c, CUgraphNode n)
{
	(void)c;
	if (!sim_node_is(n))
		return CUDA_ERROR_INVALID_VALUE;
	if (owns_memory(n))
		return CUDA_ERROR_NOT_SUPPORTED;
	struct sim_graph *g = n->graph;
	g->nodes[n->index] = NULL;
	for (size_t i = 0; i < g->n; i++) {
		struct sim_node *o = g->nodes[i];
		if (o && position(o, n) < o->ndeps)
			forget(o, position(o, n));
	}
	free_node(n);
	return CUDA_SUCCESS;
}

/* ---- dependencies ---- */
static bool ends(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
	bool ok = sim_graph_is(g) && (!n || (from && to));
	for (size_t i = 0; ok && i < n; i++)
		ok = sim_node_is(from[i]) && sim_node_is(to[i]) && from[i] != to[i] &&
		     from[i]->graph == g && to[i]->graph == g;
	return ok;
}

static CUresult add_deps2(struct sim_call *c, CUgraph g, const CUgraphNode *from,
			  const CUgraphNode *to, const CUgraphEdgeData *edges, size_t n)
{
	(void)c;
	if (!ends(g, from, to, n))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++)
		if (!sim_node_depend(to[i], from[i], edges ? &edges[i] : NULL))
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult add_deps(struct sim_call *c, CUgraph g, const CUgraphNode *from,
			 const CUgraphNode *to, size_t n)
{
	return add_deps2(c, g, from, to, NULL, n);
}

static CUresult remove_deps2(struct sim_call *c, CUgraph g, const CUgraphNode *from,
			     const CUgraphNode *to, const CUgraphEdgeData *edges, size_t n)
{
	(void)c;
	(void)edges;
	if (!ends(g, from, to, n))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		size_t at = position(to[i], from[i]);
		if (at == to[i]->ndeps)
			return CUDA_ERROR_INVALID_VALUE;
		if (owns_memory(to[i]) || owns_memory(from[i]))
			return CUDA_ERROR_NOT_SUPPORTED;
		forget(to[i], at);
	}
	return CUDA_SUCCESS;
}

static CUresult remove_deps(struct sim_call *c, CUgraph g, const CUgraphNode *from,
			    const CUgraphNode *to, size_t n)
{
	return remove_deps2(c, g, from, to, NULL, n);
}

/* ---- reading ---- */
/* Output of a listing: up to *n entries, or only their number. */
struct edge_list {
	CUgraphNode *from, *to;
	CUgraphEdgeData *edges;
	size_t *n, k;
	bool lossy; /* an edge with data was requested without it */
};

static void put(struct edge_list *l, CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *edge)
{
	static const CUgraphEdgeData none;
	bool fill = (l->from || l->to) && l->k < *l->n;
	if (fill && l->from)
		l->from[l->k] = from;
	if (fill && l->to)
		l->to[l->k] = to;
	if (fill && l->edges)
		l->edges[l->k] = *edge;
	if (fill && !l->edges && memcmp(edge, &none, sizeof(none)))
		l->lossy = true;
	l->k++;
}

/* Entries beyond the last are cleared, as by the real driver. */
static CUresult done(struct edge_list *l)
{
	if (l->from || l->to) {
		for (size_t i = l->k; i < *l->n; i++) {
			if (l->from)
				l->from[i] = NULL;
			if (l->to)
				l->to[i] = NULL;
		}
		*l->n = l->k < *l->n ? l->k : *l->n;
	} else {
		*l->n = l->k;
	}
	return l->lossy ? CUDA_ERROR_LOSSY_QUERY : CUDA_SUCCESS;
}

static CUresult list_nodes(CUgraph g, CUgraphNode *out, size_t *n, bool roots)
{
	static const CUgraphEdgeData none;
	struct edge_list l = {.from = out, .n = n};
	if (!sim_graph_is(g) || !n)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < g->n; i++)
		if (g->nodes[i] && !(roots && g->nodes[i]->ndeps))
			put(&l, g->nodes[i], NULL, &none);
	return done(&l);
}

static CUresult get_nodes(struct sim_call *c, CUgraph g, CUgraphNode *out, size_t *n)
{
	(void)c;
	return list_nodes(g, out, n, false);
}

static CUresult get_roots(struct sim_call *c, CUgraph g, CUgraphNode *out, size_t *n)
{
	(void)c;
	return list_nodes(g, out, n, true);
}

static CUresult get_edges2(struct sim_call *c, CUgraph g, CUgraphNode *from, CUgraphNode *to,
			   CUgraphEdgeData *edges, size_t *n)
{
	struct edge_list l = {.from = from, .to = to, .edges = edges, .n = n};
	(void)c;
	if (!sim_graph_is(g) || !n || !from != !to)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < g->n; i++)
		for (size_t j = 0; g->nodes[i] && j < g->nodes[i]->ndeps; j++)
			put(&l, g->nodes[i]->deps[j], g->nodes[i], &g->nodes[i]->edges[j]);
	return done(&l);
}

static CUresult get_edges(struct sim_call *c, CUgraph g, CUgraphNode *from, CUgraphNode *to,
			  size_t *n)
{
	return get_edges2(c, g, from, to, NULL, n);
}

static CUresult get_deps2(struct sim_call *c, CUgraphNode n, CUgraphNode *out,
			  CUgraphEdgeData *edges, size_t *count)
{
	struct edge_list l = {.from = out, .edges = edges, .n = count};
	(void)c;
	if (!sim_node_is(n) || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n->ndeps; i++)
		put(&l, n->deps[i], n, &n->edges[i]);
	return done(&l);
}

static CUresult get_deps(struct sim_call *c, CUgraphNode n, CUgraphNode *out, size_t *count)
{
	return get_deps2(c, n, out, NULL, count);
}

static CUresult get_dependents2(struct sim_call *c, CUgraphNode n, CUgraphNode *out,
				CUgraphEdgeData *edges, size_t *count)
{
	struct edge_list l = {.from = out, .edges = edges, .n = count};
	(void)c;
	if (!sim_node_is(n) || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n->graph->n; i++) {
		struct sim_node *o = n->graph->nodes[i];
		size_t at = o ? position(o, n) : 0;
		if (o && at < o->ndeps)
			put(&l, o, n, &o->edges[at]);
	}
	return done(&l);
}

static CUresult get_dependents(struct sim_call *c, CUgraphNode n, CUgraphNode *out, size_t *count)
{
	return get_dependents2(c, n, out, NULL, count);
}

static CUresult get_type(struct sim_call *c, CUgraphNode n, int *type)
{
	(void)c;
	if (!sim_node_is(n) || !type)
		return CUDA_ERROR_INVALID_VALUE;
	*type = n->type;
	return CUDA_SUCCESS;
}

static void dot(FILE *f, const struct sim_graph *g, int depth)
{
	static const char *const types[] = {
		"kernel", "memcpy",	"memset",	"host",		"graph",
		"empty",  "event wait", "event record", "semas signal", "semas wait",
		"alloc",  "free",	"batch mem op", "conditional",
	};
	fprintf(f, "%*s%s graph_%u {\n", depth * 2, "", depth ? "subgraph cluster" : "digraph",
		g->id);
	for (size_t i = 0; i < g->n; i++) {
		const struct sim_node *n = g->nodes[i];
		if (!n)
			continue;
		fprintf(f, "%*s\"graph_%u_node_%zu\" [label=\"%zu %s %s\"];\n", depth * 2 + 2, "",
			g->id, i, i, types[n->type],
			n->type == SIM_NODE_KERNEL ? n->work.launch.func->name : "");
		for (size_t j = 0; j < n->ndeps; j++)
			fprintf(f, "%*s\"graph_%u_node_%zu\" -> \"graph_%u_node_%zu\";\n",
				depth * 2 + 2, "", g->id, n->deps[j]->index, g->id, i);
		for (size_t j = 0; j < n->nbodies; j++)
			dot(f, n->bodies[j], depth + 1);
	}
	fprintf(f, "%*s}\n", depth * 2, "");
}

static CUresult debug_dot(struct sim_call *c, CUgraph g, const char *path, unsigned flags)
{
	(void)c;
	(void)flags;
	if (!sim_graph_is(g) || !path)
		return CUDA_ERROR_INVALID_VALUE;
	FILE *f = fopen(path, "we");
	if (!f)
		return CUDA_ERROR_OPERATING_SYSTEM;
	dot(f, g, 0);
	return fclose(f) ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

#define EDGES CUgraph g, const CUgraphNode *from, const CUgraphNode *to
SIM_API(cuGraphCreate, SIM_NEED_INIT, create, (CUgraph * g, unsigned flags), (g, flags))
SIM_API(cuGraphDestroy, SIM_NEED_INIT, destroy, (CUgraph g), (g))
SIM_API(cuGraphClone, SIM_NEED_INIT, copy_graph, (CUgraph * out, CUgraph g), (out, g))
SIM_API(cuGraphNodeFindInClone, SIM_NEED_INIT, find_in_clone,
	(CUgraphNode * out, CUgraphNode n, CUgraph g), (out, n, g))
SIM_API(cuGraphDestroyNode, SIM_NEED_INIT, destroy_node, (CUgraphNode n), (n))
SIM_API(cuGraphAddDependencies, SIM_NEED_INIT, add_deps, (EDGES, size_t n), (g, from, to, n))
SIM_API(cuGraphAddDependencies_v2, SIM_NEED_INIT, add_deps2,
	(EDGES, const CUgraphEdgeData *e, size_t n), (g, from, to, e, n))
SIM_API(cuGraphRemoveDependencies, SIM_NEED_INIT, remove_deps, (EDGES, size_t n), (g, from, to, n))
SIM_API(cuGraphRemoveDependencies_v2, SIM_NEED_INIT, remove_deps2,
	(EDGES, const CUgraphEdgeData *e, size_t n), (g, from, to, e, n))
SIM_API(cuGraphGetNodes, SIM_NEED_INIT, get_nodes, (CUgraph g, CUgraphNode *out, size_t *n),
	(g, out, n))
SIM_API(cuGraphGetRootNodes, SIM_NEED_INIT, get_roots, (CUgraph g, CUgraphNode *out, size_t *n),
	(g, out, n))
SIM_API(cuGraphGetEdges, SIM_NEED_INIT, get_edges,
	(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *n), (g, from, to, n))
SIM_API(cuGraphGetEdges_v2, SIM_NEED_INIT, get_edges2,
	(CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *e, size_t *n),
	(g, from, to, e, n))
SIM_API(cuGraphNodeGetDependencies, SIM_NEED_INIT, get_deps,
	(CUgraphNode n, CUgraphNode *out, size_t *k), (n, out, k))
SIM_API(cuGraphNodeGetDependencies_v2, SIM_NEED_INIT, get_deps2,
	(CUgraphNode n, CUgraphNode *out, CUgraphEdgeData *e, size_t *k), (n, out, e, k))
SIM_API(cuGraphNodeGetDependentNodes, SIM_NEED_INIT, get_dependents,
	(CUgraphNode n, CUgraphNode *out, size_t *k), (n, out, k))
SIM_API(cuGraphNodeGetDependentNodes_v2, SIM_NEED_INIT, get_dependents2,
	(CUgraphNode n, CUgraphNode *out, CUgraphEdgeData *e, size_t *k), (n, out, e, k))
SIM_API(cuGraphNodeGetType, SIM_NEED_INIT, get_type, (CUgraphNode n, int *type), (n, type))
SIM_API(cuGraphDebugDotPrint, SIM_NEED_INIT, debug_dot,
	(CUgraph g, const char *path, unsigned flags), (g, path, flags))
