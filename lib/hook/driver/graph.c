/*
 * Executable graphs: the kernels and bytes of one launch.
 *
 * The nodes of the graph from which an executable is made are read at instantiation or update, and
 * kept. The driver does not report an executable's current nodes, so after a node is changed or
 * disabled, the totals are recomputed from this copy. A launch refers to the graph and its version;
 * a GRAPH record has the totals of that version.
 */
#include "hook/driver/note.h"

#include <string.h>
#include <sys/mman.h>

#include "record/process/lock.h"

/* Frameworks keep tens of graphs at a time, vLLM some hundreds. */
#define SLOTS 4096u
#define PROBES 64u
#define GONE 1u /* marks a removed entry: probing continues past it */

/* A node; nodes of a child graph follow their parent node. */
struct node {
	uint64_t handle;
	uint64_t bytes; /* of a copy, in total */
	uint32_t inner; /* nodes of the child graph */
	uint8_t type;
	uint8_t way; /* of a copy: index of struct graph_totals.bytes, or WAY_NONE */
	bool off;    /* disabled in the executable */
};

struct nodes {
	struct node *v;
	uint32_t n, cap;
	uint32_t incomplete; /* 1: some node could not be read */
};

struct graph_totals {
	uint64_t bytes[3]; /* H2D, D2H, within devices */
	struct tft_ext_graph nodes;
};

struct graph {
	uint64_t exec;	  /* atomic; 0: never used, which ends probing */
	uint32_t version; /* 0: unknown */
	struct graph_totals totals;
	struct nodes nodes;
	/* Index after the node that was changed last: programs change nodes in order. */
	uint32_t next;
};

static struct graph *graphs;
/* Atomic: last version number: a handle may be reused for another graph. */
static uint32_t versions;
static uint32_t lock TFH_LOCK_WORD; /* one writer at a time */

/* Entry of `exec`, or NULL. *room, if not NULL: a free entry for it, or NULL. */
static struct graph *look(CUgraphExec exec, struct graph **room)
{
	struct graph *t = __atomic_load_n(&graphs, __ATOMIC_ACQUIRE), *first = NULL;
	uint32_t at = (uint32_t)((U64(exec) >> 4) * 0x9e3779b1u) % SLOTS;

	for (uint32_t i = 0; t && i < PROBES; i++, at = (at + 1) % SLOTS) {
		uint64_t there = __atomic_load_n(&t[at].exec, __ATOMIC_ACQUIRE);
		if (there == U64(exec))
			return &t[at];
		if (there <= GONE && !first)
			first = &t[at];
		if (!there)
			break;
	}
	if (room)
		*room = first;
	return NULL;
}

static struct graph *find(CUgraphExec exec)
{
	return look(exec, NULL);
}

/* With the lock held: the graph's entry, created if needed; NULL if the table is full. */
static struct graph *place_of(CUgraphExec exec)
{
	struct graph *room = NULL, *g;

	if (!graphs) {
		void *map = mmap(NULL, SLOTS * sizeof(*graphs), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (map == MAP_FAILED)
			return NULL;
		__atomic_store_n(&graphs, map, __ATOMIC_RELEASE);
	}
	g = look(exec, &room);
	if (!g && room) {
		g = room;
		g->version = 0;
		__atomic_store_n(&g->exec, U64(exec), __ATOMIC_RELEASE);
	}
	return g;
}

/* With the lock held. Removed entries that no probe passes become free again. */
static void leave_place(struct graph *g)
{
	uint32_t at = (uint32_t)(g - graphs);

	__atomic_store_n(&g->version, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&g->exec, GONE, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < SLOTS && graphs[at].exec == GONE && !graphs[(at + 1) % SLOTS].exec;
	     i++, at = (at + SLOTS - 1) % SLOTS)
		__atomic_store_n(&graphs[at].exec, 0, __ATOMIC_RELEASE);
}

void tfh_graph_words(CUgraphExec exec, uint64_t word[2])
{
	struct graph *g = exec ? find(exec) : NULL;

	word[0] = g ? __atomic_load_n(&g->version, __ATOMIC_ACQUIRE) : 0;
	word[1] = word[0] ? g->totals.nodes.kernels : 0;
}

bool tfh_graphs_made(void)
{
	return __atomic_load_n(&versions, __ATOMIC_RELAXED) != 0;
}

/* ---- reading nodes ---- */

enum { WAY_H2D, WAY_D2H, WAY_DEVICE, WAY_NONE };
enum {
	NODE_KERNEL = 0,
	NODE_COPY = 1,
	NODE_SET = 2,
	NODE_HOST = 3,
	NODE_GRAPH = 4,
	NODE_CONDITIONAL = 13,
	NODE_UNREAD = 255,
};
#define CHILD_DEPTH 8

/* Not from malloc: the job's allocator may be in any state here. */
static void release(struct nodes *list)
{
	struct nodes old = *list;

	memset(list, 0, sizeof(*list)); /* first: a fork may happen in between */
	if (old.v)
		munmap(old.v, old.cap * sizeof(*old.v));
}

static struct node *append(struct nodes *list)
{
	if (list->n == list->cap) {
		uint32_t cap = list->cap ? 2 * list->cap : 128;
		void *v = list->v ? mremap(list->v, list->cap * sizeof(*list->v),
					   cap * sizeof(*list->v), MREMAP_MAYMOVE)
				  : mmap(NULL, cap * sizeof(*list->v), PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (v == MAP_FAILED)
			return NULL;
		list->v = v;
		list->cap = cap;
	}
	return memset(&list->v[list->n++], 0, sizeof(*list->v));
}

static bool on_host(int type, CUdeviceptr address)
{
	tfh_ask_POINTER ask = TFH_ASK(POINTER);
	unsigned kind = 0;

	if (type != TFH_MEMORY_UNIFIED)
		return type == TFH_MEMORY_HOST;
	/* CU_POINTER_ATTRIBUTE_MEMORY_TYPE; memory unknown to the driver is host memory */
	return !ask || ask(&kind, 2, address) || kind == TFH_MEMORY_HOST;
}

static void read_copy(struct node *node, const CUDA_MEMCPY3D *copy)
{
	bool from_host = on_host(copy->src.type, copy->src.device);
	bool to_host = on_host(copy->dst.type, copy->dst.device);

	node->bytes = (uint64_t)copy->width * copy->height * copy->depth;
	node->way = from_host ? to_host ? WAY_NONE : WAY_H2D : to_host ? WAY_D2H : WAY_DEVICE;
}

static void read_graph(struct nodes *list, CUgraph graph, int depth);

static void read_node(struct nodes *list, CUgraphNode handle, int depth)
{
	tfh_ask_NODE_TYPE ask_type = TFH_ASK(NODE_TYPE);
	tfh_ask_NODE_COPY ask_copy = TFH_ASK(NODE_COPY);
	tfh_ask_NODE_CHILD ask_child = TFH_ASK(NODE_CHILD);
	struct node *node = append(list);
	uint32_t at = list->n - 1;
	CUgraph child = NULL;
	CUDA_MEMCPY3D copy;
	int type = NODE_UNREAD;

	if (!node || !ask_type || ask_type(handle, &type)) {
		list->incomplete = 1;
		type = NODE_UNREAD;
	}
	if (!node)
		return;
	node->handle = U64(handle);
	node->type = (uint8_t)type;
	node->way = WAY_NONE;
	if (type == NODE_COPY) {
		memset(&copy, 0, sizeof(copy));
		if (ask_copy && !ask_copy(handle, &copy))
			read_copy(node, &copy);
		else
			list->incomplete = 1;
	} else if (type == NODE_GRAPH) {
		if (ask_child && !ask_child(handle, &child) && child)
			read_graph(list, child, depth + 1);
		else
			list->incomplete = 1;
		list->v[at].inner = list->n - at - 1;
	}
}

static void read_graph(struct nodes *list, CUgraph graph, int depth)
{
	tfh_ask_GRAPH_NODES ask = TFH_ASK(GRAPH_NODES);
	size_t count = 0;

	if (!ask || depth > CHILD_DEPTH || ask(graph, NULL, &count)) {
		list->incomplete = 1;
		return;
	}
	if (!count)
		return;
	size_t size = count * sizeof(CUgraphNode);
	CUgraphNode *handle =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (handle == MAP_FAILED || ask(graph, handle, &count)) {
		list->incomplete = 1;
		count = 0;
	}
	for (size_t i = 0; i < count && i < size / sizeof(*handle); i++)
		read_node(list, handle[i], depth);
	if (handle != MAP_FAILED)
		munmap(handle, size);
}

/* Our queries must not invalidate a capture on another thread. */
static void read_nodes(struct nodes *list, CUgraph graph, int depth)
{
	tfh_ask_CAPTURE_MODE exchange = TFH_ASK(CAPTURE_MODE);
	int mode = 2; /* relaxed */
	bool exchanged = exchange && !exchange(&mode);

	memset(list, 0, sizeof(*list));
	read_graph(list, graph, depth);
	if (exchanged)
		exchange(&mode);
}

/* ---- totals and their records ---- */

static void add_node(struct graph_totals *sum, const struct node *node)
{
	if (node->off)
		return;
	if (node->type == NODE_KERNEL) {
		sum->nodes.kernels++;
	} else if (node->type == NODE_COPY) {
		sum->nodes.copies++;
		if (node->way != WAY_NONE)
			sum->bytes[node->way] += node->bytes;
	} else if (node->type == NODE_SET) {
		sum->nodes.memsets++;
	} else if (node->type == NODE_HOST) {
		sum->nodes.hosts++;
	} else if (node->type == NODE_GRAPH) {
		sum->nodes.children++;
	} else if (node->type == NODE_CONDITIONAL) {
		sum->nodes.conditionals++;
	} else if (node->type != NODE_UNREAD) {
		sum->nodes.others++;
	}
}

static void publish(struct tfh_self *self, uint16_t fn, CUgraphExec exec, uint32_t version,
		    const struct graph_totals *t)
{
	uint32_t id = tfh_handle_known(self, TFT_NAME_GRAPH, U64(exec));

	if (!id)
		id = tfh_handle_new(self, TFT_NAME_GRAPH, U64(exec), 0, NULL, 0);
	struct tfh_rec *rec = tfh_reserve(self, 2);
	if (!rec)
		return;
	uint64_t now = tfh_record_time(self);
	struct tfh_rec *part = tfh_reserved(self, 1);
	tfh_fill(self, rec, 0, fn, TFT_GRAPH, now, now);
	tfh_fill(self, part, 1, 0, TFT_EXT, now, now);
	rec->stream = id;
	rec->ctx = version;
	rec->flags = TFT_F_EXT;
	memcpy(rec->w, t->bytes, sizeof(rec->w));
	part->result = sizeof(t->nodes);
	memcpy((char *)part + offsetof(struct tfh_rec, stream), &t->nodes, sizeof(t->nodes));
	tfh_publish(self, 2);
}

/* Whether the parameters of these nodes do not affect the totals. A change or an update can change
 * only parameters: the driver accepts only the same nodes. XLA changes each child graph before each
 * launch, and asking the driver for the nodes takes 14 us (H200). */
static bool by_shape(const struct node *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (v[i].type == NODE_COPY || v[i].type == NODE_UNREAD)
			return false;
	return n > 0;
}

/* Recomputes the totals. True if they changed and got a new version. */
static bool recount(struct graph *g, struct graph_totals *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (uint32_t i = 0; i < g->nodes.n; i++)
		add_node(sum, &g->nodes.v[i]);
	sum->nodes.incomplete = g->nodes.incomplete;
	if (g->version && !memcmp(sum, &g->totals, sizeof(*sum)))
		return false;
	g->totals = *sum;
	__atomic_store_n(&g->version, __atomic_add_fetch(&versions, 1, __ATOMIC_RELAXED),
			 __ATOMIC_RELEASE);
	return true;
}

static void finish_change(struct tfh_self *self, uint16_t fn, struct graph *g)
{
	struct graph_totals sum;
	bool changed = recount(g, &sum);
	uint32_t version = g->version;
	CUgraphExec exec = (CUgraphExec)(uintptr_t)g->exec;

	tfh_unlock(&lock);
	if (changed)
		publish(self, fn, exec, version, &sum);
}

/* After an update, the program goes on using the node handles of the instantiation. */
static void keep_handles(const struct nodes *before, struct nodes *after)
{
	bool same = before->n == after->n;

	for (uint32_t i = 0; same && i < after->n; i++)
		same = before->v[i].type == after->v[i].type;
	for (uint32_t i = 0; same && i < after->n; i++) {
		after->v[i].handle = before->v[i].handle;
		after->v[i].off = before->v[i].off;
	}
}

/* Whether an update of this executable cannot change its totals. */
static bool counted_by_shape(CUgraphExec exec)
{
	if (!tfh_lock(&lock))
		return false;
	struct graph *g = find(exec);
	bool same = g && g->version && !g->nodes.incomplete && by_shape(g->nodes.v, g->nodes.n);

	tfh_unlock(&lock);
	return same;
}

void tfh_graph_totals(struct tfh_self *self, uint16_t fn, CUgraphExec exec, CUgraph graph,
		      bool update)
{
	struct nodes list;

	if (update && counted_by_shape(exec))
		return;
	read_nodes(&list, graph, 0);
	bool locked = tfh_lock(&lock);
	struct graph *g = locked ? place_of(exec) : NULL;
	if (!g) {
		if (locked)
			tfh_unlock(&lock);
		release(&list); /* no version: unknown */
		return;
	}
	if (update)
		keep_handles(&g->nodes, &list);
	release(&g->nodes);
	g->nodes = list;
	finish_change(self, fn, g);
}

void tfh_graph_gone(CUgraphExec exec)
{
	struct graph *g;

	if (!find(exec) || !tfh_lock(&lock))
		return;
	g = find(exec);
	if (g) {
		release(&g->nodes);
		leave_place(g);
	}
	tfh_unlock(&lock);
}

/* ---- changes of an executable graph ---- */

/* The executable's entry and the node, with the lock held; NULL, without the lock, if there is
 * nothing to change. */
static struct graph *begin_node(CUgraphExec exec, CUgraphNode handle, struct node **node)
{
	struct graph *g = find(exec);

	*node = NULL;
	if (!g || !g->version)
		return NULL;
	if (!tfh_lock(&lock)) {
		__atomic_store_n(&g->version, 0, __ATOMIC_RELEASE);
		return NULL;
	}
	if (g->exec != U64(exec)) { /* destroyed meanwhile */
		tfh_unlock(&lock);
		return NULL;
	}
	uint32_t n = g->nodes.n, at = g->next < n ? g->next : 0;
	for (uint32_t i = 0; i < n && !*node; i++, at = at + 1 < n ? at + 1 : 0)
		if (g->nodes.v[at].handle == U64(handle))
			*node = &g->nodes.v[at];
	g->next = at;
	if (!*node)
		g->nodes.incomplete = 1; /* of a graph not seen here */
	return g;
}

void tfh_graph_copy_changed(struct tfh_self *self, uint16_t fn, CUgraphExec exec,
			    CUgraphNode handle, const CUDA_MEMCPY3D *copy)
{
	struct node fresh = {0}, *node;

	read_copy(&fresh, copy);
	struct graph *g = begin_node(exec, handle, &node);
	if (!g)
		return;
	if (node) {
		node->bytes = fresh.bytes;
		node->way = fresh.way;
	}
	finish_change(self, fn, g);
}

void tfh_graph_child_changed(struct tfh_self *self, uint16_t fn, CUgraphExec exec,
			     CUgraphNode handle, CUgraph child)
{
	struct nodes list;
	struct node *node;
	struct graph *g = begin_node(exec, handle, &node);

	if (!g)
		return;
	bool same = node && by_shape(node + 1, node->inner);
	tfh_unlock(&lock);
	if (same)
		return;
	read_nodes(&list, child, 1);
	g = begin_node(exec, handle, &node);
	if (g) {
		struct nodes inner = {node ? node + 1 : NULL, node ? node->inner : 0, 0, 0};
		keep_handles(&inner, &list);
		if (node && node->inner == list.n && list.n)
			memcpy(node + 1, list.v, list.n * sizeof(*list.v));
		else if (node && node->inner != list.n)
			g->nodes.incomplete = 1; /* the driver accepts only the same shape */
		g->nodes.incomplete |= list.incomplete;
		finish_change(self, fn, g);
	}
	release(&list);
}

void tfh_graph_node_changed(struct tfh_self *self, uint16_t fn, CUgraphExec exec,
			    CUgraphNode handle, const CUgraphNodeParams *params)
{
	if (params->type == NODE_COPY)
		tfh_graph_copy_changed(self, fn, exec, handle, &params->of.copy.params);
	else if (params->type == NODE_GRAPH)
		tfh_graph_child_changed(self, fn, exec, handle, params->of.graph);
}

void tfh_graph_node_switched(struct tfh_self *self, uint16_t fn, CUgraphExec exec,
			     CUgraphNode handle, bool on)
{
	struct node *node;
	struct graph *g = begin_node(exec, handle, &node);

	if (!g)
		return;
	if (node)
		node->off = !on;
	finish_change(self, fn, g);
}
