/*
 * The rows of Nsight Systems' tables. A global id is the number of a machine, a process and a
 * thread: 16 bits, 24 and 24. Texts are numbers of rows of StringIds, or themselves. Numbers of
 * kinds are CUPTI's.
 */
#include "base/text.h"
#include "import/nsys.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "model/symbols/kernel_name.h"

#define FIRST_CALLS 1000 /* correlation ids: nsys itself takes some hundred before the first call */
#define CONTEXT_NS 10000000    /* no context is made in less; other calls take microseconds */
#define NO_STREAM 0xffffffffll /* neither a stream nor an event */

/* ---- texts, processes, threads ---- */

static int keep_text(struct tfh_nsys *n, struct tfh_map *map, uint64_t key, const char *text)
{
	uint64_t *at = tfh_map_put(map, key, NULL);
	const char *copy = tfh_arena_strndup(&n->arena, text, strnlen(text, TFH_NSYS_TEXT));

	if (!at || !copy)
		return -ENOMEM;
	*at = (uint64_t)(uintptr_t)copy;
	return 0;
}

static const char *kept_text(const struct tfh_map *map, uint64_t key)
{
	const uint64_t *at = tfh_map_get(map, key);

	return at ? (const char *)(uintptr_t)*at : NULL;
}

/* A value that is a text, or the number of one; NULL if neither. */
static const char *text_at(const struct tfh_nsys *n, const struct tfh_table_row *row, uint32_t at)
{
	const char *text = tfh_row_text(row, at);
	int64_t id = tfh_row_int(row, at, -1);

	return text ? text : id >= 0 ? kept_text(&n->text, tfh_hash_u64((uint64_t)id)) : NULL;
}

static struct tfh_nsys_process *known_process(const struct tfh_nsys *n, uint64_t id)
{
	const uint64_t *at = tfh_map_get(&n->process, tfh_hash_u64(id));

	return at ? &n->processes.v[*at - 1] : NULL;
}

/* 0, -ENOMEM, or -E2BIG. */
static int process_of(struct tfh_nsys *n, uint64_t id, struct tfh_nsys_process **out)
{
	int64_t index;
	uint64_t *at;

	*out = known_process(n, id);
	if (*out)
		return 0;
	if (n->processes.n >= TFH_IMPORT_PROCESSES)
		return -E2BIG;
	index = tfh_build_process(n->b, n->host, "", (uint32_t)id & 0xffffff, -1);
	at = tfh_map_put(&n->process, tfh_hash_u64(id), NULL);
	if (index < 0 || !at ||
	    TFH_PUSH(n->processes, (struct tfh_nsys_process){.id = id,
							     .index = (uint32_t)index,
							     .last_thread = -1,
							     .device = -1,
							     .name = "",
							     .rank = -1,
							     .world = -1}))
		return -ENOMEM;
	*at = n->processes.n;
	*out = &n->processes.v[n->processes.n - 1];
	return 0;
}

/* Index, or -ENOMEM. */
static int64_t thread_of(struct tfh_nsys *n, struct tfh_nsys_process *p, uint64_t global)
{
	uint64_t *at = tfh_map_put(&n->thread, tfh_hash_u64(global), NULL);

	if (!at)
		return -ENOMEM;
	if (*at)
		return (int64_t)*at - 1;
	if (p->threads >= TFH_IMPORT_THREADS)
		return p->last_thread;
	p->last_thread = tfh_build_thread(n->b, p->index, (uint32_t)global & 0xffffff, "");
	if (p->last_thread >= 0) {
		*at = (uint64_t)p->last_thread + 1;
		p->threads++;
	}
	return p->last_thread;
}

static uint64_t call_key(uint64_t process, int64_t correlation)
{
	return tfh_hash_add(tfh_hash_u64(process), (uint64_t)correlation);
}

/* The first two values of every table of intervals. False: impossible, or it never ended. */
static bool times(const struct tfh_table_row *row, int64_t *t0, int64_t *t1)
{
	*t0 = tfh_row_int(row, 0, INT64_MIN);
	*t1 = tfh_row_int(row, 1, INT64_MIN);
	return *t0 > -TFH_IMPORT_TIME && *t0 < TFH_IMPORT_TIME && *t1 >= *t0 &&
	       *t1 < TFH_IMPORT_TIME && *t1 - *t0 <= TFH_IMPORT_LENGTH;
}

/* ---- about the recording ---- */

static int row_text(void *arg, const struct tfh_table_row *row)
{
	struct tfh_nsys *n = arg;
	int64_t id = tfh_row_int(row, 0, -1);
	const char *text = tfh_row_text(row, 1);

	return id < 0 || !text ? 0 : keep_text(n, &n->text, tfh_hash_u64((uint64_t)id), text);
}

static int row_host(void *arg, const struct tfh_table_row *row)
{
	struct tfh_nsys *n = arg;
	const char *name = tfh_row_text(row, 0), *value = tfh_row_text(row, 1);

	if (*n->host || !name || strcmp(name, "Hostname") != 0 || !value)
		return 0;
	value = tfh_arena_strndup(&n->arena, value, strnlen(value, 255));
	n->host = value ? value : "";
	return value ? 0 : -ENOMEM;
}

static int row_session(void *arg, const struct tfh_table_row *row)
{
	struct tfh_nsys *n = arg;
	int64_t unix_ns = tfh_row_int(row, 0, 0), own_ns = tfh_row_int(row, 1, 0);

	if (unix_ns > 0 && unix_ns < TFH_IMPORT_TIME && own_ns >= 0 && own_ns < unix_ns)
		n->shift = unix_ns - own_ns;
	return 0;
}

static int row_device(void *arg, const struct tfh_table_row *row)
{
	struct tfh_nsys *n = arg;
	int64_t count = tfh_row_int(row, 0, 0);

	if (count > n->multiprocessors && count < 1 << 16)
		n->multiprocessors = (uint32_t)count;
	return 0;
}

static int row_process_name(void *arg, const struct tfh_table_row *row)
{
	struct tfh_nsys *n = arg;
	int64_t pid = tfh_row_int(row, 1, -1), rank = tfh_row_int(row, 4, -1);
	int64_t world = tfh_row_int(row, 5, -1);
	int64_t global = tfh_row_int(row, 0, pid >= 0 && pid < 1 << 24 ? pid << 24 : -1);
	const char *name = tfh_row_text(row, 2);
	struct tfh_nsys_process *p = global < 0 ? NULL : known_process(n, (uint64_t)global >> 24);

	name = name ? name : tfh_row_text(row, 3);
	if (!p || !name)
		return 0;
	p->name = tfh_arena_strndup(&n->arena, name, strnlen(name, 255));
	p->rank = rank >= 0 && rank < 1 << 24 ? (int32_t)rank : -1;
	p->world = world > 0 && world < 1 << 24 ? (int32_t)world : -1;
	return p->name ? 0 : -ENOMEM;
}

static int row_thread_name(void *arg, const struct tfh_table_row *row)
{
	struct tfh_nsys *n = arg;
	int64_t global = tfh_row_int(row, 0, -1);
	const char *name = text_at(n, row, 1);
	const uint64_t *at =
		global < 0 ? NULL : tfh_map_get(&n->thread, tfh_hash_u64((uint64_t)global));

	name = name ? name : tfh_row_text(row, 2);
	if (at && *at && name)
		tfh_build_thread_name(n->b, (uint32_t)(*at - 1), name);
	return 0;
}

/* ---- the host ---- */

/* Waits and recorded events: the call's correlation id, and which stream and event it is about. */
static int row_wait(void *arg, const struct tfh_table_row *row)
{
	struct tfh_nsys *n = arg;
	struct tfh_nsys_wait w = {.device = tfh_row_int(row, 2, -1),
				  .stream = tfh_row_int(row, 3, NO_STREAM),
				  .event = tfh_row_int(row, 4, NO_STREAM)};
	int64_t global = tfh_row_int(row, 0, -1), correlation = tfh_row_int(row, 1, 0);

	if (global < 0 || correlation <= 0)
		return 0;
	uint64_t *at = tfh_map_put(&n->wait, call_key((uint64_t)global >> 24, correlation), NULL);
	if (!at || TFH_PUSH(n->waits, w))
		return -ENOMEM;
	*at = n->waits.n;
	return 0;
}

static int row_event(void *arg, const struct tfh_table_row *row)
{
	struct tfh_nsys *n = arg;

	n->events = true;
	return row_wait(arg, row);
}

/* The name of a call without the version of its interface: cudaLaunchKernel_v7000,
 * cuLaunchKernel_ptsz. */
static const char *call_name(const char *text, char *room, size_t cap)
{
	size_t length = strnlen(text, cap - 1);

	memcpy(room, text, length);
	room[length] = '\0';
	char *at = strrchr(room, '_');
	if (at && tfh_starts_with(room, "cuda") && at[1] == 'v' && at[2] &&
	    strspn(at + 2, "0123456789") == strlen(at + 2))
		*at = '\0';
	if (at && tfh_starts_with(room, "cu") && (!strcmp(at, "_ptsz") || !strcmp(at, "_ptds")))
		*at = '\0';
	return room;
}

/* Sets what the tables of waits say about a call. Their own kinds of waits changed between
 * versions, so the call's name decides what it waits for. */
static void add_wait(const struct tfh_nsys *n, struct tfh_nsys_process *p, int64_t correlation,
		     struct tfh_event *ev)
{
	uint8_t family = ev->fn->family;
	bool sync = family == TFH_FAM_SYNC,
	     both = family == TFH_FAM_EVENT || family == TFH_FAM_STREAM_WAIT;
	const uint64_t *at = correlation > 0 && (sync || both)
				     ? tfh_map_get(&n->wait, call_key(p->id, correlation))
				     : NULL;
	bool for_event = sync && strstr(ev->fn->name, "Event");

	if (!at)
		return;
	const struct tfh_nsys_wait *w = &n->waits.v[*at - 1];
	if (!for_event && w->stream >= 0 && w->stream != NO_STREAM)
		ev->stream = tfh_import_stream(&p->device, w->device >= 0 ? w->device : p->device,
					       w->stream);
	if ((both || for_event) && n->events && w->event >= 0 && w->event != NO_STREAM)
		ev->w[0] = (uint64_t)w->event + 1;
}

/* CUDA's runtime creates a context, which takes from 30 ms to seconds, in the first call that needs
 * one (which calls do depends on the version); programs that call the driver leave much of that to
 * their first call, too. So the first call, if it is an allocation (or a free: `cudaFree(0)`), does
 * not count as allocating. Nor do calls that take as long as creating a context, before the first
 * one that allocates or gives the device work: nothing else makes them slow. The very first call
 * may be a copy or a memset, which then takes that long only because of the context. */
static int note_first(struct tfh_nsys *n, struct tfh_nsys_process *p, int64_t correlation,
		      const char *name, struct tfh_event *ev)
{
	uint8_t family = ev->fn ? ev->fn->family : TFH_FAM_NONE;
	bool from_start = correlation > 0 && correlation < FIRST_CALLS;
	bool allocates = family == TFH_FAM_ALLOC || family == TFH_FAM_FREE;
	bool runtime = tfh_starts_with(name, "cuda") && family != TFH_FAM_LOOKUP;
	bool copies = family == TFH_FAM_COPY || family == TFH_FAM_MEMSET;
	bool first = !p->called && allocates;
	bool slow = runtime && (!tfh_family_issues(family) || (!p->called && copies)) &&
		    ev->t1 - ev->t0 >= CONTEXT_NS;
	char text[300];

	if (p->works || !(runtime || allocates || tfh_family_issues(family)))
		return 0;
	p->called = true;
	p->works = allocates || tfh_family_issues(family);
	if (!from_start || !(first || slow))
		return 0;
	snprintf(text, sizeof(text), "%s (creates the context)", name);
	ev->fn = tfh_build_fn(n->b, text, &tfh_fn_table[TFH_FN_cuDevicePrimaryCtxRetain]);
	tfh_build_ready(n->b, p->index, ev->t1);
	return ev->fn ? 0 : -ENOMEM;
}

static int row_call(void *arg, const struct tfh_table_row *row)
{
	struct tfh_nsys *n = arg;
	int64_t global = tfh_row_int(row, 2, -1), correlation = tfh_row_int(row, 3, 0), thread;
	const char *text = text_at(n, row, 4);
	struct tfh_nsys_process *p;
	struct tfh_event ev = {.kind = TFT_CALL};
	char name[256];
	int rc;

	if (!text || global < 0 || !times(row, &ev.t0, &ev.t1))
		return 0;
	rc = process_of(n, (uint64_t)global >> 24, &p);
	if (rc)
		return rc;
	thread = thread_of(n, p, (uint64_t)global);
	rc = thread < 0 ? -ENOMEM
			: tfh_import_fn(n->b, &n->fn, call_name(text, name, sizeof(name)), &ev.fn);
	if (rc)
		return rc;
	ev.process = p->index;
	ev.thread = (uint32_t)thread;
	rc = note_first(n, p, correlation, name, &ev);
	if (rc)
		return rc;
	if (!ev.fn) {
		rc = tfh_import_host_event(n->b, name, TFT_RANGE_NOTE, &ev);
		return rc ? rc : tfh_build_event(n->b, &ev, 0);
	}
	int64_t result = tfh_row_int(row, 5, 0);
	if (result) {
		ev.flags |= TFT_F_FAILED;
		ev.result = (uint16_t)(result > 0 && result < UINT16_MAX ? result : UINT16_MAX);
	}
	n->work |= tfh_family_issues(ev.fn->family);
	ev.dir = ev.fn->dir;
	add_wait(n, p, correlation, &ev);
	return tfh_build_event(n->b, &ev,
			       correlation > 0 && correlation <= UINT32_MAX ? (uint32_t)correlation
									    : 0);
}

/* A domain's name stands in front of the texts of its ranges, as in a recording of tfhook's own. */
static uint64_t domain_key(int64_t global, int64_t domain)
{
	return tfh_hash_add(tfh_hash_u64((uint64_t)global >> 24), (uint64_t)domain);
}

static int row_domain(void *arg, const struct tfh_table_row *row)
{
	struct tfh_nsys *n = arg;
	int64_t global = tfh_row_int(row, 0, -1), domain = tfh_row_int(row, 1, 0);
	const char *text = text_at(n, row, 2);

	text = text ? text : text_at(n, row, 3);
	return global < 0 || domain <= 0 || !text
		       ? 0
		       : keep_text(n, &n->domain, domain_key(global, domain), text);
}

/* PyTorch's emit_nvtx adds numbers to the names of ops: "aten::mm, seq = 7, op_id = 12", "aten::mm,
 * sizes = [[...". */
static void cut_numbers(char *text)
{
	static const char *const tails[] = {", seq = ", ", op_id = ", ", sizes = "};

	for (size_t i = 0; i < sizeof(tails) / sizeof(*tails); i++) {
		char *at = strstr(text, tails[i]);
		if (at)
			*at = '\0';
	}
}

static int row_range(void *arg, const struct tfh_table_row *row)
{
	struct tfh_nsys *n = arg;
	int64_t global = tfh_row_int(row, 2, -1), thread;
	const char *text = text_at(n, row, 4), *domain;
	struct tfh_nsys_process *p = global < 0 ? NULL : known_process(n, (uint64_t)global >> 24);
	struct tfh_event ev = {0};
	char name[TFH_NSYS_TEXT + 300];

	text = text ? text : text_at(n, row, 5);
	if (!p || !text || !*text || !times(row, &ev.t0, &ev.t1))
		return 0;
	domain = kept_text(&n->domain, domain_key(global, tfh_row_int(row, 3, 0)));
	snprintf(name, sizeof(name), "%.250s%s%.*s", domain ? domain : "", domain ? ": " : "",
		 (int)TFH_NSYS_TEXT, text);
	cut_numbers(name);
	thread = thread_of(n, p, (uint64_t)global);
	if (thread < 0)
		return -ENOMEM;
	ev.process = p->index;
	ev.thread = (uint32_t)thread;
	int rc = tfh_import_host_event(n->b, name, TFT_RANGE_NOTE, &ev);
	return rc ? rc : tfh_build_event(n->b, &ev, 0);
}

/* ---- the device ---- */

enum {
	O_T0,
	O_T1,
	O_PROCESS,
	O_DEVICE,
	O_CONTEXT,
	O_STREAM,
	O_CORRELATION,
	O_GRAPH,
	O_NODE,
	O_MORE
};
#define OP_COLUMNS                                                                                 \
	"start", "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId",         \
		"graphId", "graphNodeId"

/* 1: *op has what all ops have, and `*process` is its process; 0: the row is unusable. */
static int begin_op(struct tfh_nsys *n, const struct tfh_table_row *row, uint8_t kind,
		    struct tfh_op *op, struct tfh_nsys_process **process)
{
	int64_t global = tfh_row_int(row, O_PROCESS, 0), device = tfh_row_int(row, O_DEVICE, 0);
	int64_t correlation = tfh_row_int(row, O_CORRELATION, 0);
	int64_t node = tfh_row_int(row, O_NODE, 0), graph = tfh_row_int(row, O_GRAPH, 0);
	int64_t context = tfh_row_int(row, O_CONTEXT, 0);
	struct tfh_nsys_process *p;

	*op = (struct tfh_op){.kind = kind, .name = ""};
	if (global < 0 || device < 0 || device > UINT32_MAX || !times(row, &op->t0, &op->t1))
		return 0;
	int rc = process_of(n, (uint64_t)global >> 24, &p);
	if (rc)
		return rc;
	*process = p;
	n->work = true;
	op->process = p->index;
	op->device = (uint32_t)device;
	op->ctx = context > 0 && context <= UINT32_MAX ? (uint32_t)context : 0;
	op->stream = tfh_import_stream(&p->device, device, tfh_row_int(row, O_STREAM, 0));
	p->several |= device != p->device;
	op->correlation = correlation > 0 && correlation <= UINT32_MAX ? (uint32_t)correlation : 0;
	/* The upper half of a node's number is the graph's in recent versions, which have no other
	 * column for it. */
	if (node > 0 || kind == TFH_OP_GRAPH) {
		graph = graph > 0 ? graph : node >> 32;
		op->graph = graph > 0 && graph <= UINT32_MAX ? (uint32_t)graph : 1;
		op->node = node > 0 ? (uint64_t)node : 0;
	}
	return 1;
}

static uint32_t small(const struct tfh_table_row *row, uint32_t at)
{
	int64_t v = tfh_row_int(row, at, 0);

	return v > 0 && v <= UINT32_MAX ? (uint32_t)v : 0;
}

static int row_kernel(void *arg, const struct tfh_table_row *row)
{
	struct tfh_nsys *n = arg;
	struct tfh_nsys_process *p;
	struct tfh_op op;
	const char *name;
	int rc = begin_op(n, row, TFH_OP_KERNEL, &op, &p);

	if (rc <= 0)
		return rc;
	name = text_at(n, row, O_MORE);
	name = name ? name : text_at(n, row, O_MORE + 1);
	name = name ? name : text_at(n, row, O_MORE + 2);
	op.name = name ? name : "";
	op.communication = tfh_kernel_communicates(op.name);
	p->communicates |= op.communication;
	op.grid = tfh_import_grid((const uint32_t[]){small(row, O_MORE + 3), small(row, O_MORE + 4),
						     small(row, O_MORE + 5)});
	op.block =
		tfh_import_block((const uint32_t[]){small(row, O_MORE + 6), small(row, O_MORE + 7),
						    small(row, O_MORE + 8)},
				 small(row, O_MORE + 9) + small(row, O_MORE + 10));
	return tfh_build_op(n->b, &op);
}

/* CUPTI's kinds of copies; A is an array on the device. The last three are pages of managed
 * memory. */
static const uint8_t directions[] = {
	[1] = TFH_DIR_H2D,  [2] = TFH_DIR_D2H,	[3] = TFH_DIR_H2D,  [4] = TFH_DIR_D2H,
	[5] = TFH_DIR_D2D,  [6] = TFH_DIR_D2D,	[7] = TFH_DIR_D2D,  [8] = TFH_DIR_D2D,
	[9] = TFH_DIR_H2H,  [10] = TFH_DIR_P2P, [11] = TFH_DIR_H2D, [12] = TFH_DIR_D2H,
	[13] = TFH_DIR_D2D,
};

static int row_copy(void *arg, const struct tfh_table_row *row)
{
	enum { PAGEABLE, PINNED, DEVICE, ARRAY, MANAGED };
	struct tfh_nsys *n = arg;
	int64_t kind = tfh_row_int(row, O_MORE + 1, 0), bytes = tfh_row_int(row, O_MORE, 0);
	int64_t from = tfh_row_int(row, O_MORE + 2, -1), to = tfh_row_int(row, O_MORE + 3, -1);
	struct tfh_nsys_process *p;
	struct tfh_op op;
	int rc = begin_op(n, row, TFH_OP_COPY, &op, &p);

	if (rc <= 0)
		return rc;
	op.bytes = bytes > 0 ? (uint64_t)bytes : 0;
	op.dir = kind >= 0 && kind < (int64_t)sizeof(directions) ? directions[kind] : TFH_DIR_NONE;
	op.managed = kind >= 11;
	op.pageable = !op.managed && (from == PAGEABLE || to == PAGEABLE);
	op.communication = op.dir == TFH_DIR_P2P;
	return tfh_build_op(n->b, &op);
}

static int row_set(void *arg, const struct tfh_table_row *row)
{
	struct tfh_nsys *n = arg;
	int64_t bytes = tfh_row_int(row, O_MORE, 0);
	struct tfh_nsys_process *p;
	struct tfh_op op;
	int rc = begin_op(n, row, TFH_OP_MEMSET, &op, &p);

	op.bytes = bytes > 0 ? (uint64_t)bytes : 0;
	return rc <= 0 ? rc : tfh_build_op(n->b, &op);
}

static int row_graph(void *arg, const struct tfh_table_row *row)
{
	struct tfh_nsys *n = arg;
	struct tfh_nsys_process *p;
	struct tfh_op op;
	int rc = begin_op(n, row, TFH_OP_GRAPH, &op, &p);

	return rc <= 0 ? rc : tfh_build_op(n->b, &op);
}

/* Eventtypes of NVTX: 59 and 60 are ranges that nest or not, 70 and 71 the same from a text file,
 * 75 names a domain. */
const struct tfh_nsys_table tfh_nsys_tables[] = {
	{"StringIds", {"id", "value"}, NULL, row_text},
	{"TARGET_INFO_SYSTEM_ENV", {"name", "value"}, NULL, row_host},
	{"TARGET_INFO_SESSION_START_TIME", {"utcEpochNs", "systemClockNs"}, NULL, row_session},
	{"TARGET_INFO_GPU", {"smCount"}, NULL, row_device},
	{"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
	 {"globalPid", "correlationId", "deviceId", "streamId", "eventId"},
	 NULL,
	 row_wait},
	{"CUPTI_ACTIVITY_KIND_CUDA_EVENT",
	 {"globalPid", "correlationId", "deviceId", "streamId", "eventId"},
	 NULL,
	 row_event},
	{"CUPTI_ACTIVITY_KIND_KERNEL",
	 {OP_COLUMNS, "demangledName", "shortName", "mangledName", "gridX", "gridY", "gridZ",
	  "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory"},
	 NULL,
	 row_kernel},
	{"CUPTI_ACTIVITY_KIND_MEMCPY",
	 {OP_COLUMNS, "bytes", "copyKind", "srcKind", "dstKind"},
	 NULL,
	 row_copy},
	{"CUPTI_ACTIVITY_KIND_MEMSET", {OP_COLUMNS, "bytes"}, NULL, row_set},
	{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", {OP_COLUMNS}, NULL, row_graph},
	{"CUPTI_ACTIVITY_KIND_RUNTIME",
	 {"start", "end", "globalTid", "correlationId", "nameId", "returnValue"},
	 NULL,
	 row_call},
	{"NVTX_EVENTS", {"globalTid", "domainId", "text", "textId"}, "eventType = 75", row_domain},
	{"NVTX_EVENTS",
	 {"start", "end", "globalTid", "domainId", "text", "textId"},
	 "eventType IN (59, 60, 70, 71)",
	 row_range},
	{"PROCESSES", {"globalPid", "pid", "name", "exe", "rank", "world"}, NULL, row_process_name},
	{"ThreadNames", {"globalTid", "nameId", "name"}, NULL, row_thread_name},
	{NULL, {NULL}, NULL, NULL},
};

int tfh_nsys_read(const struct tfh_nsys_table *table, struct tfh_tables *t, void *arg,
		  struct tfh_err *err)
{
	int rc = 0;

	for (; table->name && !rc; table++) {
		uint32_t columns = 0;
		while (columns < TFH_TABLE_COLUMNS && table->column[columns])
			columns++;
		rc = tfh_tables_each(t, table->name, table->column, columns, table->where,
				     table->row, arg, err);
		if (rc && !err->code)
			tfh_err_set(err, rc, "%s",
				    rc == -E2BIG ? "too many processes" : "out of memory");
	}
	return rc;
}
