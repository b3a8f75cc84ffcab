/*
 * The dialect of Chrome's trace format that PyTorch's profiler (Kineto) writes and its tools read:
 * TensorBoard's plugin, HolisticTraceAnalysis, `tfhook report`. One file per process. HTA searches
 * for the rank line by line, with a blank after the colon, so it comes first.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/key_table.h"
#include "base/print.h"
#include "base/text.h"
#include "base/vocabulary.h"
#include "export/naming.h"
#include "export/walk.h"
#include "export/writers.h"

/* First correlation id. HTA keeps line numbers in a column whose type is the smallest that holds
 * these ids. */
#define FIRST_CORRELATION 65536u

struct kineto_out {
	const struct tfh_export *x;
	const struct tfh_thread_info *thread;
	uint32_t n_threads;
	FILE *out;
	struct tfh_json j; /* for one entry, which is a line */
	bool any;
	uint32_t process, pid;
	uint64_t *issued; /* by thread: number of calls it made */
	/* Recorded events: by handle, the id and the stream of the last recording. */
	struct tfh_map record, stream;
};

/* ---- entries ---- */

/* `ts` and `dur` are microseconds with as many decimals as needed. */
static void begin_entry(struct kineto_out *k, const char *phase, const char *category,
			const char *name, int64_t pid, int64_t tid, int64_t t0)
{
	if (k->any)
		tfh_put(",", k->out);
	k->any = true;
	tfh_json_init(&k->j, k->out, 0);
	tfh_json_object(&k->j);
	tfh_json_kstr(&k->j, "ph", phase);
	if (category)
		tfh_json_kstr(&k->j, "cat", category);
	tfh_json_kstr(&k->j, "name", name);
	tfh_json_ki64(&k->j, "pid", pid);
	tfh_json_ki64(&k->j, "tid", tid);
	tfh_json_kf64(&k->j, "ts", (double)t0 / 1e3);
}

/* Begins a complete event, and leaves its args open. */
static void begin_complete(struct kineto_out *k, const char *category, const char *name,
			   int64_t pid, int64_t tid, int64_t t0, int64_t t1)
{
	begin_entry(k, "X", category, name, pid, tid, t0);
	tfh_json_kf64(&k->j, "dur", (double)(t1 - t0) / 1e3);
	tfh_json_key(&k->j, "args");
	tfh_json_object(&k->j);
}

/* `levels`: 1 ends the entry, 2 also its args. */
static int end_entry(struct kineto_out *k, int levels)
{
	while (levels--)
		tfh_json_end(&k->j);
	return tfh_json_finish(&k->j);
}

/* One end of the arrow from a call to its op. */
static int put_arrow(struct kineto_out *k, bool op, uint64_t id, int64_t pid, int64_t tid,
		     int64_t t)
{
	begin_entry(k, op ? "f" : "s", "ac2g", "ac2g", pid, tid, t);
	tfh_json_ku64(&k->j, "id", id + FIRST_CORRELATION);
	if (op)
		tfh_json_kstr(&k->j, "bp", "e");
	return end_entry(k, 1);
}

static int put_label(struct kineto_out *k, const char *what, int64_t pid, int64_t tid,
		     const char *text)
{
	begin_entry(k, "M", NULL, what, pid, tid, 0);
	tfh_json_key(&k->j, "args");
	tfh_json_object(&k->j);
	tfh_json_kstr(&k->j, "name", text);
	return end_entry(k, 2);
}

/* ---- steps ---- */

static int put_step(struct kineto_out *k, uint32_t thread, uint64_t number, int64_t t0, int64_t t1)
{
	char name[48];

	snprintf(name, sizeof(name), "ProfilerStep#%" PRIu64, number);
	begin_complete(k, "user_annotation", name, k->pid, tfh_export_tid(k->x, thread), t0, t1);
	return end_entry(k, 2);
}

/* Writes steps that the program did not mark, at the host's times: tools assign calls to them by
 * time, and kernels by their calls. */
static int put_found_steps(struct kineto_out *k)
{
	const struct tfh_export_rank *rank = tfh_export_rank_of(k->x, k->process);
	uint32_t thread = tfh_export_driving(k->x, k->process, k->issued);
	int rc = 0;

	if (!rank || !k->n_threads || rank->clock == TFH_STEP_CLOCK_MARK)
		return 0;
	for (size_t i = 0; i < rank->n && !rc; i++) {
		const struct tfh_step *s = &rank->step[i];
		if (tfh_export_has(k->x, s))
			rc = put_step(k, thread, s->index, s->host_t0, s->host_t1);
	}
	return rc;
}

/* ---- calls ---- */

static const char *range_category(const struct tfh_event *ev)
{
	switch (ev->w[1]) {
	case TFT_RANGE_OP:
	case TFT_RANGE_EXCHANGE_OP:
		return "cpu_op";
	case TFT_RANGE_PYTHON:
		return "python_function";
	default:
		return "user_annotation";
	}
}

static const char *call_category(const struct tfh_walk_call *call)
{
	uint8_t family = call->ev->fn->family;

	if (call->ev->kind == TFT_RANGE)
		return range_category(call->ev);
	if (family == TFH_FAM_EXECUTE || family == TFH_FAM_SESSION ||
	    family == TFH_FAM_COMMUNICATION)
		return "cpu_op";
	if (family >= TFH_FAM_CONSUMER)
		return "user_annotation";
	return !tfh_starts_with(call->name, "cuda") && tfh_starts_with(call->name, "cu")
		       ? "cuda_driver"
		       : "cuda_runtime";
}

/* Writes what a call waits for on the device, as an entry of its own. */
static int put_wait(struct kineto_out *k, const struct tfh_walk_call *call)
{
	const struct tfh_event *ev = call->ev;
	bool host = ev->fn->family == TFH_FAM_SYNC;
	const uint64_t *record = tfh_map_get(&k->record, ev->w[0]),
		       *stream = tfh_map_get(&k->stream, ev->w[0]);

	if (!(host || ev->fn->family == TFH_FAM_STREAM_WAIT) || !(ev->stream || record))
		return 0;
	begin_complete(k, "cuda_sync", host ? "Synchronize" : "Stream Wait Event", 0, ev->stream,
		       ev->t0, ev->t1);
	tfh_json_ku64(&k->j, "correlation", call->id + FIRST_CORRELATION);
	tfh_json_ku64(&k->j, "stream", ev->stream);
	if (record) {
		tfh_json_ki64(&k->j, "wait_on_stream", *stream ? (int64_t)*stream : -1);
		tfh_json_ku64(&k->j, "wait_on_cuda_event_record_corr_id", *record);
	}
	return end_entry(k, 2);
}

static int note_record(struct kineto_out *k, const struct tfh_walk_call *call)
{
	uint64_t *record = tfh_map_put(&k->record, call->ev->w[0], NULL),
		 *stream = tfh_map_put(&k->stream, call->ev->w[0], NULL);

	if (!record || !stream)
		return -ENOMEM;
	*record = call->id + FIRST_CORRELATION;
	*stream = call->ev->stream;
	return 0;
}

static int put_call(void *arg, const struct tfh_walk_call *call)
{
	struct kineto_out *k = arg;
	const struct tfh_event *ev = call->ev;
	uint32_t tid = tfh_export_tid(k->x, ev->thread);
	char room[256];
	int rc;

	if (ev->kind == TFT_MARK)
		return put_step(k, ev->thread, ev->w[0], ev->t0, ev->t1);
	if (ev->kind == TFT_AGG) /* many calls with pauses between them */
		return 0;
	bool issues = tfh_export_issues(ev);
	k->issued[ev->thread] += issues;
	begin_complete(k, call_category(call),
		       ev->fn->family == TFH_FAM_CONSUMER && ev->kind == TFT_CALL
			       ? tfh_export_batch_name(room, call->name)
			       : call->name,
		       k->pid, tid, ev->t0, ev->t1);
	if (ev->kind != TFT_RANGE && ev->fn->family < TFH_FAM_COMMUNICATION)
		tfh_json_ku64(&k->j, "correlation", call->id + FIRST_CORRELATION);
	rc = end_entry(k, 2);
	if (!rc && issues)
		rc = put_arrow(k, false, call->id, k->pid, tid, ev->t0);
	if (!rc && ev->kind == TFT_CALL && ev->fn->family == TFH_FAM_EVENT)
		rc = note_record(k, call);
	return rc || ev->kind != TFT_CALL ? rc : put_wait(k, call);
}

/* ---- ops ---- */

static void put_three(struct tfh_json *j, const char *key, uint64_t x, uint64_t y, uint64_t z)
{
	tfh_json_key(j, key);
	tfh_json_array(j);
	tfh_json_u64(j, x);
	tfh_json_u64(j, y);
	tfh_json_u64(j, z);
	tfh_json_end(j);
}

static void put_kernel(struct tfh_json *j, const struct tfh_op *op)
{
	struct tfh_export_shape s = tfh_export_shape_of(op);

	put_three(j, "grid", s.grid[0], s.grid[1], s.grid[2]);
	put_three(j, "block", s.block[0], s.block[1], s.block[2]);
	tfh_json_ku64(j, "shared memory", s.shared);
	if (op->graph) {
		tfh_json_ku64(j, "graph id", op->graph);
		tfh_json_ku64(j, "graph node id", op->node);
	}
}

static int put_op(void *arg, const struct tfh_op *op, uint64_t call)
{
	static const char *const category[] = {[TFH_OP_KERNEL] = "kernel",
					       [TFH_OP_COPY] = "gpu_memcpy",
					       [TFH_OP_MEMSET] = "gpu_memset",
					       [TFH_OP_GRAPH] = "kernel"};
	struct kineto_out *k = arg;
	char room[TFH_EXPORT_NAME];

	if (op->kind >= sizeof(category) / sizeof(*category) || !category[op->kind])
		return 0;
	begin_complete(k, category[op->kind], tfh_export_full_name(room, tfh_export_op_name(op)),
		       op->device, op->stream, op->t0, op->t1);
	tfh_json_ku64(&k->j, "device", op->device);
	tfh_json_ku64(&k->j, "context", op->ctx);
	tfh_json_ku64(&k->j, "stream", op->stream);
	if (call)
		tfh_json_ku64(&k->j, "correlation", call + FIRST_CORRELATION);
	if (op->kind == TFH_OP_KERNEL)
		put_kernel(&k->j, op);
	else if (op->kind != TFH_OP_GRAPH)
		tfh_json_ku64(&k->j, "bytes", op->bytes);
	if (op->kind == TFH_OP_COPY && op->t1 > op->t0)
		tfh_json_kf64(&k->j, "memory bandwidth (GB/s)",
			      (double)op->bytes / (double)(op->t1 - op->t0));
	int rc = end_entry(k, 2);
	return rc || !call ? rc : put_arrow(k, true, call, op->device, op->stream, op->t0);
}

/* ---- the file ---- */

static int start_process(void *arg, uint32_t process, const struct tfh_process *p)
{
	struct kineto_out *k = arg;
	struct tfh_gpu_info gpu;

	k->process = process;
	k->pid = tfh_export_pid(k->x, process);
	tfh_run_gpu(k->x->run, process, &gpu);
	tfh_put("{\n\"schemaVersion\": 1,\n", k->out);
	if (p->rank >= 0)
		tfh_print(k->out, "\"distributedInfo\": {\"rank\": %d, \"world_size\": %d},\n",
			  p->rank, p->world > 0 ? p->world : p->rank + 1);
	else /* tools for several ranks accept nothing else */
		tfh_put("\"distributedInfo\": {\"rank\": 0, \"world_size\": 1},\n", k->out);
	if (gpu.processors)
		tfh_print(k->out, "\"deviceProperties\": [{\"id\": 0, \"numSms\": %u}],\n",
			  gpu.processors);
	tfh_print(k->out,
		  "\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": %" PRId64
		  ",\n\"traceEvents\": [\n",
		  tfh_export_start_ns(k->x));
	return 0;
}

static int end_process(void *arg, uint32_t process)
{
	struct kineto_out *k = arg;
	int rc = put_found_steps(k);

	if (!rc)
		rc = put_label(k, "process_name", k->pid, 0, tfh_export_exe(k->x, process));
	for (uint32_t i = 0; i < k->n_threads && !rc; i++)
		if (k->thread[i].process == process && k->thread[i].name)
			rc = put_label(k, "thread_name", k->pid, tfh_export_tid(k->x, i),
				       tfh_export_thread(k->x, i));
	tfh_put("]\n}\n", k->out);
	return rc;
}

int tfh_write_kineto(const struct tfh_export *x, FILE *out, struct tfh_err *err)
{
	static const struct tfh_walker walker = {
		.process = start_process, .call = put_call, .op = put_op, .end = end_process};
	struct kineto_out k = {.x = x, .out = out};
	int rc;

	k.n_threads = tfh_run_threads(x->run, &k.thread);
	k.issued = calloc(k.n_threads + 1, sizeof(*k.issued));
	rc = k.issued ? tfh_walk(x, &walker, &k, err) : -ENOMEM;
	free(k.issued);
	tfh_map_free(&k.record);
	tfh_map_free(&k.stream);
	return rc;
}
