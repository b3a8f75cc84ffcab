/* Serves a tracing library; see tools.h. */
#include "sim/gpu/tools.h"

#include "sim/gpu/objects.h"

#include <stdlib.h>
#include <string.h>

enum { NESTING = 8 };

bool sim_tools_on;
static const struct sim_tools_client *client;
static struct sim_tools_op pending = {.next = &pending, .prev = &pending};
/* Calls nest when a client's callback calls the driver. */
static __thread struct sim_tools_call calls[NESTING];
static __thread int depth;

static const struct sim_tools_client *listener(void)
{
	return __atomic_load_n(&client, __ATOMIC_ACQUIRE);
}

static void attach(const struct sim_tools_client *c)
{
	__atomic_store_n(&client, c, __ATOMIC_RELEASE);
	__atomic_store_n(&sim_tools_on, c != NULL, __ATOMIC_RELEASE);
}

void sim_tools_enter(struct sim_call *c)
{
	const struct sim_tools_client *l = listener();
	if (!l || depth == NESTING)
		return;
	struct sim_ctx *ctx = sim_ctx_current();
	c->tool = &calls[depth++];
	*c->tool = (struct sim_tools_call){.name = c->name, .correlation = (uint32_t)c->no};
	c->tool->context = ctx;
	c->tool->context_id = ctx ? (uint32_t)ctx->id : 0;
	l->enter(c->tool);
}

void sim_tools_leave(struct sim_call *c, CUresult r)
{
	const struct sim_tools_client *l = listener();
	if (!c->tool)
		return;
	c->tool->stream = (uint32_t)c->stream;
	c->tool->kernel = c->kernel;
	c->tool->result = r;
	if (l)
		l->leave(c->tool);
	depth--;
}

static enum sim_tools_mem place(const void *p, uint32_t *device)
{
	struct sim_range r;
	*device = 0;
	if (!sim_mem_find(p, &r))
		return SIM_TOOLS_PAGEABLE;
	*device = r.dev ? (uint32_t)r.dev->index : 0;
	return r.kind == SIM_M_DEVICE	 ? SIM_TOOLS_DEVICE
	       : r.kind == SIM_M_MANAGED ? SIM_TOOLS_MANAGED
					 : SIM_TOOLS_PINNED;
}

static void describe(struct sim_tools_op *t, const struct sim_work *w)
{
	uint32_t unused;
	switch (w->kind) {
	case SIM_K_KERNEL:
		t->kind = SIM_TOOLS_KERNEL;
		t->kernel.name = w->launch.func->name;
		memcpy(t->kernel.grid, w->launch.grid, sizeof(t->kernel.grid));
		memcpy(t->kernel.block, w->launch.block, sizeof(t->kernel.block));
		t->kernel.shared = w->launch.shared;
		break;
	case SIM_K_COPY:
		t->kind = SIM_TOOLS_COPY;
		t->copy.bytes = sim_copy_bytes(&w->copy);
		t->copy.dir = w->copy.dir;
		t->copy.src = w->copy.staged ? SIM_TOOLS_PAGEABLE
					     : place(w->copy.src, &t->copy.src_device);
		t->copy.dst = place(w->copy.dst, &t->copy.dst_device);
		break;
	case SIM_K_MEMSET:
		t->kind = SIM_TOOLS_MEMSET;
		t->set.bytes = (uint64_t)w->set.width * w->set.height * w->set.elem;
		t->set.value = w->set.value;
		t->set.mem = place(w->set.dst, &unused);
		break;
	default:
		t->kind = SIM_TOOLS_GRAPH;
	}
}

void sim_tools_issue(struct sim_op *op)
{
	const struct sim_work *w = &op->work;
	bool whole = op->graph && op->node == SIM_NODE_ALL;
	if (w->kind != SIM_K_KERNEL && w->kind != SIM_K_COPY && w->kind != SIM_K_MEMSET && !whole)
		return;
	struct sim_tools_op *t = calloc(1, sizeof(*t));
	const struct sim_ctx *ctx = op->stream		      ? op->stream->ctx
				    : w->kind == SIM_K_KERNEL ? w->launch.ctx
							      : sim_ctx_current();
	describe(t, w);
	t->device = w->dev ? (uint32_t)w->dev->index : 0;
	t->context = ctx ? (uint32_t)ctx->id : 0;
	t->stream = (uint32_t)op->stream_id;
	t->correlation = (uint32_t)op->call;
	t->graph = op->graph;
	t->node = op->node;
	t->issued = sim_now();
	t->async = op->graph || (depth && strstr(calls[depth - 1].name, "Async"));
	t->op = op;
	op->tool = t;
	t->next = &pending;
	t->prev = pending.prev;
	t->prev->next = t->next->prev = t;
}

void sim_tools_done(struct sim_op *op)
{
	const struct sim_tools_client *l = listener();
	struct sim_tools_op *t = op->tool;
	op->tool = NULL;
	t->next->prev = t->prev;
	t->prev->next = t->next;
	t->start = op->start;
	t->end = op->end;
	if (l && !t->taken)
		l->done(t);
	free(t);
}

static void take_pending(void (*each)(const struct sim_tools_op *op))
{
	pthread_mutex_lock(&sim_mu);
	for (struct sim_tools_op *t = pending.next; t != &pending; t = t->next) {
		if (t->taken || t->kind == SIM_TOOLS_GRAPH)
			continue;
		t->taken = true;
		t->start = __atomic_load_n(&t->op->start, __ATOMIC_RELAXED);
		each(t);
	}
	pthread_mutex_unlock(&sim_mu);
}

static void take_memory(uint32_t device, size_t bytes)
{
	(void)sim_mem_charge(&sim_dev[device], bytes); /* none left: nothing is taken */
}

static uint32_t context_id(CUcontext ctx)
{
	if (!ctx)
		ctx = sim_ctx_current();
	return ctx && ctx->magic == SIM_MAGIC_CTX ? (uint32_t)ctx->id : 0;
}

static uint32_t device_of(CUcontext ctx)
{
	if (!ctx)
		ctx = sim_ctx_current();
	return ctx && ctx->magic == SIM_MAGIC_CTX ? (uint32_t)ctx->dev->index : 0;
}

static uint32_t stream_id(CUcontext ctx, CUstream s, bool per_thread)
{
	struct sim_call c = {.per_thread = per_thread};
	struct sim_stream *found;
	(void)ctx;
	return sim_stream_get(&c, s, &found) ? 0 : (uint32_t)c.stream;
}

static uint32_t graph_id(CUgraph g)
{
	return g && g->magic == SIM_MAGIC_GRAPH ? g->id : 0;
}

static uint64_t node_id(CUgraphNode n)
{
	return n && n->magic == SIM_MAGIC_NODE ? (uint64_t)graph_id(n->graph) << 32 | n->index : 0;
}

static uint64_t now(void)
{
	return sim_now();
}

static bool counters(int device, struct sim_tools_counters *out, uint64_t *total_memory)
{
	if (!sim_is_device(device))
		return false;
	const struct sim_device *d = &sim_dev[device];
	*out = (struct sim_tools_counters){__atomic_load_n(&d->kernel_ns, __ATOMIC_RELAXED),
					   __atomic_load_n(&d->copy_ns, __ATOMIC_RELAXED),
					   __atomic_load_n(&d->received, __ATOMIC_RELAXED),
					   __atomic_load_n(&d->sent, __ATOMIC_RELAXED),
					   __atomic_load_n(&d->used, __ATOMIC_RELAXED)};
	*total_memory = sim_cfg.total_memory;
	return true;
}

static enum sim_state state(void)
{
	return sim_state;
}

const struct sim_tools_table sim_tools_table = {
	.size = sizeof(sim_tools_table),
	.version = SIM_TOOLS_VERSION,
	.config = &sim_cfg.cupti,
	.nvml = &sim_cfg.nvml,
	.attach = attach,
	.take_memory = take_memory,
	.take_pending = take_pending,
	.injected = sim_injected,
	.context_id = context_id,
	.device_of = device_of,
	.stream_id = stream_id,
	.graph_id = graph_id,
	.exec_id = sim_exec_id,
	.node_id = node_id,
	.new_id = sim_new_id,
	.state = state,
	.counters = counters,
	.now = now,
};
