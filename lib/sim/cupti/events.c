/* Converts the driver's events to records: calls, synchronisations, operations, graph launches. */
#include "sim/cupti/sim_cupti.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* CUpti_ActivitySynchronizationType by call; the per-thread variants end in _ptsz. */
static const struct {
	const char *name;
	uint32_t type;
} waits[] = {
	{"cuEventSynchronize", 1},
	{"cuStreamWaitEvent", 2},
	{"cuStreamSynchronize", 3},
	{"cuCtxSynchronize", 4},
};

static uint32_t wait_type(const char *name)
{
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		if (!strncmp(name, waits[i].name, strlen(waits[i].name)))
			return waits[i].type;
	return 0;
}

static void enter(struct sim_tools_call *c)
{
	sim_cupti_clock_sample();
	c->id = sim_cupti_cbid(c->name);
	if (sim_subscribed)
		sim_callbacks(c, false);
	c->start = sim_cupti_now();
}

static void leave(struct sim_tools_call *c)
{
	struct sim_record r = {.kind = KIND_DRIVER};
	r.host.start = c->start;
	r.host.end = sim_cupti_now();
	r.host.correlation = c->correlation;
	r.host.thread = sim_thread_id();
	r.host.result = c->result;
	r.host.context = c->context_id;
	r.host.stream = c->stream ? c->stream : UINT32_MAX;
	if (sim_subscribed)
		sim_callbacks(c, true);
	uint32_t type = sim_kind_on(KIND_SYNCHRONIZATION) ? wait_type(c->name) : 0;
	if (sim_api_on(c->id)) {
		sim_external_add(c->correlation);
		r.host.id = (uint32_t)c->id;
		sim_buffers_add_mine(&r);
	}
	if (type) {
		r.kind = KIND_SYNCHRONIZATION;
		r.host.id = type;
		sim_buffers_add_mine(&r);
	}
	sim_buffers_pump();
}

/* Interns a name, since records hold its address. Called with the driver's lock. */
static const char *keep_name(const char *name)
{
	static char **slots;
	static size_t n, size;
	if (2 * n >= size) {
		size_t bigger = size ? size * 2 : 256;
		char **s = calloc(bigger, sizeof(*s));
		for (size_t i = 0; i < size; i++) {
			if (!slots[i])
				continue;
			size_t h = 5381;
			for (const char *p = slots[i]; *p; p++)
				h = h * 33 + (unsigned char)*p;
			while (s[h % bigger])
				h++;
			s[h % bigger] = slots[i];
		}
		free(slots);
		slots = s;
		size = bigger;
	}
	size_t h = 5381;
	for (const char *p = name; *p; p++)
		h = h * 33 + (unsigned char)*p;
	while (slots[h % size] && strcmp(slots[h % size], name))
		h++;
	if (!slots[h % size]) {
		slots[h % size] = strdup(name);
		n++;
	}
	return slots[h % size];
}

/* Copies between devices have a kind of record of their own. */
static enum sim_cupti_kind kind_of(const struct sim_tools_op *op)
{
	switch (op->kind) {
	case SIM_TOOLS_KERNEL:
		return sim_kind_on(KIND_KERNEL) ? KIND_KERNEL : KIND_CONCURRENT_KERNEL;
	case SIM_TOOLS_COPY:
		return op->copy.dir == SIM_P2P ? KIND_MEMCPY2 : KIND_MEMCPY;
	case SIM_TOOLS_MEMSET:
		return KIND_MEMSET;
	default:
		return KIND_GRAPH_TRACE;
	}
}

static void record(const struct sim_tools_op *op)
{
	struct sim_record r = {.kind = kind_of(op), .op = *op};
	if (!sim_kind_on(r.kind))
		return;
	if (op->kind == SIM_TOOLS_KERNEL)
		r.op.kernel.name = keep_name(op->kernel.name);
	sim_buffers_add(&r);
}

/* Launches of graphs of which some nodes have completed. Protected by the driver's lock. */
struct graph_span {
	uint32_t correlation;
	uint64_t start, end;
	struct graph_span *next;
};
static struct graph_span *spans;

static struct graph_span **span_of(uint32_t correlation)
{
	struct graph_span **at = &spans;
	while (*at && (*at)->correlation != correlation)
		at = &(*at)->next;
	return at;
}

static void widen(const struct sim_tools_op *op)
{
	struct graph_span **at = span_of(op->correlation);
	if (!*at) {
		*at = malloc(sizeof(**at));
		**at = (struct graph_span){op->correlation, op->start, op->end, NULL};
	}
	if (op->start < (*at)->start)
		(*at)->start = op->start;
	if (op->end > (*at)->end)
		(*at)->end = op->end;
}

static void finish(const struct sim_tools_op *op)
{
	struct graph_span **at = span_of(op->correlation), *s = *at;
	struct sim_tools_op whole = *op;
	if (s) {
		whole.start = s->start;
		whole.end = s->end;
		*at = s->next;
		free(s);
	}
	record(&whole);
}

static void ended(const struct sim_tools_op *op)
{
	if (op->kind == SIM_TOOLS_GRAPH) {
		finish(op);
	} else if (op->graph && sim_kind_on(KIND_GRAPH_TRACE)) {
		/* CUPTI 13.0 crashes at the next launch of such a graph (bench/GPU.md). */
		if (sim_graph_before_trace(op->graph))
			kill(getpid(), SIGSEGV); /* the engines block signals */
		widen(op);
	} else {
		if (op->graph && sim_kind_on(kind_of(op)))
			sim_cupti_driver()->take_memory(op->device, sim_cupti_config()->node_bytes);
		record(op);
	}
}

static void incomplete(const struct sim_tools_op *op)
{
	if (!op->graph || !sim_kind_on(KIND_GRAPH_TRACE))
		record(op);
}

void sim_events_forced(void)
{
	if (sim_cupti_config()->forced_incomplete)
		sim_cupti_driver()->take_pending(incomplete);
}

const struct sim_tools_client sim_events = {enter, leave, ended};
