/*
 * Interprets an entry of a Kineto trace: a call of the runtime, a device op, a step, a DataLoader
 * batch, or other host work. Calls and ops are matched by correlation number; in files without it
 * by arrows between them (same thread and time at each end); with neither, the builder uses the
 * order in the stream.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "import/kineto_process.h"
#include "model/symbols/kernel_name.h"

#define MAX_ENTRIES 40000000u /* limit on entries, about 5 GB */
#define NPU_LAUNCH 1000	      /* ns that a launch is taken to last: less than any does */

struct tfh_kineto *tfh_kineto_new(struct tfh_builder *b)
{
	struct tfh_kineto *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->open = tfh_kineto_open_new();
	if (!k->open) {
		free(k);
		return NULL;
	}
	k->b = b;
	k->host_pid = k->device = -1;
	k->last_begin = k->last_end = INT64_MIN;
	k->stop = INT64_MAX;
	return k;
}

void tfh_kineto_free(struct tfh_kineto *k)
{
	if (!k)
		return;
	tfh_kineto_open_free(k->open);
	tfh_map_free(&k->thread);
	tfh_map_free(&k->fn);
	tfh_map_free(&k->arrow);
	tfh_map_free(&k->npu);
	tfh_map_free(&k->wait);
	tfh_map_free(&k->step);
	free(k->call.v);
	free(k->op.v);
	free(k->waits.v);
	free(k->steps.v);
	free(k);
}

/* Whether the file only repeats tasks, exchanges or steps: Ascend's profiler writes such files
 * beside the whole trace, which alone has rows of the runtime or of what overlaps. */
static bool is_part(const struct tfh_kineto *k)
{
	for (uint32_t i = 0; i < k->labels; i++)
		if (!strcmp(k->label[i].text, "Step Trace"))
			return true;
		else if (!strcmp(k->label[i].text, "CANN") ||
			 !strcmp(k->label[i].text, "Overlap Analysis"))
			return false;
	return k->ascend && !k->threads;
}

uint64_t tfh_kineto_count(const struct tfh_kineto *k)
{
	return is_part(k) ? 0 : k->count;
}

/* ---- the host ---- */

int64_t tfh_kineto_thread(struct tfh_kineto *k, int64_t tid)
{
	uint64_t *index = tfh_map_put(&k->thread, tfh_hash_u64((uint64_t)tid) | 1, NULL);
	int64_t t;

	if (!index)
		return -ENOMEM;
	if (*index)
		return (int64_t)*index - 1;
	if (k->threads >= TFH_IMPORT_THREADS)
		return k->last_thread;
	t = tfh_build_thread(k->b, k->process, (uint32_t)tid, "");
	if (t >= 0) {
		*index = (uint64_t)t + 1;
		k->last_thread = t;
		k->threads++;
	}
	return t;
}

/* Key of an arrow's end: its thread (or stream) and time. */
static uint64_t anchor_of(const struct tfh_kineto_entry *e)
{
	uint64_t h = tfh_hash_add(tfh_hash_u64((uint64_t)e->pid), (uint64_t)e->tid);

	return tfh_hash_add(h, (uint64_t)e->arrow_ts);
}

static int begin_event(struct tfh_kineto *k, const struct tfh_kineto_entry *e, struct tfh_event *ev)
{
	int64_t thread = tfh_kineto_thread(k, e->tid);

	if (thread < 0)
		return -ENOMEM;
	if (k->host_pid < 0 && !e->named_pid)
		k->host_pid = e->pid;
	*ev = (struct tfh_event){.t0 = e->ts,
				 .t1 = e->ts + e->dur,
				 .process = k->process,
				 .thread = (uint32_t)thread};
	return 0;
}

/* Until 2022 annotations had the category of ops. */
static int add_host(struct tfh_kineto *k, const struct tfh_kineto_entry *e)
{
	enum tft_range kind = e->category == TFH_KINETO_PYTHON ? TFT_RANGE_PYTHON
			      : e->category == TFH_KINETO_OP   ? TFT_RANGE_OP
							       : TFT_RANGE_NOTE;
	struct tfh_event ev;
	int rc = begin_event(k, e, &ev);

	if (rc)
		return rc;
	if (e->category == TFH_KINETO_HOST || e->category == TFH_KINETO_OP) {
		k->last_begin = ev.t0 > k->last_begin ? ev.t0 : k->last_begin;
		k->last_end = ev.t1 > k->last_end ? ev.t1 : k->last_end;
	}
	rc = tfh_import_host_event(k->b, e->name, kind, &ev);
	return rc ? rc : tfh_build_event(k->b, &ev, 0);
}

static int add_call(struct tfh_kineto *k, const struct tfh_kineto_entry *e)
{
	const struct tfh_fn_info *fn;
	struct tfh_kineto_late_call late = {.anchor = anchor_of(e)};
	int rc = tfh_import_fn(k->b, &k->fn, e->name, &fn);

	if (rc || !fn)
		return rc ? rc : add_host(k, e);
	bool issues = tfh_family_issues(fn->family);
	k->gpu |= issues;
	k->count += fn->family != TFH_FAM_SYNC;
	rc = begin_event(k, e, &late.ev);
	if (rc)
		return rc;
	if ((issues || fn->family == TFH_FAM_SYNC) && e->ts > k->last_begin)
		k->last_begin = e->ts;
	late.ev.fn = fn;
	late.ev.kind = TFT_CALL;
	late.ev.dir = fn->dir;
	late.correlation = e->correlation > 0 ? (uint32_t)e->correlation : 0;
	/* A wait for an event refers to the recording of that event by its correlation id. */
	if (fn->family == TFH_FAM_EVENT)
		late.ev.w[0] = late.correlation;
	bool waits = fn->family == TFH_FAM_EVENT || fn->family == TFH_FAM_STREAM_WAIT ||
		     fn->family == TFH_FAM_SYNC;
	if (!waits && (late.correlation || !issues))
		return tfh_build_event(k->b, &late.ev, late.correlation);
	return TFH_PUSH(k->call, late);
}

/* ---- the device ---- */

static int add_op(struct tfh_kineto *k, const struct tfh_kineto_entry *e, uint8_t kind)
{
	int64_t device = e->device >= 0 ? e->device : e->pid >= 0 ? e->pid : 0;
	struct tfh_kineto_late_op late = {.anchor = anchor_of(e)};
	struct tfh_op *op = &late.op;

	k->gpu = true;
	*op = (struct tfh_op){
		.t0 = e->ts,
		.t1 = e->ts + e->dur,
		.process = k->process,
		.device = (uint32_t)device,
		.ctx = e->context > 0 ? (uint32_t)e->context : 0,
		.stream =
			tfh_import_stream(&k->device, device, e->stream >= 0 ? e->stream : e->tid),
		.kind = kind,
		.name = kind == TFH_OP_KERNEL ? e->name : "",
		.bytes = e->bytes > 0 ? (uint64_t)e->bytes : 0,
		.grid = tfh_import_grid(e->grid),
		.block = tfh_import_block(e->block, e->shared),
		.correlation = e->correlation > 0 ? (uint32_t)e->correlation : 0,
		.graph = e->graph > 0 ? (uint32_t)e->graph : 0,
		.node = e->node > 0 ? (uint64_t)e->node : 0,
	};
	if (kind == TFH_OP_KERNEL)
		op->communication = tfh_kernel_communicates(e->name);
	else if (kind == TFH_OP_COPY)
		tfh_import_copy_name(e->name, op);
	if (op->correlation)
		return tfh_build_op(k->b, op);
	op->name = "";
	if (kind == TFH_OP_KERNEL) {
		/* The entry may be held until its arrow comes; the builder's copy of the text
		 * remains valid. */
		int64_t id = tfh_build_name(k->b, k->process, TFT_NAME_FUNCTION, e->name);
		if (id < 0)
			return -ENOMEM;
		op->node = (uint64_t)id;
	}
	return TFH_PUSH(k->op, late);
}

/* Adds a wait. What it waited for is recorded among the device's ops, with the correlation id of
 * the host's call. */
static int add_wait(struct tfh_kineto *k, const struct tfh_kineto_entry *e)
{
	struct tfh_kineto_wait w = {.record = e->wait_record,
				    .stream = e->stream > 0 ? (uint32_t)e->stream : 0,
				    .on = e->wait_stream > 0 ? (uint32_t)e->wait_stream : 0};
	uint64_t *index;

	if (e->correlation <= 0)
		return 0;
	index = tfh_map_put(&k->wait, (uint64_t)e->correlation, NULL);
	if (!index || TFH_PUSH(k->waits, w))
		return -ENOMEM;
	*index = k->waits.n;
	if (e->wait_record > 0 && w.on) { /* and the record was made in that stream */
		index = tfh_map_put(&k->wait, (uint64_t)e->wait_record, NULL);
		if (!index ||
		    TFH_PUSH(k->waits, (struct tfh_kineto_wait){.record = -1, .stream = w.on}))
			return -ENOMEM;
		*index = k->waits.n;
	}
	return 0;
}

/* A step's annotation on the device, one of each stream. */
static int add_note(struct tfh_kineto *k, const struct tfh_kineto_entry *e)
{
	struct tfh_kineto_step s = {.t0 = e->ts, .t1 = e->ts + e->dur};
	uint64_t *index;

	if (!tfh_import_step(e->name, &s.number))
		return 0;
	index = tfh_map_put(&k->step, tfh_hash_u64(s.number) | 1, NULL);
	if (!index || (!*index && TFH_PUSH(k->steps, s)))
		return -ENOMEM;
	if (!*index)
		*index = k->steps.n;
	struct tfh_kineto_step *known = &k->steps.v[*index - 1];
	known->t0 = s.t0 < known->t0 ? s.t0 : known->t0;
	known->t1 = s.t1 > known->t1 ? s.t1 : known->t1;
	return 0;
}

/* ---- entries ---- */

static int add_label(struct tfh_kineto *k, const struct tfh_kineto_entry *e)
{
	if (!strcmp(e->name, "process_name") && k->labels < TFH_KINETO_LABELS) {
		k->label[k->labels].pid = e->pid;
		snprintf(k->label[k->labels].text, sizeof(k->label[0].text), "%.60s", e->label);
		k->labels++;
	} else if (!strcmp(e->name, "thread_name") && (k->host_pid < 0 || e->pid == k->host_pid)) {
		const uint64_t *index = tfh_map_get(&k->thread, tfh_hash_u64((uint64_t)e->tid) | 1);
		if (index)
			tfh_build_thread_name(k->b, (uint32_t)(*index - 1), e->label);
	}
	return 0;
}

/* rocprof's ids begin with 0. Its times are whole microseconds: where two arrows meet, neither is
 * known. */
static int add_arrow(struct tfh_kineto *k, const struct tfh_kineto_entry *e)
{
	bool fresh;
	uint64_t *id;

	if (k->rocprof ? e->id < 0 : e->category != TFH_KINETO_ARROW || e->id <= 0)
		return 0;
	id = tfh_map_put(&k->arrow, anchor_of(e), &fresh);
	if (!id)
		return -ENOMEM;
	*id = k->rocprof ? fresh ? (uint64_t)e->id + 1 : 0 : (uint64_t)e->id;
	return 0;
}

static int begin_process(struct tfh_kineto *k)
{
	int64_t process;

	if (k->entries++)
		return k->entries > MAX_ENTRIES ? -E2BIG : 0;
	process = tfh_build_process(k->b, "", "", 0, -1);
	k->process = process < 0 ? 0 : (uint32_t)process;
	return process < 0 ? -ENOMEM : 0;
}

/* Adds the launch from which an NPU's arrow starts: nothing else is recorded of that call. Ids of
 * these arrows take 64 bits. */
static int add_npu_arrow(struct tfh_kineto *k, struct tfh_kineto_entry *e)
{
	const struct tfh_fn_info *launch = &tfh_fn_table[TFH_FN_cuLaunchKernel];
	uint64_t *id = tfh_map_put(&k->npu, tfh_hash_u64((uint64_t)e->id) | 1, NULL);
	struct tfh_event ev;
	int rc;

	launch = tfh_build_fn(k->b, "launch", launch);
	if (!launch || !id)
		return -ENOMEM;
	*id = *id ? *id : k->npu.n;
	e->id = (int64_t)*id;
	e->category = TFH_KINETO_ARROW;
	rc = add_arrow(k, e);
	if (rc || e->phase != 's')
		return rc;
	e->named_pid = true; /* the runtime's */
	e->dur = NPU_LAUNCH;
	rc = begin_process(k);
	rc = rc ? rc : begin_event(k, e, &ev);
	if (rc)
		return rc;
	k->gpu = true;
	k->count++;
	k->last_begin = ev.t0 > k->last_begin ? ev.t0 : k->last_begin;
	ev.fn = launch;
	ev.kind = TFT_CALL;
	return tfh_build_event(k->b, &ev, (uint32_t)*id);
}

const char *tfh_kineto_label(const struct tfh_kineto *k, int64_t pid)
{
	for (uint32_t i = 0; i < k->labels; i++)
		if (k->label[i].pid == pid)
			return k->label[i].text;
	return "";
}

static void add_rocprof(struct tfh_kineto *k, struct tfh_kineto_entry *e)
{
	bool hip = false;

	if (!k->rocprof)
		tfh_build_source(k->b, TFH_SRC_ROCPROF);
	k->rocprof = true;
	for (uint32_t i = 0; i < k->labels; i++)
		hip |= !strcmp(k->label[i].text, "CPU HIP API");
	tfh_rocprof_entry(e, tfh_kineto_label(k, e->pid), hip);
}

int tfh_kineto_add(struct tfh_kineto *k, struct tfh_kineto_entry *e)
{
	static const uint8_t op_kind[] = {[TFH_KINETO_KERNEL] = TFH_OP_KERNEL,
					  [TFH_KINETO_COPY] = TFH_OP_COPY,
					  [TFH_KINETO_MEMSET] = TFH_OP_MEMSET};
	int rc;

	if (e->phase == 'M')
		return add_label(k, e);
	e->arrow_ts = e->ts;
	if (tfh_rocprof_is(e))
		add_rocprof(k, e);
	else if (e->phase == 'X' && e->category == TFH_KINETO_OTHER && !k->rocprof &&
		 tfh_ascend_entry(e, tfh_kineto_label(k, e->pid))) {
		tfh_build_source(k->b, TFH_SRC_ASCEND);
		k->ascend = true;
	}
	if (e->ts < -TFH_IMPORT_TIME || e->ts > TFH_IMPORT_TIME)
		return 0;
	if (e->category == TFH_KINETO_NPU_ARROW)
		return add_npu_arrow(k, e);
	if (e->phase == 's' || e->phase == 'f' || (e->phase == 't' && k->rocprof))
		return add_arrow(k, e);
	if (e->phase == 'B' || e->phase == 'E') {
		rc = tfh_kineto_pair(k->open, e);
		if (rc <= 0)
			return rc;
	}
	if (e->phase == 'X' && e->category == TFH_KINETO_NOTE)
		return e->dur > TFH_IMPORT_LENGTH ? 0 : add_note(k, e);
	if (e->phase != 'X' || e->category == TFH_KINETO_OTHER || e->category == TFH_KINETO_ARROW) {
		k->others++;
		return 0;
	}
	if (e->dur > TFH_IMPORT_LENGTH)
		return 0; /* an impossible time */
	if (e->dur < 0)
		e->dur = 0;
	rc = begin_process(k);
	if (rc)
		return rc;
	if (e->category == TFH_KINETO_CALL)
		return add_call(k, e);
	if (e->category == TFH_KINETO_SYNC)
		return add_wait(k, e);
	k->count++;
	if (e->category == TFH_KINETO_HOST || e->category == TFH_KINETO_OP ||
	    e->category == TFH_KINETO_PYTHON)
		return add_host(k, e);
	return add_op(k, e, op_kind[e->category]);
}

tfh_reads_json *tfh_kineto_other(const struct tfh_kineto *k)
{
	for (uint32_t i = 0; i < k->labels && !k->entries; i++) {
		if (tfh_timeline_process(k->label[i].text))
			return tfh_import_timeline;
		if (tfh_viewer_plane(k->label[i].text))
			return tfh_import_viewer;
	}
	return NULL;
}

/* Why a file contains nothing. */
const char *tfh_kineto_nothing(const struct tfh_kineto *k)
{
	for (uint32_t i = 0; i < k->labels; i++)
		if (tfh_viewer_plane(k->label[i].text) || tfh_timeline_process(k->label[i].text))
			return "written by TensorFlow's or JAX's profiler for a viewer: give the "
			       "file itself, or the .xplane.pb beside it";
	if (is_part(k))
		return "a part of what Ascend's profiler writes, tasks, exchanges or steps "
		       "alone: give the whole trace (trace_view.json, msprof_*.json)";
	if (k->entries)
		return "a trace without a single launch, op or kernel: the program did nothing "
		       "while the profiler ran, or worked in a thread or process that the profiler "
		       "does not see";
	return k->others ? "a trace without a single call, op or kernel: of Chrome's format, but "
			   "not of PyTorch's profiler or another one that tfhook reads: record "
			   "the job with `tfhook run`"
			 : "a trace without a single call, op or kernel";
}
