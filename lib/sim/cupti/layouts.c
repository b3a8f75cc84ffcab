/*
 * Records in CUPTI's layouts. Each generation appends fields to the records of the previous one, so
 * one layout with a size for each version describes them all; tests/sim/cupti.c reads them with the
 * structures of CUPTI's headers.
 */
#include "sim/cupti/sim_cupti.h"

#include <string.h>

struct kernel { /* CUpti_ActivityKernel4 (144 bytes) to Kernel10 */
	uint32_t kind;
	uint8_t cache, shared_config;
	uint16_t registers;
	uint32_t partition_wanted, partition;
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	int32_t grid[3], block[3], static_shared, dynamic_shared;
	uint32_t local_thread, local, correlation;
	int64_t grid_id;
	const char *name;
	void *reserved;
	uint64_t queued, submitted;
	uint8_t launch_type, carveout_requested, carveout, pad;
	uint32_t shared_executed;
	uint64_t node;
	uint32_t shared_limit, graph;
	void *access_policy;
	uint32_t channel, channel_type;
	uint32_t cluster[3], cluster_policy;
	uint64_t local_total;
	uint32_t max_cluster, active_clusters;
	uint8_t device_launched, pad3[7];
};

struct copy { /* CUpti_ActivityMemcpy (64) to Memcpy6 */
	uint32_t kind;
	uint8_t copy_kind, src, dst, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation, runtime_correlation, pad;
	void *reserved;
	uint64_t node;
	uint32_t graph, channel, channel_type;
	uint8_t device_launched, pad2[3];
	uint64_t count;
};

struct peer { /* CUpti_ActivityMemcpyPtoP (72) to MemcpyPtoP4 */
	uint32_t kind;
	uint8_t copy_kind, src, dst, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, src_device, src_context, dst_device, dst_context,
		correlation;
	void *reserved;
	uint64_t node;
	uint32_t graph, channel, channel_type, pad;
};

struct set { /* CUpti_ActivityMemset (64) to Memset4 */
	uint32_t kind, value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
	uint16_t flags, memory;
	uint32_t pad;
	void *reserved;
	uint64_t node;
	uint32_t graph, channel, channel_type;
	uint8_t device_launched, pad2[3];
};

struct api { /* CUpti_ActivityAPI */
	uint32_t kind, cbid;
	uint64_t start, end;
	uint32_t process, thread, correlation, result;
};

struct overhead { /* CUpti_ActivityOverhead (40) to Overhead3 */
	uint32_t kind, what, object, process, thread, unused;
	uint64_t start, end;
	uint32_t correlation, reserved;
	void *data;
};

struct sync { /* CUpti_ActivitySynchronization (40), Synchronization2 */
	uint32_t kind, type;
	uint64_t start, end;
	uint32_t correlation, context, stream, event;
	uint64_t event_sync;
	uint32_t result, pad;
};

struct graph_record { /* CUpti_ActivityGraphTrace (48), GraphTrace2 */
	uint32_t kind, correlation;
	uint64_t start, end;
	uint32_t device, graph, context, stream;
	void *reserved;
	uint32_t end_device, end_context;
};

struct external { /* CUpti_ActivityExternalCorrelation */
	uint32_t kind, external_kind;
	uint64_t id;
	uint32_t correlation, reserved;
};

/* Size of the records of each kind from a version of the interface on. */
static const struct {
	enum sim_cupti_kind kind;
	uint32_t version;
	size_t size;
} sizes[] = {
	{KIND_CONCURRENT_KERNEL, 130000, 216},
	{KIND_CONCURRENT_KERNEL, 19, 208},
	{KIND_CONCURRENT_KERNEL, 18, 200},
	{KIND_CONCURRENT_KERNEL, 17, 176},
	{KIND_CONCURRENT_KERNEL, 15, 168},
	{KIND_CONCURRENT_KERNEL, 13, 160},
	{KIND_CONCURRENT_KERNEL, 0, 144},
	{KIND_MEMCPY, 26, 96},
	{KIND_MEMCPY, 17, 88},
	{KIND_MEMCPY, 14, 80},
	{KIND_MEMCPY, 13, 72},
	{KIND_MEMCPY, 0, 64},
	{KIND_MEMCPY2, 17, 96},
	{KIND_MEMCPY2, 14, 88},
	{KIND_MEMCPY2, 13, 80},
	{KIND_MEMCPY2, 0, 72},
	{KIND_MEMSET, 17, 88},
	{KIND_MEMSET, 14, 80},
	{KIND_MEMSET, 13, 72},
	{KIND_MEMSET, 0, 64},
	{KIND_OVERHEAD, 26, 56},
	{KIND_OVERHEAD, 20, 48},
	{KIND_OVERHEAD, 0, 40},
	{KIND_SYNCHRONIZATION, 26, 56},
	{KIND_SYNCHRONIZATION, 0, 40},
	{KIND_GRAPH_TRACE, 26, 56},
	{KIND_GRAPH_TRACE, 0, 48},
	{KIND_DRIVER, 0, 40},
	{KIND_EXTERNAL_CORRELATION, 0, 24},
};

size_t sim_record_size(enum sim_cupti_kind kind)
{
	uint32_t version = sim_cupti_version();
	if (kind == KIND_KERNEL)
		kind = KIND_CONCURRENT_KERNEL;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (sizes[i].kind == kind && version >= sizes[i].version)
			return sizes[i].size;
	return 0;
}

static uint32_t channel_of(const struct sim_tools_op *op)
{
	return op->kind == SIM_TOOLS_COPY ? 9 + (uint32_t)op->copy.dir : 8;
}

/* CUPTI's ids of graph nodes are valid inside graphs only. */
static uint64_t node_of(const struct sim_tools_op *op)
{
	return op->graph ? op->node : 0;
}

/* Fields that the records of several kinds of ops have. */
#define OP_FIELDS(op)                                                                              \
	.device = (op)->device, .context = (op)->context, .stream = (op)->stream,                  \
	.correlation = (op)->correlation, .node = node_of(op), .graph = (op)->graph,               \
	.channel = channel_of(op)
#define OP_TIMES(op) .start = sim_cupti_time((op)->start), .end = sim_cupti_time((op)->end)
#define COPY_FIELDS(op)                                                                            \
	.copy_kind = copy_kinds[(op)->copy.dir], .src = (uint8_t)(op)->copy.src,                   \
	.dst = (uint8_t)(op)->copy.dst, .flags = (op)->async, .bytes = (op)->copy.bytes

static void encode_kernel(const struct sim_record *r, struct kernel *k)
{
	const struct sim_tools_op *op = &r->op;
	bool broken = sim_cupti_clock_broken();
	*k = (struct kernel){
		.registers = 32,
		.start = broken ? 0 : sim_cupti_time(op->start),
		.end = broken ? 0 : sim_cupti_time(op->end),
		OP_FIELDS(op),
		.dynamic_shared = (int32_t)op->kernel.shared,
		.grid_id = op->correlation,
		.name = op->kernel.name,
		.channel_type = 1,
	};
	k->completed = k->end;
	for (int i = 0; i < 3; i++) {
		k->grid[i] = (int32_t)op->kernel.grid[i];
		k->block[i] = (int32_t)op->kernel.block[i];
	}
}

/* sim_dir -> CUpti_ActivityMemcpyKind */
static const uint8_t copy_kinds[] = {1, 2, 8, 10, 9};

static void encode_copy(const struct sim_record *r, struct copy *c)
{
	const struct sim_tools_op *op = &r->op;
	*c = (struct copy){
		COPY_FIELDS(op), OP_TIMES(op), OP_FIELDS(op), .channel_type = 2, .count = 1,
	};
}

static void encode_peer(const struct sim_record *r, struct peer *p)
{
	const struct sim_tools_op *op = &r->op;
	*p = (struct peer){
		COPY_FIELDS(op),
		OP_TIMES(op),
		OP_FIELDS(op),
		.src_device = op->copy.src_device,
		.src_context = op->context,
		.dst_device = op->copy.dst_device,
		.dst_context = op->context,
		.channel_type = 2,
	};
}

static void encode_set(const struct sim_record *r, struct set *s)
{
	const struct sim_tools_op *op = &r->op;
	*s = (struct set){
		.value = op->set.value,
		.bytes = op->set.bytes,
		OP_TIMES(op),
		OP_FIELDS(op),
		.flags = op->async,
		.memory = (uint16_t)op->set.mem,
		.channel_type = 1,
	};
}

static void encode_graph(const struct sim_record *r, struct graph_record *g)
{
	const struct sim_tools_op *op = &r->op;
	*g = (struct graph_record){
		.correlation = op->correlation,
		.start = sim_cupti_time(op->start),
		.end = sim_cupti_time(op->end),
		.device = op->device,
		.graph = op->graph,
		.context = op->context,
		.stream = op->stream,
		.end_device = op->device,
		.end_context = op->context,
	};
}

void sim_record_encode(const struct sim_record *r, unsigned char *out)
{
	union {
		uint32_t kind;
		struct kernel kernel;
		struct copy copy;
		struct peer peer;
		struct set set;
		struct api api;
		struct overhead overhead;
		struct sync sync;
		struct graph_record graph;
		struct external external;
	} u;
	uint32_t pid = sim_cupti_pid();
	memset(&u, 0, sizeof(u));
	switch (r->kind) {
	case KIND_KERNEL:
	case KIND_CONCURRENT_KERNEL:
		encode_kernel(r, &u.kernel);
		break;
	case KIND_MEMCPY:
		encode_copy(r, &u.copy);
		break;
	case KIND_MEMCPY2:
		encode_peer(r, &u.peer);
		break;
	case KIND_MEMSET:
		encode_set(r, &u.set);
		break;
	case KIND_GRAPH_TRACE:
		encode_graph(r, &u.graph);
		break;
	case KIND_OVERHEAD:
		u.overhead = (struct overhead){.what = r->host.id,
					       .object = 2, /* object kind: a thread */
					       .process = pid,
					       .thread = r->host.thread,
					       .start = r->host.start,
					       .end = r->host.end,
					       .correlation = r->host.correlation};
		break;
	case KIND_SYNCHRONIZATION:
		u.sync = (struct sync){.type = r->host.id,
				       .start = r->host.start,
				       .end = r->host.end,
				       .correlation = r->host.correlation,
				       .context = r->host.context,
				       .stream = r->host.stream,
				       .event = UINT32_MAX,
				       .result = r->host.result};
		break;
	case KIND_EXTERNAL_CORRELATION:
		u.external = (struct external){.external_kind = r->host.id,
					       .id = r->host.external,
					       .correlation = r->host.correlation};
		break;
	default:
		u.api = (struct api){.cbid = r->host.id,
				     .start = r->host.start,
				     .end = r->host.end,
				     .process = pid,
				     .thread = r->host.thread,
				     .correlation = r->host.correlation,
				     .result = r->host.result};
	}
	u.kind = r->kind;
	memcpy(out, &u, sim_record_size(r->kind));
}

CUPTI_API(cuptiActivityGetNextRecord, (unsigned char *buffer, size_t valid, void **record),
	  (buffer, valid, record))
{
	uint32_t kind;
	if (!buffer || !record)
		return CUPTI_ERROR_INVALID_PARAMETER;
	size_t at = 0;
	if (*record) {
		memcpy(&kind, *record, sizeof(kind));
		size_t size = sim_record_size(kind);
		if (!size)
			return CUPTI_ERROR_INVALID_KIND;
		at = (size_t)((unsigned char *)*record - buffer) + size;
	}
	if (at + sizeof(kind) > valid)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	memcpy(&kind, buffer + at, sizeof(kind));
	if (!sim_record_size(kind))
		return CUPTI_ERROR_INVALID_KIND;
	if (at + sim_record_size(kind) > valid)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	*record = buffer + at;
	return CUPTI_SUCCESS;
}
