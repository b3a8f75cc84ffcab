/*
 * Events become records, ops rows of GPUS, and the link between an op and its call a row of DRVR,
 * as CUPTI would report it. Ticks are nanoseconds. Names come first, in a series of their own.
 */
#include "export/tft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/table.h"
#include "format/tft_write.h"
#include "tfhook/version.h"
#include "model/ops/ops.h"

/* The run's start in ticks, so that no tick in the file is 0. */
#define START 1000000000ull
#define BATCH 32768u
#define MAX_FNS 4096u

struct export
{
	struct tfh_run *run;
	uint32_t process;
	struct tft_writer *w;
	const struct tfh_fn_info *fn[MAX_FNS];
	struct tfh_fn_info row[MAX_FNS + 1]; /* as in HEAD */
	uint32_t n_fn;
	int64_t last;	 /* end of the last event */
	uint64_t *count; /* records written, by thread of the run; [n_threads]: names */
	uint32_t n_threads;
	const struct tfh_thread_info *thread;
	/* pending records, in order, and the thread of each */
	struct tfh_rec *rec, *sorted;
	uint32_t *of;
	uint32_t n;
};

static uint64_t ticks(int64_t ns)
{
	return START + (uint64_t)(ns > 0 ? ns : 0);
}

/* ---- functions ---- */

/* Number of a function's row, 0 if it is not in the table. */
static uint16_t fn_number(const struct export *x, const struct tfh_fn_info *fn)
{
	for (uint32_t i = 0; i < x->n_fn; i++)
		if (x->fn[i] == fn)
			return (uint16_t)(i + 1);
	return 0;
}

/* Collects the functions, and finds the end of the last call. */
static int look(struct export *x, struct tfh_err *err)
{
	const struct tfh_fn_info *before = NULL;
	struct tfh_merge *m;
	struct tfh_event ev;
	int rc = tfh_merge_open(x->run, x->process, &m, err);

	if (rc)
		return rc;
	x->row[0] = (struct tfh_fn_info){.name = ""};
	while (tfh_merge_next(m, &ev)) {
		x->last = ev.t1;
		if (ev.fn == before || fn_number(x, ev.fn) || x->n_fn == MAX_FNS)
			continue;
		before = ev.fn;
		x->row[x->n_fn + 1] = *ev.fn;
		x->fn[x->n_fn++] = ev.fn;
	}
	rc = tfh_merge_error(m, err);
	tfh_merge_close(m);
	return rc;
}

/* ---- records ---- */

/* Writes the pending records thread by thread, in order. */
static int flush(struct export *x)
{
	struct tft_batch *batch = calloc(x->n_threads + 2, sizeof(*batch));
	uint32_t *at = calloc(x->n_threads + 2, sizeof(*at)), batches = 0;
	int rc = batch && at ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < x->n && !rc; i++)
		at[x->of[i] + 1]++;
	for (uint32_t t = 0; t <= x->n_threads && !rc; t++) {
		uint32_t count = at[t + 1];
		at[t + 1] += at[t];
		if (!count)
			continue;
		batch[batches] = (struct tft_batch){
			.records = x->sorted + at[t], .count = count, .first = x->count[t]};
		if (t < x->n_threads) {
			batch[batches].thread = x->thread[t].index + 1;
			batch[batches].tid = x->thread[t].tid;
		}
		batches++;
	}
	for (uint32_t i = 0; i < x->n && !rc; i++) {
		uint32_t t = x->of[i];
		x->sorted[at[t]] = x->rec[i];
		x->sorted[at[t]++].seq = (uint32_t)x->count[t]++;
	}
	if (!rc && x->n)
		rc = tft_write_events(x->w, batch, batches, 0);
	x->n = 0;
	free(batch);
	free(at);
	return rc;
}

/* Records that belong together stay in one chunk. */
static struct tfh_rec *add(struct export *x, uint32_t thread)
{
	struct tfh_rec *r = &x->rec[x->n];

	memset(r, 0, sizeof(*r));
	x->of[x->n++] = thread;
	return r;
}

static int add_name(struct export *x, enum tft_name kind, uint32_t id)
{
	uint64_t handle, extra;
	const char *text = tfh_run_name(x->run, x->process, kind, id, &handle, &extra);
	size_t left = strnlen(text, UINT16_MAX);
	struct tfh_rec *r;
	int rc = x->n + 2 + left / TFT_EXT_BYTES >= BATCH ? flush(x) : 0;

	if (rc)
		return rc;
	r = add(x, x->n_threads);
	r->kind = TFT_NAME;
	r->fn = (uint16_t)kind;
	r->stream = id;
	r->w[0] = handle;
	r->w[1] = extra;
	r->w[2] = left;
	r->t_begin = r->t_end = START;
	r->flags = left ? TFT_F_EXT : 0;
	for (uint16_t part = 0; left; part++) {
		size_t n = left < TFT_EXT_BYTES ? left : TFT_EXT_BYTES;
		r = add(x, x->n_threads);
		r->kind = TFT_EXT;
		r->fn = part;
		r->result = (uint16_t)left;
		r->t_begin = r->t_end = START;
		r->flags = left > n ? TFT_F_EXT : 0;
		memcpy((char *)r + offsetof(struct tfh_rec, stream), text, n);
		text += n;
		left -= n;
	}
	return 0;
}

static int add_names(struct export *x)
{
	int rc = 0;

	for (uint32_t kind = TFT_NAME_STREAM; kind <= TFT_NAME_MODULE && !rc; kind++)
		for (uint32_t id = 1; !rc; id++) {
			if (!*tfh_run_name(x->run, x->process, kind, id, NULL, NULL))
				break;
			rc = add_name(x, kind, id);
		}
	return rc ? rc : flush(x);
}

/* The sides of a copy, which addresses would have given. */
static void add_copy_sides(struct export *x, const struct tfh_event *ev, struct tfh_rec *of)
{
	struct tft_ext_copy ext = {.form = TFT_EXT_SIDES};
	bool from = ev->dir == TFH_DIR_H2D || ev->dir == TFH_DIR_H2H;
	bool to = ev->dir == TFH_DIR_D2H || ev->dir == TFH_DIR_H2H;
	uint8_t host = ev->pageable ? TFT_SIDE_HOST : TFT_SIDE_PINNED;
	struct tfh_rec *r;

	of->flags |= TFT_F_EXT;
	ext.src_type = from ? host : TFT_SIDE_DEVICE;
	ext.dst_type = to ? host : TFT_SIDE_DEVICE;
	ext.dst_ctx = ev->dir == TFH_DIR_P2P;
	r = add(x, ev->thread);
	r->kind = TFT_EXT;
	r->result = TFT_EXT_BYTES;
	r->t_begin = r->t_end = of->t_end;
	memcpy((char *)r + offsetof(struct tfh_rec, stream), &ext, TFT_EXT_BYTES);
}

static int add_event(struct export *x, const struct tfh_event *ev)
{
	struct tfh_rec *r;
	int rc = x->n + 2 > BATCH ? flush(x) : 0;

	if (rc)
		return rc;
	r = add(x, ev->thread);
	r->t_begin = ticks(ev->t0);
	r->t_end = ticks(ev->t1);
	r->fn = fn_number(x, ev->fn);
	r->kind = ev->kind;
	r->flags = (uint8_t)(ev->flags & ~TFT_F_EXT);
	r->result = ev->result;
	r->depth = ev->depth;
	r->stream = ev->stream;
	r->ctx = ev->ctx;
	memcpy(r->w, ev->w, sizeof(r->w));
	if (ev->fn->family == TFH_FAM_COPY && ev->kind == TFT_CALL && ev->dir != TFH_DIR_ANY)
		add_copy_sides(x, ev, r);
	return 0;
}

static int add_events(struct export *x, struct tfh_err *err)
{
	struct tfh_merge *m;
	struct tfh_event ev;
	int rc = tfh_merge_open(x->run, x->process, &m, err);

	if (rc)
		return rc;
	while (!rc && tfh_merge_next(m, &ev))
		rc = add_event(x, &ev);
	if (!rc)
		rc = tfh_merge_error(m, err);
	tfh_merge_close(m);
	return rc ? rc : flush(x);
}

/* ---- device ops ---- */

struct device_tables {
	struct tft_gpu_row *gpu;
	struct tft_drvr_row *drvr;
	uint32_t n_gpu, n_drvr, correlation, call_correlation;
	uint64_t call;
	uint32_t call_thread;
	char *heap;
	uint32_t heap_bytes, heap_cap;
	const char *name; /* the text at `offset` */
	uint32_t offset;
	void *payload;
	size_t payload_cap;
};

static int write_table(struct export *x, struct device_tables *t, uint32_t type,
		       const struct tft_table *table, const void *rows, uint32_t n,
		       const struct tft_table_extra *extra)
{
	size_t cap = tft_table_bound(table, n, extra);

	if (cap > t->payload_cap) {
		free(t->payload);
		t->payload = malloc(cap);
		t->payload_cap = t->payload ? cap : 0;
	}
	if (!t->payload)
		return -ENOMEM;
	return tft_write_chunk(x->w, type, t->payload,
			       (uint32_t)tft_table_pack(table, rows, n, extra, t->payload));
}

static int flush_tables(struct export *x, struct device_tables *t, const struct tft_gpu_span *span,
			uint32_t spans)
{
	/* The tables use the run's own clock, with a pair at both ends. */
	const struct tft_table_pair pair[] = {{START, START},
					      {ticks(x->last) + START, ticks(x->last) + START}};
	struct tft_table_extra extra = {.heap = t->heap,
					.heap_bytes = t->heap_bytes,
					.pair = pair,
					.pairs = 2,
					.span = span,
					.spans = spans};
	int rc = 0;

	if (t->n_drvr) {
		struct tft_table_extra times = {.pair = pair, .pairs = 2};
		rc = write_table(x, t, TFT_DRVR, &tft_drvr, t->drvr, t->n_drvr, &times);
	}
	if (!rc && (t->n_gpu || spans))
		rc = write_table(x, t, TFT_GPUS, &tft_gpus, t->gpu, t->n_gpu, &extra);
	t->n_gpu = t->n_drvr = t->heap_bytes = 0;
	t->name = NULL;
	return rc;
}

/* Offset of a text in the heap; offset 0 is the empty text. */
static int heap_offset(struct device_tables *t, const char *name, uint32_t *offset)
{
	size_t n = strlen(name) + 1;

	*offset = 0;
	if (n == 1)
		return 0;
	if (name == t->name) {
		*offset = t->offset;
		return 0;
	}
	if (t->heap_bytes + n + 1 > t->heap_cap) {
		uint32_t cap = (t->heap_bytes + (uint32_t)n + 1) * 2;
		char *heap = realloc(t->heap, cap);
		if (!heap)
			return -ENOMEM;
		t->heap = heap;
		t->heap_cap = cap;
	}
	if (!t->heap_bytes)
		t->heap[t->heap_bytes++] = '\0';
	memcpy(t->heap + t->heap_bytes, name, n);
	*offset = t->offset = t->heap_bytes;
	t->name = name;
	t->heap_bytes += (uint32_t)n;
	return 0;
}

/* CUPTI's numbers: CUpti_ActivityMemcpyKind, CUpti_ActivityMemoryKind. */
static void copy_columns(const struct tfh_op *op, struct tft_gpu_row *g)
{
	static const uint8_t kind[] = {[TFH_DIR_H2D] = 1,
				       [TFH_DIR_D2H] = 2,
				       [TFH_DIR_D2D] = 8,
				       [TFH_DIR_H2H] = 9,
				       [TFH_DIR_P2P] = 10};
	uint8_t host = op->pageable ? 1 : 2, device = op->managed ? 5 : 3;

	g->flags = op->dir < sizeof(kind) ? kind[op->dir] : 0;
	g->src = op->dir == TFH_DIR_H2D || op->dir == TFH_DIR_H2H ? host : device;
	g->dst = op->dir == TFH_DIR_D2H || op->dir == TFH_DIR_H2H ? host : device;
}

static int add_op(struct export *x, struct device_tables *t, const struct tfh_op *op)
{
	struct tft_gpu_row *g = &t->gpu[t->n_gpu++];
	uint32_t correlation = op->correlation;
	bool known = op->thread != UINT32_MAX;
	bool same = known && t->call == op->call && t->call_thread == op->thread;

	/* An op joined by its position in a stream gets a correlation number for that. */
	if (!correlation && known)
		correlation = same ? t->call_correlation : ++t->correlation;
	*g = (struct tft_gpu_row){.start = ticks(op->t0),
				  .end = ticks(op->t1),
				  .bytes = op->bytes,
				  .grid = op->grid,
				  .block = op->block,
				  .node = op->node,
				  .correlation = correlation,
				  .ctx = op->ctx,
				  .stream = op->stream,
				  .graph = op->graph,
				  .device = (uint8_t)op->device,
				  .kind = op->kind};
	if (op->kind == TFH_OP_COPY)
		copy_columns(op, g);
	if (known && !same)
		t->drvr[t->n_drvr++] = (struct tft_drvr_row){.start = ticks(op->issue0),
							     .end = ticks(op->issue1),
							     .correlation = correlation,
							     .tid = x->thread[op->thread].tid,
							     .domain = 1};
	t->call = op->call;
	t->call_thread = op->thread;
	t->call_correlation = correlation;
	return heap_offset(t, op->name, &g->name);
}

static int write_ops(struct export *x, struct device_tables *t, struct tfh_err *err)
{
	struct tfh_gpu_info gpu;
	struct tft_gpu_span *span;
	struct tfh_ops *ops;
	struct tfh_op op;
	int rc;

	tfh_run_gpu(x->run, x->process, &gpu);
	span = calloc(gpu.n_span + 1, sizeof(*span));
	rc = span ? tfh_ops_open(x->run, x->process, &ops, err) : -ENOMEM;
	if (rc) {
		free(span);
		return rc;
	}
	for (uint32_t i = 0; i < gpu.n_span; i++)
		span[i] = (struct tft_gpu_span){ticks(gpu.span[i].t0), ticks(gpu.span[i].t1),
						gpu.span[i].nodes ? TFT_GPU_SPAN_NODES : 0};
	while (!rc && tfh_ops_next(ops, &op)) {
		rc = add_op(x, t, &op);
		if (!rc && t->n_gpu == BATCH)
			rc = flush_tables(x, t, NULL, 0);
	}
	if (!rc)
		rc = tfh_ops_error(ops, err);
	if (!rc)
		rc = flush_tables(x, t, span, gpu.n_span);
	tfh_ops_close(ops);
	free(span);
	return rc;
}

static int add_ops(struct export *x, struct tfh_err *err)
{
	struct device_tables t = {.correlation = 1u << 31, .call_thread = UINT32_MAX};
	int rc = -ENOMEM;

	t.gpu = calloc(BATCH, sizeof(*t.gpu));
	t.drvr = calloc(BATCH, sizeof(*t.drvr));
	if (t.gpu && t.drvr)
		rc = write_ops(x, &t, err);
	free(t.gpu);
	free(t.drvr);
	free(t.heap);
	free(t.payload);
	return rc;
}

/* ---- the file ---- */

static int write_notes(struct export *x)
{
	const struct tfh_process *p;
	struct tfh_gpu_info gpu;
	char text[128];

	tfh_run_processes(x->run, &p);
	tfh_run_gpu(x->run, x->process, &gpu);
	int n = snprintf(text, sizeof(text), "source=%s\ngpu.processors=%u\nlast=%llu\n",
			 tfh_source_name(tfh_run_source(x->run)), gpu.processors,
			 (unsigned long long)ticks(p[x->process].last_ns));
	return tft_write_chunk(x->w, TFT_NOTE, text, (uint32_t)n);
}

static int write_clocks(struct export *x)
{
	uint64_t real = (uint64_t)tfh_run_start_realtime_ns(x->run);
	uint64_t end = ticks(x->last) + START;
	struct tft_clock_triple t[] = {{START, START, real}, {end, end, real + (end - START)}};

	return tft_write_clocks(x->w, t, 2);
}

static int create(struct export *x, const char *path)
{
	const struct tfh_process *p;
	const char *const *argv;
	struct tft_head head = {.local_rank = -1,
				.boot_id = "",
				.job = "",
				.journal_path = "",
				.tfhook_version = TFHOOK_VERSION,
				.start_ticks = START,
				.tick_hz = 1000000000,
				.ticks_are_ns = true,
				.fn = x->row,
				.fn_count = x->n_fn + 1};

	tfh_run_processes(x->run, &p);
	head.pid = p[x->process].pid;
	head.ppid = p[x->process].ppid;
	head.rank = p[x->process].rank;
	head.world = p[x->process].world;
	head.host = p[x->process].host;
	head.exe = p[x->process].exe;
	head.command = tfh_run_command(x->run, &argv) ? argv[0] : "";
	head.start_realtime_ns = (uint64_t)tfh_run_start_realtime_ns(x->run);
	head.journal_start = x->process + 1; /* two ranks may have the same pid and no host */
	return tft_writer_create(path, NULL, &head, &x->w);
}

static int write_all(struct export *x, struct tfh_err *err)
{
	int rc = write_clocks(x);

	if (!rc)
		rc = write_notes(x);
	if (!rc)
		rc = add_names(x);
	if (!rc)
		rc = add_events(x, err);
	return rc ? rc : add_ops(x, err);
}

int tfh_export_tft(struct tfh_run *run, uint32_t process, const char *path, struct tfh_err *err)
{
	struct export *x = calloc(1, sizeof(*x));
	struct tfh_err why = {0};
	int rc = -ENOMEM;

	if (!x)
		return tfh_err_set(err, rc, "out of memory");
	x->run = run;
	x->process = process;
	x->n_threads = tfh_run_threads(run, &x->thread);
	x->count = calloc(x->n_threads + 1, sizeof(*x->count));
	x->rec = malloc(BATCH * sizeof(*x->rec));
	x->sorted = malloc(BATCH * sizeof(*x->sorted));
	x->of = malloc(BATCH * sizeof(*x->of));
	if (x->count && x->rec && x->sorted && x->of)
		rc = look(x, &why);
	if (!rc)
		rc = create(x, path);
	if (!rc) {
		rc = write_all(x, &why);
		int end = tft_writer_finish(x->w, !rc);
		rc = rc ? rc : end;
		if (rc)
			unlink(path);
	}
	free(x->count);
	free(x->rec);
	free(x->sorted);
	free(x->of);
	free(x);
	return rc ? tfh_err_set(err, rc, "%s: %s", path, *why.text ? why.text : strerror(-rc)) : 0;
}
