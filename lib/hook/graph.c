/*
 * Executable graphs: how many kernels and bytes one launch stands for.
 *
 * The nodes of the graph that an executable is made from are walked once, at instantiation or
 * update. A launch then cites the graph and its version; the totals of a version are in a GRAPH
 * record.
 */
#include "hook/note.h"

#include <string.h>
#include <sys/mman.h>

/* Frameworks keep tens of graphs, vLLM some hundreds. */
#define SLOTS 4096u

struct totals {
	uint64_t bytes[3]; /* H2D, D2H, within devices */
	struct tft_ext_graph nodes;
};

struct graph {
	uint64_t exec;
	uint32_t version; /* 0: not known */
	struct totals totals;
};

static struct graph *graphs;
static int busy; /* one writer at a time; whoever finds it taken goes without totals */

static struct graph *find(CUgraphExec exec, bool fresh)
{
	struct graph *t = __atomic_load_n(&graphs, __ATOMIC_ACQUIRE);
	uint32_t at = (uint32_t)((U64(exec) >> 4) * 0x9e3779b1u) % SLOTS;

	if (!t && fresh) {
		t = mmap(NULL, SLOTS * sizeof(*t), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (t == MAP_FAILED)
			return NULL;
		__atomic_store_n(&graphs, t, __ATOMIC_RELEASE);
	}
	for (uint32_t i = 0; t && i < 64; i++, at = (at + 1) % SLOTS) {
		uint64_t there = __atomic_load_n(&t[at].exec, __ATOMIC_ACQUIRE);
		if (there == U64(exec) || (fresh && !there))
			return &t[at];
		if (!there)
			break;
	}
	return NULL;
}

void tfh_graph_words(CUgraphExec exec, uint64_t word[2])
{
	struct graph *g = exec ? find(exec, false) : NULL;

	word[0] = g ? __atomic_load_n(&g->version, __ATOMIC_ACQUIRE) : 0;
	word[1] = word[0] ? g->totals.nodes.kernels : 0;
}

/* ---- walking ---- */

enum {
	NODE_KERNEL = 0,
	NODE_COPY = 1,
	NODE_SET = 2,
	NODE_HOST = 3,
	NODE_GRAPH = 4,
	NODE_CONDITIONAL = 13
};
#define CHILD_DEPTH 8

static bool on_host(int type, CUdeviceptr address)
{
	tfh_ask_POINTER ask = TFH_ASK(POINTER);
	unsigned kind = 0;

	if (type != TFH_MEMORY_UNIFIED)
		return type == TFH_MEMORY_HOST;
	/* CU_POINTER_ATTRIBUTE_MEMORY_TYPE; memory that the driver does not know is the host's */
	return !ask || ask(&kind, 2, address) || kind == TFH_MEMORY_HOST;
}

static bool add_copy(struct totals *sum, CUgraphNode node)
{
	tfh_ask_NODE_COPY ask = TFH_ASK(NODE_COPY);
	CUDA_MEMCPY3D copy;

	memset(&copy, 0, sizeof(copy));
	if (!ask || ask(node, &copy))
		return false;
	bool from_host = on_host(copy.src.type, copy.src.device);
	bool to_host = on_host(copy.dst.type, copy.dst.device);
	uint64_t bytes = (uint64_t)copy.width * copy.height * copy.depth;
	if (from_host && !to_host)
		sum->bytes[0] += bytes;
	else if (to_host && !from_host)
		sum->bytes[1] += bytes;
	else if (!from_host)
		sum->bytes[2] += bytes;
	return true;
}

static void walk(struct totals *sum, CUgraph graph, int depth);

static void add_node(struct totals *sum, CUgraphNode node, int depth)
{
	tfh_ask_NODE_TYPE ask_type = TFH_ASK(NODE_TYPE);
	tfh_ask_NODE_CHILD ask_child = TFH_ASK(NODE_CHILD);
	CUgraph child = NULL;
	int type = -1;

	if (!ask_type || ask_type(node, &type)) {
		sum->nodes.incomplete = 1;
	} else if (type == NODE_KERNEL) {
		sum->nodes.kernels++;
	} else if (type == NODE_COPY) {
		sum->nodes.copies++;
		if (!add_copy(sum, node))
			sum->nodes.incomplete = 1;
	} else if (type == NODE_SET) {
		sum->nodes.memsets++;
	} else if (type == NODE_HOST) {
		sum->nodes.hosts++;
	} else if (type == NODE_GRAPH) {
		sum->nodes.children++;
		if (ask_child && !ask_child(node, &child) && child)
			walk(sum, child, depth + 1);
		else
			sum->nodes.incomplete = 1;
	} else if (type == NODE_CONDITIONAL) {
		sum->nodes.conditionals++;
	} else {
		sum->nodes.others++;
	}
}

static void walk(struct totals *sum, CUgraph graph, int depth)
{
	tfh_ask_GRAPH_NODES ask = TFH_ASK(GRAPH_NODES);
	size_t count = 0;

	if (!ask || depth > CHILD_DEPTH || ask(graph, NULL, &count)) {
		sum->nodes.incomplete = 1;
		return;
	}
	if (!count)
		return;
	/* Not malloc: the job's allocator may be in any state here. */
	size_t size = count * sizeof(CUgraphNode);
	CUgraphNode *nodes =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (nodes == MAP_FAILED || ask(graph, nodes, &count)) {
		sum->nodes.incomplete = 1;
		count = 0;
	}
	for (size_t i = 0; i < count && i < size / sizeof(*nodes); i++)
		add_node(sum, nodes[i], depth);
	if (nodes != MAP_FAILED)
		munmap(nodes, size);
}

/* ---- records ---- */

static void publish(struct tfh_self *self, uint16_t fn, CUgraphExec exec, uint32_t version,
		    const struct totals *t)
{
	uint32_t id = tfh_handle_known(self, TFT_NAME_GRAPH, U64(exec));

	if (!id)
		id = tfh_handle_new(self, TFT_NAME_GRAPH, U64(exec), 0, NULL, 0);
	struct tfh_rec *rec = tfh_reserve(self, 2);
	if (!rec)
		return;
	uint64_t now = tfh_ticks();
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

/* Stores a new version of an executable graph; its number, or 0 when the table has no room now. */
static uint32_t keep(CUgraphExec exec, const struct totals *sum)
{
	uint32_t version = 0;

	if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
		return 0;
	struct graph *g = find(exec, true);
	if (g) {
		version = g->version + 1;
		g->totals = *sum;
		__atomic_store_n(&g->version, version, __ATOMIC_RELEASE);
		__atomic_store_n(&g->exec, U64(exec), __ATOMIC_RELEASE);
	}
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
	return version;
}

void tfh_graph_totals(struct tfh_self *self, uint16_t fn, CUgraphExec exec, CUgraph graph)
{
	tfh_ask_CAPTURE_MODE exchange = TFH_ASK(CAPTURE_MODE);
	struct totals sum;
	int mode = 2; /* relaxed: our questions must not break a capture elsewhere */

	memset(&sum, 0, sizeof(sum));
	bool exchanged = exchange && !exchange(&mode);
	walk(&sum, graph, 0);
	if (exchanged)
		exchange(&mode);
	uint32_t version = keep(exec, &sum);
	if (version)
		publish(self, fn, exec, version, &sum);
}

void tfh_graph_changed(struct tfh_self *self, uint16_t fn, CUgraphExec exec)
{
	struct graph *g = find(exec, false);

	if (!g || !g->version || g->totals.nodes.incomplete)
		return;
	struct totals sum = g->totals;
	sum.nodes.incomplete = 1;
	uint32_t version = keep(exec, &sum);
	if (version)
		publish(self, fn, exec, version, &sum);
}
