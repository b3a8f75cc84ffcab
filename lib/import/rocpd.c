/*
 * rocpd, the database of AMD's rocprofv3: a view for each kind of row (the tables behind it have
 * the run's number in their names). Texts are rows of rocpd_string; calls and the ops that they
 * issued have one stack_id, which is a column of their events. Its predecessor of the same name
 * (.rpd files, of rocmProfileData) has calls and ops in a table each, and a table that joins them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/text.h"
#include "import/nsys.h"
#include "model/symbols/kernel_name.h"

#define CONTEXT_NS 10000000	/* starting the runtime takes longer; other allocations take less */
#define MOST_BYTES (1ull << 48) /* of a copy */
#define DEFAULT_STREAM 100000	/* + queue: streams were not recorded, or it is the default one */

struct job_process {
	int64_t id, last_thread;
	uint32_t index, threads;
	bool called;   /* the runtime was */
	bool launched; /* so was a kernel */
};

struct rocpd {
	struct tfh_builder *b;
	struct tfh_arena arena;
	struct tfh_map text, kernel; /* id -> const char * */
	struct tfh_map agent;	     /* id -> number of the device + 1 */
	struct tfh_map stack;	     /* event -> stack_id + 1 */
	struct tfh_map copy, bytes;  /* event -> direction of the copy that its call makes */
	struct tfh_map pid, tid;     /* id -> number of the process, the thread */
	struct tfh_map thread;	     /* id -> thread + 1 */
	struct tfh_map fn;	     /* see tfh_import_fn() */
	struct tfh_map issuer;	     /* .rpd: op -> its call */
	struct tfh_map call;	     /* .rpd: call -> number of its process << 32 | correlation */
	uint32_t calls;
	TFH_VEC(struct job_process) process;
	int64_t device; /* number of the first one, -1 until known */
	bool hip;	/* its calls were recorded, so those of HSA below them are not read */
	bool work;
};

static int put(struct tfh_map *map, int64_t id, uint64_t value)
{
	uint64_t *at = id < 0 ? NULL : tfh_map_put(map, tfh_hash_u64((uint64_t)id), NULL);

	if (at)
		*at = value;
	return id < 0 || at ? 0 : -ENOMEM;
}

static uint64_t get(const struct tfh_map *map, int64_t id)
{
	const uint64_t *at = id < 0 ? NULL : tfh_map_get(map, tfh_hash_u64((uint64_t)id));

	return at ? *at : 0;
}

static int put_text(struct rocpd *r, struct tfh_map *map, int64_t id, const char *text)
{
	const char *copy =
		text ? tfh_arena_strndup(&r->arena, text, strnlen(text, TFH_NSYS_TEXT)) : NULL;

	return !text ? 0 : copy ? put(map, id, (uint64_t)(uintptr_t)copy) : -ENOMEM;
}

static const char *get_text(const struct tfh_map *map, int64_t id)
{
	uint64_t at = get(map, id);

	return at ? (const char *)(uintptr_t)at : NULL;
}

/* ---- about the recording ---- */

static int row_text(void *arg, const struct tfh_table_row *row)
{
	struct rocpd *r = arg;

	return put_text(r, &r->text, tfh_row_int(row, 0, -1), tfh_row_text(row, 1));
}

static int row_symbol(void *arg, const struct tfh_table_row *row)
{
	struct rocpd *r = arg;
	const char *name = tfh_row_text(row, 1);

	return put_text(r, &r->kernel, tfh_row_int(row, 0, -1),
			name && *name ? name : tfh_row_text(row, 2));
}

static int row_agent(void *arg, const struct tfh_table_row *row)
{
	struct rocpd *r = arg;

	return put(&r->agent, tfh_row_int(row, 0, -1), (uint64_t)tfh_row_int(row, 1, 0) + 1);
}

static int row_event(void *arg, const struct tfh_table_row *row)
{
	struct rocpd *r = arg;

	return put(&r->stack, tfh_row_int(row, 0, -1), (uint64_t)tfh_row_int(row, 1, -1) + 1);
}

/* Arguments of a call that copies: the only place that has them if copies were not recorded. */
static int row_kind(void *arg, const struct tfh_table_row *row)
{
	struct rocpd *r = arg;
	const char *kind = tfh_row_text(row, 1);
	struct tfh_op op = {0};

	tfh_import_copy_name(kind ? kind : "", &op);
	return put(&r->copy, tfh_row_int(row, 0, -1), op.dir);
}

static int row_size(void *arg, const struct tfh_table_row *row)
{
	struct rocpd *r = arg;
	const char *text = tfh_row_text(row, 1);
	uint64_t bytes = text ? strtoull(text, NULL, 10) : 0;

	return bytes <= MOST_BYTES ? put(&r->bytes, tfh_row_int(row, 0, -1), bytes) : 0;
}

static int row_process(void *arg, const struct tfh_table_row *row)
{
	struct rocpd *r = arg;

	return put(&r->pid, tfh_row_int(row, 0, -1), (uint64_t)tfh_row_int(row, 1, 0));
}

static int row_thread(void *arg, const struct tfh_table_row *row)
{
	struct rocpd *r = arg;

	return put(&r->tid, tfh_row_int(row, 0, -1), (uint64_t)tfh_row_int(row, 1, 0));
}

/* ---- what happened ---- */

enum { T0, T1, PROCESS, EVENT, MORE };
#define COLUMNS "start", "end", "pid", "event_id"

static bool times(const struct tfh_table_row *row, int64_t *t0, int64_t *t1)
{
	*t0 = tfh_row_int(row, T0, INT64_MIN);
	*t1 = tfh_row_int(row, T1, INT64_MIN);
	return *t0 > -TFH_IMPORT_TIME && *t1 >= *t0 && *t1 < TFH_IMPORT_TIME &&
	       *t1 - *t0 <= TFH_IMPORT_LENGTH;
}

static uint32_t number(const struct tfh_table_row *row, uint32_t at)
{
	int64_t v = tfh_row_int(row, at, 0);

	return v > 0 && v <= UINT32_MAX ? (uint32_t)v : 0;
}

/* What joins a call with its ops; 0: nothing. */
static uint32_t correlation(const struct rocpd *r, const struct tfh_table_row *row)
{
	uint64_t stack = get(&r->stack, tfh_row_int(row, EVENT, -1));

	return stack > 1 && stack <= UINT32_MAX ? (uint32_t)stack - 1 : 0;
}

/* 0, -ENOMEM, or -E2BIG. */
static int process_of(struct rocpd *r, int64_t id, struct job_process **out)
{
	uint32_t pid = (uint32_t)get(&r->pid, id);
	int64_t index;

	for (uint32_t i = 0; i < r->process.n; i++) {
		*out = &r->process.v[i];
		if ((*out)->id == id)
			return 0;
	}
	if (r->process.n >= TFH_IMPORT_PROCESSES)
		return -E2BIG;
	index = tfh_build_process(r->b, "", "", pid, -1);
	if (index < 0 ||
	    TFH_PUSH(r->process,
		     (struct job_process){.id = id, .last_thread = -1, .index = (uint32_t)index}))
		return -ENOMEM;
	*out = &r->process.v[r->process.n - 1];
	return 0;
}

static int64_t thread_of(struct rocpd *r, struct job_process *p, int64_t id)
{
	uint64_t known = get(&r->thread, id);

	if (known)
		return (int64_t)known - 1;
	if (p->threads >= TFH_IMPORT_THREADS)
		return p->last_thread;
	p->last_thread = tfh_build_thread(r->b, p->index, (uint32_t)get(&r->tid, id), "");
	if (p->last_thread >= 0 && put(&r->thread, id, (uint64_t)p->last_thread + 1))
		return -ENOMEM;
	p->threads++;
	return p->last_thread;
}

static int row_hip(void *arg, const struct tfh_table_row *row)
{
	struct rocpd *r = arg;
	const char *name = get_text(&r->text, tfh_row_int(row, 0, -1));

	r->hip |= name && tfh_starts_with(name, "hip");
	return 0;
}

/* The runtime starts in the first call that needs it, which may be an allocation. The first one
 * that launches (or sets memory, with a kernel) loads the program's kernels. */
static int note_first(struct rocpd *r, struct job_process *p, const char *name,
		      struct tfh_event *ev)
{
	uint8_t family = ev->fn->family;
	bool allocates = family == TFH_FAM_ALLOC || family == TFH_FAM_FREE;
	bool slow = ev->t1 - ev->t0 >= CONTEXT_NS, first = !p->called;
	char text[300];

	p->called |= allocates || tfh_family_issues(family);
	if (!p->launched && (family == TFH_FAM_LAUNCH || family == TFH_FAM_MEMSET)) {
		p->launched = true;
		if (slow)
			tfh_build_ready(r->b, p->index, ev->t1);
	}
	if (!first || !allocates || !slow)
		return 0;
	snprintf(text, sizeof(text), "%.200s (starts the runtime)", name);
	ev->fn = tfh_build_fn(r->b, text, &tfh_fn_table[TFH_FN_cuDevicePrimaryCtxRetain]);
	tfh_build_ready(r->b, p->index, ev->t1);
	return ev->fn ? 0 : -ENOMEM;
}

/* What a call copies. The host memory of a call that waits for its copy is taken for pageable:
 * pinned memory is mostly for calls that do not wait. */
static void add_copy(const struct rocpd *r, const struct tfh_table_row *row, struct tfh_event *ev)
{
	int64_t event = tfh_row_int(row, EVENT, -1);
	uint64_t dir = get(&r->copy, event);

	ev->dir = ev->dir == TFH_DIR_ANY && dir ? (uint8_t)dir : ev->dir;
	ev->w[0] = get(&r->bytes, event);
	ev->pageable = (ev->fn->props & TFH_FN_SYNC_COPY) &&
		       (ev->dir == TFH_DIR_H2D || ev->dir == TFH_DIR_D2H);
}

/* Fills in *ev of a call or range, of which the times are known. `range`: the name that the program
 * gave it; NULL: it may be a call of the runtime. 0 or -errno. */
static int take_call(struct rocpd *r, const struct tfh_table_row *row, const char *name,
		     const char *range, int64_t pid, int64_t tid, struct tfh_event *ev)
{
	struct job_process *p;
	int64_t thread;
	int rc = process_of(r, pid, &p);

	if (rc)
		return rc;
	thread = thread_of(r, p, tid);
	if (thread < 0)
		return -ENOMEM;
	ev->process = p->index;
	ev->thread = (uint32_t)thread;
	rc = range ? 0 : tfh_import_fn(r->b, &r->fn, name, &ev->fn);
	if (!rc && !ev->fn)
		rc = tfh_import_host_event(r->b, range ? range : name, TFT_RANGE_NOTE, ev);
	else if (!rc)
		rc = note_first(r, p, name, ev);
	if (rc)
		return rc;
	r->work |= tfh_family_issues(ev->fn->family);
	ev->dir = ev->fn->dir;
	if (ev->fn->family == TFH_FAM_COPY)
		add_copy(r, row, ev);
	return 0;
}

/* A call, or a range that the program named. */
static int row_region(void *arg, const struct tfh_table_row *row)
{
	struct rocpd *r = arg;
	const char *name = get_text(&r->text, tfh_row_int(row, MORE + 1, -1));
	struct tfh_event ev = {.kind = TFT_CALL};
	int rc;

	if (!name || !times(row, &ev.t0, &ev.t1) || tfh_starts_with(name, "__hip") ||
	    (r->hip && tfh_starts_with(name, "hsa_")))
		return 0;
	rc = take_call(r, row, name, NULL, tfh_row_int(row, PROCESS, -1),
		       tfh_row_int(row, MORE, -1), &ev);
	return rc ? rc : tfh_build_event(r->b, &ev, correlation(r, row));
}

/* 1: *op has what all ops have; 0: the row is unusable. */
static int begin_op(struct rocpd *r, const struct tfh_table_row *row, uint8_t kind, int64_t agent,
		    struct tfh_op *op)
{
	uint64_t device = get(&r->agent, agent);
	int64_t stream = tfh_row_int(row, MORE, 0), queue = tfh_row_int(row, MORE + 1, 0);
	struct job_process *p;

	*op = (struct tfh_op){.kind = kind, .name = ""};
	if (!times(row, &op->t0, &op->t1))
		return 0;
	int rc = process_of(r, tfh_row_int(row, PROCESS, -1), &p);
	if (rc)
		return rc;
	r->work = true;
	op->process = p->index;
	op->device = device ? (uint32_t)device - 1 : 0;
	op->stream = tfh_import_stream(&r->device, op->device,
				       stream > 0 ? stream : DEFAULT_STREAM + queue);
	op->correlation = correlation(r, row);
	return 1;
}

static int row_kernel(void *arg, const struct tfh_table_row *row)
{
	struct rocpd *r = arg;
	const char *name = get_text(&r->kernel, tfh_row_int(row, MORE + 3, -1));
	uint32_t threads[3], block[3], grid[3];
	struct tfh_op op;
	int rc = begin_op(r, row, TFH_OP_KERNEL, tfh_row_int(row, MORE + 2, -1), &op);

	if (rc <= 0)
		return rc;
	op.name = name ? name : "";
	op.communication = tfh_kernel_communicates(op.name);
	for (uint32_t i = 0; i < 3; i++) {
		threads[i] = number(row, MORE + 4 + i);
		block[i] = number(row, MORE + 7 + i);
		grid[i] = block[i] ? threads[i] / block[i] : 0;
	}
	op.grid = tfh_import_grid(grid);
	op.block = tfh_import_block(block, number(row, MORE + 10));
	return tfh_build_op(r->b, &op);
}

static int row_copy(void *arg, const struct tfh_table_row *row)
{
	static const struct {
		const char *text;
		uint8_t dir;
	} dirs[] = {{"HOST_TO_DEVICE", TFH_DIR_H2D},
		    {"DEVICE_TO_HOST", TFH_DIR_D2H},
		    {"DEVICE_TO_DEVICE", TFH_DIR_D2D},
		    {"HOST_TO_HOST", TFH_DIR_H2H}};
	struct rocpd *r = arg;
	const char *name = get_text(&r->text, tfh_row_int(row, MORE + 4, -1));
	int64_t bytes = tfh_row_int(row, MORE + 5, 0);
	bool sends = name && strstr(name, "HOST_TO_DEVICE");
	struct tfh_op op;
	int rc = begin_op(r, row, TFH_OP_COPY, tfh_row_int(row, MORE + (sends ? 2 : 3), -1), &op);

	if (rc <= 0)
		return rc;
	for (size_t i = 0; name && i < sizeof(dirs) / sizeof(*dirs); i++)
		if (strstr(name, dirs[i].text))
			op.dir = dirs[i].dir;
	op.bytes = bytes > 0 ? (uint64_t)bytes : 0;
	return tfh_build_op(r->b, &op);
}

/* ---- .rpd files ---- */

static int row_link(void *arg, const struct tfh_table_row *row)
{
	struct rocpd *r = arg;

	return put(&r->issuer, tfh_row_int(row, 0, -1), (uint64_t)tfh_row_int(row, 1, -1));
}

static int row_copied(void *arg, const struct tfh_table_row *row)
{
	static const uint8_t dirs[] = {TFH_DIR_H2H, TFH_DIR_H2D, TFH_DIR_D2H, TFH_DIR_D2D};
	struct rocpd *r = arg;
	int64_t call = tfh_row_int(row, 0, -1), bytes = tfh_row_int(row, 1, 0);
	uint32_t kind = number(row, 2);
	int rc = kind < sizeof(dirs) ? put(&r->copy, call, dirs[kind]) : 0;

	return !rc && bytes > 0 && (uint64_t)bytes <= MOST_BYTES
		       ? put(&r->bytes, call, (uint64_t)bytes)
		       : rc;
}

/* A call of the runtime, a range that the program named, or the recorder's own work. */
static int row_call(void *arg, const struct tfh_table_row *row)
{
	struct rocpd *r = arg;
	const char *name = get_text(&r->text, tfh_row_int(row, MORE + 1, -1));
	const char *text = get_text(&r->text, tfh_row_int(row, MORE + 2, -1));
	int64_t pid = tfh_row_int(row, PROCESS, -1), tid = tfh_row_int(row, MORE, -1);
	struct tfh_event ev = {.kind = TFT_CALL};
	bool marker = name && !strcmp(name, "UserMarker");
	int rc;

	if (!name || !times(row, &ev.t0, &ev.t1) || (!marker && !tfh_starts_with(name, "hip")))
		return 0;
	if (put(&r->pid, pid, (uint64_t)pid) || put(&r->tid, tid, (uint64_t)tid))
		return -ENOMEM;
	rc = take_call(r, row, name, !marker ? NULL : text ? text : name, pid, tid, &ev);
	if (rc)
		return rc;
	if (put(&r->call, tfh_row_int(row, EVENT, -1), (uint64_t)ev.process << 32 | ++r->calls))
		return -ENOMEM;
	return tfh_build_event(r->b, &ev, r->calls);
}

static int row_op(void *arg, const struct tfh_table_row *row)
{
	struct rocpd *r = arg;
	const char *name = get_text(&r->text, tfh_row_int(row, MORE + 2, -1));
	const char *type = get_text(&r->text, tfh_row_int(row, MORE + 3, -1));
	int64_t call = (int64_t)get(&r->issuer, tfh_row_int(row, EVENT, -1));
	uint64_t issued = call ? get(&r->call, call) : 0;
	struct tfh_op op = {.process = (uint32_t)(issued >> 32),
			    .correlation = (uint32_t)issued,
			    .device = number(row, MORE),
			    .name = ""};

	if (!type || !times(row, &op.t0, &op.t1) || !r->process.n || strstr(type, "Barrier") ||
	    strstr(type, "Marker"))
		return 0;
	r->work = true;
	op.stream = tfh_import_stream(&r->device, op.device, tfh_row_int(row, MORE + 1, 0));
	op.kind = tfh_starts_with(type, "Copy")	  ? TFH_OP_COPY
		  : tfh_starts_with(type, "Fill") ? TFH_OP_MEMSET
						  : TFH_OP_KERNEL;
	if (op.kind == TFH_OP_COPY) {
		tfh_import_copy_name(type, &op);
		op.bytes = get(&r->bytes, call);
	} else if (op.kind == TFH_OP_KERNEL) {
		op.name = name ? name : "";
		op.communication = tfh_kernel_communicates(op.name);
	}
	return tfh_build_op(r->b, &op);
}

static const struct tfh_nsys_table rpd_tables[] = {
	{"rocpd_string", {"id", "string"}, NULL, row_text},
	{"rocpd_api_ops", {"op_id", "api_id"}, NULL, row_link},
	{"rocpd_copyapi", {"api_ptr_id", "size", "kind"}, NULL, row_copied},
	{"rocpd_api",
	 {"start", "end", "pid", "id", "tid", "apiName_id", "args_id"},
	 NULL,
	 row_call},
	{"rocpd_op",
	 {"start", "end", "gpuId", "id", "gpuId", "queueId", "description_id", "opType_id"},
	 NULL,
	 row_op},
	{NULL, {NULL}, NULL, NULL},
};

static const struct tfh_nsys_table tables[] = {
	{"rocpd_string", {"id", "string"}, NULL, row_text},
	{"rocpd_info_kernel_symbol", {"id", "display_name", "kernel_name"}, NULL, row_symbol},
	{"rocpd_info_agent", {"id", "type_index"}, NULL, row_agent},
	{"rocpd_info_process", {"id", "pid"}, NULL, row_process},
	{"rocpd_info_thread", {"id", "tid"}, NULL, row_thread},
	{"rocpd_event", {"id", "stack_id"}, NULL, row_event},
	{"rocpd_arg", {"event_id", "value"}, "name = 'kind'", row_kind},
	{"rocpd_arg", {"event_id", "value"}, "name = 'sizeBytes'", row_size},
	{"rocpd_region", {"name_id"}, NULL, row_hip},
	{"rocpd_region", {COLUMNS, "tid", "name_id"}, NULL, row_region},
	{"rocpd_kernel_dispatch",
	 {COLUMNS, "stream_id", "queue_id", "agent_id", "kernel_id", "grid_size_x", "grid_size_y",
	  "grid_size_z", "workgroup_size_x", "workgroup_size_y", "workgroup_size_z",
	  "group_segment_size"},
	 NULL,
	 row_kernel},
	{"rocpd_memory_copy",
	 {COLUMNS, "stream_id", "queue_id", "dst_agent_id", "src_agent_id", "name_id", "size"},
	 NULL,
	 row_copy},
	{NULL, {NULL}, NULL, NULL},
};

static int finish(struct rocpd *r)
{
	int rc = 0;

	for (uint32_t i = 0; i < r->process.n && !rc; i++)
		rc = tfh_build_identity(r->b, r->process.v[i].index, "",
					(uint32_t)get(&r->pid, r->process.v[i].id), -1, -1);
	return rc;
}

static void drop(struct rocpd *r)
{
	struct tfh_map *maps[] = {&r->text,   &r->kernel, &r->agent,  &r->stack,
				  &r->copy,   &r->bytes,  &r->pid,    &r->tid,
				  &r->thread, &r->fn,	  &r->issuer, &r->call};

	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		tfh_map_free(maps[i]);
	free(r->process.v);
	tfh_arena_free(&r->arena);
}

int tfh_import_rocpd(struct tfh_builder *b, struct tfh_tables *t, const char *path,
		     struct tfh_err *err)
{
	struct rocpd r = {.b = b, .device = -1};
	bool rpd = tfh_tables_have(t, "rocpd_api");
	int rc;

	tfh_arena_init(&r.arena, 0);
	tfh_build_source(b, TFH_SRC_ROCPROF);
	rc = tfh_nsys_read(rpd ? rpd_tables : tables, t, &r, err);
	if (!rc && !r.work)
		rc = tfh_err_set(err, -ENODATA,
				 rpd ? "%s: written by rocmProfileData, but without a single "
				       "launch, kernel or copy"
				     : "%s: written by rocprofv3, but without a single launch, "
				       "kernel or copy: record the job with `rocprofv3 "
				       "--runtime-trace`",
				 path);
	if (!rc && (rc = finish(&r)))
		tfh_err_set(err, rc, "out of memory");
	drop(&r);
	return rc;
}
