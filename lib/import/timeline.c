/*
 * The JSON of TensorFlow 1's `timeline.Timeline(run_metadata.step_stats)`: one call of a session.
 * Each device is a process: "/job:localhost/replica:0/task:0/device:GPU:0 Compute" has what the
 * executor did for it on the host, "/device:GPU:0/stream:13 Compute" what a stream ran. The streams
 * "all" and "memcpy" repeat the others. An event's arguments name its node of the graph, by which
 * an op is joined with what it launched. The threads are only rows in which no events overlap, so
 * the events of all executors are assigned to threads anew: events that do not overlap belong to
 * one thread.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/hash.h"
#include "base/text.h"
#include "import/scan.h"
#include "import/import.h"

#define MAX_EVENTS 4000000u
#define MAX_LANES 256
/* A launch takes a part of its op that is not known: as long as a slow one, just before its kernel
 * or the op's end. */
#define LAUNCH_NS (10 * 1000)

enum tf_row { OTHER, EXECUTOR, STREAM };

struct tf_device { /* by pid */
	uint8_t place;
	uint32_t device, stream;
};

struct tf_event {
	int64_t t0, t1;
	uint64_t node; /* hash of the node's name */
	struct tf_device at;
	uint32_t lane;	   /* executors */
	uint32_t launched; /* streams: number of the call, 0 unknown */
	char name[64];	   /* the kind of op */
};

struct timeline {
	struct tfh_builder *b;
	uint32_t process, calls, threads[MAX_LANES];
	struct tfh_map place; /* pid -> index in `processes` + 1 */
	struct tf_device *processes;
	struct tf_event *entry;
	size_t n_process, n, cap;
	/* the entry being read */
	struct tf_event now;
	int64_t pid;
	char phase, label[256];
};

bool tfh_timeline_process(const char *name)
{
	size_t n = strlen(name);

	return *name == '/' && n > 8 && !strcmp(name + n - 8, " Compute");
}

/* The number after "gpu:" or "GPU:"; 0 if there is none. */
static uint32_t gpu_of(const char *name)
{
	for (; *name; name++)
		if (tolower(name[0]) == 'g' && tolower(name[1]) == 'p' && tolower(name[2]) == 'u' &&
		    name[3] == ':')
			return (uint32_t)strtoul(name + 4, NULL, 10);
	return 0;
}

static int add_label(struct timeline *t)
{
	const char *stream = strstr(t->label, "/stream:");
	struct tf_device p = {.device = gpu_of(t->label)}, *more;
	uint64_t *at;

	if (strcmp(t->now.name, "process_name") != 0 || !tfh_timeline_process(t->label))
		return 0;
	if (stream && isdigit((unsigned char)stream[8])) {
		p.place = STREAM;
		p.stream = (uint32_t)strtoul(stream + 8, NULL, 10);
	} else if (!stream && !strstr(t->label, "/memcpy")) {
		p.place = EXECUTOR;
	}
	at = tfh_map_put(&t->place, tfh_hash_u64((uint64_t)t->pid), NULL);
	more = at ? realloc(t->processes, (t->n_process + 1) * sizeof(*more)) : NULL;
	if (!more)
		return -ENOMEM;
	t->processes = more;
	t->processes[t->n_process++] = p;
	*at = t->n_process;
	return 0;
}

static int add_entry(struct timeline *t)
{
	const uint64_t *at = tfh_map_get(&t->place, tfh_hash_u64((uint64_t)t->pid));
	struct tf_event *e = &t->now;

	if (t->phase == 'M')
		return add_label(t);
	if (t->phase != 'X' || !at || t->processes[*at - 1].place == OTHER || e->t0 < 0 ||
	    e->t0 > TFH_IMPORT_TIME || e->t1 < 0 || e->t1 > TFH_IMPORT_LENGTH)
		return 0;
	if (t->n == MAX_EVENTS)
		return -E2BIG;
	if (t->n == t->cap) {
		size_t want = t->cap ? 2 * t->cap : 1024;
		struct tf_event *more = realloc(t->entry, want * sizeof(*more));
		if (!more)
			return -ENOMEM;
		t->entry = more;
		t->cap = want;
	}
	e->t1 += e->t0;
	e->at = t->processes[*at - 1];
	t->entry[t->n++] = *e;
	return 0;
}

/* ---- joining ---- */

static int by_start(const void *a, const void *b)
{
	const struct tf_event *x = a, *y = b;

	if (x->t0 != y->t0)
		return x->t0 < y->t0 ? -1 : 1;
	return x->t1 != y->t1	   ? (x->t1 < y->t1 ? -1 : 1)
	       : x->node < y->node ? -1
				   : x->node > y->node;
}

/* Gives each executor's event the first lane that is free. Without a device, only how long anything
 * was computed counts: all events are one thread's, each from the end of those before. */
static void lay_out(struct timeline *t, bool device)
{
	int64_t end[MAX_LANES] = {0};

	for (size_t i = 0; i < t->n; i++) {
		struct tf_event *e = &t->entry[i];
		if (e->at.place != EXECUTOR)
			continue;
		while (device && e->lane < MAX_LANES - 1 && end[e->lane] > e->t0)
			e->lane++;
		if (!device && e->t0 < end[0])
			e->t0 = end[0] < e->t1 ? end[0] : e->t1;
		end[e->lane] = e->t1 > end[e->lane] ? e->t1 : end[e->lane];
	}
}

static int add_call(struct timeline *t, const struct tf_event *e, const struct tfh_fn_info *fn,
		    enum tft_name kind, const char *name, int64_t t0, int64_t t1)
{
	struct tfh_event ev = {.t0 = t0,
			       .t1 = t1,
			       .process = t->process,
			       .thread = t->threads[e->lane],
			       .kind = fn == &tfh_fn_table[TFH_FN_mark_range] ? TFT_RANGE
									      : TFT_CALL,
			       .fn = fn};
	int64_t id = name ? tfh_build_name(t->b, t->process, kind, name) : 0;

	if (id < 0)
		return (int)id;
	ev.w[0] = (uint64_t)id;
	if (ev.kind == TFT_RANGE)
		ev.w[1] = TFT_RANGE_OP;
	return tfh_build_event(t->b, &ev, name ? 0 : ++t->calls);
}

/* The launches of one executor's event: of the ops `of[0..n)`, in order of their starts. */
static int add_launches(struct timeline *t, const struct tf_event *e, struct tf_event **of,
			size_t n)
{
	int64_t until = e->t1;
	int rc = 0;

	for (size_t i = n; i-- > 0 && !rc;) {
		int64_t t1 = of[i]->t0 < until ? of[i]->t0 : until, share;
		if (t1 <= e->t0)
			t1 = e->t0 + 1;
		share = (t1 - e->t0) / (int64_t)(i + 1);
		until = t1 - (share < LAUNCH_NS ? share : LAUNCH_NS);
		rc = add_call(t, e, &tfh_fn_table[TFH_FN_cuLaunchKernel], 0, NULL, until, t1);
		of[i]->launched = t->calls;
	}
	return rc;
}

static int add_executed(struct timeline *t, const struct tf_event *e)
{
	static const struct {
		const char *op;
		enum tfh_fn fn;
	} gets[] = {{"IteratorGetNext", TFH_FN_tf_getnext_op},
		    {"IteratorGetNextSync", TFH_FN_tf_getnext_op},
		    {"IteratorGetNextAsOptional", TFH_FN_tf_getnext_optional_op},
		    {"QueueDequeue", TFH_FN_user_getnext},
		    {"QueueDequeueV2", TFH_FN_user_getnext},
		    {"QueueDequeueMany", TFH_FN_user_getnext},
		    {"QueueDequeueManyV2", TFH_FN_user_getnext},
		    {"QueueDequeueUpToV2", TFH_FN_user_getnext}};

	for (size_t i = 0; i < sizeof(gets) / sizeof(*gets); i++)
		if (!strcmp(e->name, gets[i].op))
			return add_call(t, e, &tfh_fn_table[gets[i].fn], TFT_NAME_ITERATOR, e->name,
					e->t0, e->t1);
	return add_call(t, e, &tfh_fn_table[TFH_FN_mark_range], TFT_NAME_STRING, e->name, e->t0,
			e->t1);
}

static int add_op(struct timeline *t, const struct tf_event *e)
{
	struct tfh_op op = {.t0 = e->t0,
			    .t1 = e->t1,
			    .process = t->process,
			    .device = e->at.device,
			    .stream = e->at.stream,
			    .kind = !tfh_starts_with(e->name, "MEMCPY") ? TFH_OP_KERNEL
									: TFH_OP_COPY,
			    .correlation = e->launched,
			    .name = e->name};

	if (op.kind == TFH_OP_COPY) {
		tfh_import_copy_name(e->name, &op);
		op.name = "";
	}
	return tfh_build_op(t->b, &op);
}

/* By nodes, then by starts, which is the order of the array that they are in. */
static int by_node(const void *a, const void *b)
{
	const struct tf_event *x = *(struct tf_event *const *)a, *y = *(struct tf_event *const *)b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Joins each executor's event with what its node ran on the device. */
static int join(struct timeline *t)
{
	struct tf_event **of = malloc((t->n + 1) * sizeof(*of));
	size_t n = 0;
	int rc = of ? 0 : -ENOMEM;

	for (size_t i = 0; i < t->n && !rc; i++)
		if (t->entry[i].at.place == STREAM && t->entry[i].node)
			of[n++] = &t->entry[i];
	if (!rc)
		qsort(of, n, sizeof(*of), by_node);
	for (size_t i = 0; i < t->n && !rc; i++) {
		const struct tf_event *e = &t->entry[i];
		if (e->at.place != EXECUTOR || e->t1 <= e->t0)
			continue;
		size_t lo = TFH_BISECT(k, 0, n, of[k]->node < e->node), hi = lo;
		while (hi < n && of[hi]->node == e->node && !of[hi]->launched)
			hi++;
		rc = add_launches(t, e, &of[lo], hi - lo);
		rc = rc ? rc : add_executed(t, e);
	}
	free(of);
	return rc;
}

/* All of it is one step: the session's call. */
static int add_step(struct timeline *t)
{
	struct tfh_event ev = {.t0 = INT64_MAX,
			       .process = t->process,
			       .thread = t->threads[0],
			       .kind = TFT_MARK,
			       .fn = &tfh_fn_table[TFH_FN_mark_step]};
	int64_t id = tfh_build_name(t->b, t->process, TFT_NAME_STRING, "session.run");

	if (id < 0)
		return (int)id;
	ev.w[1] = (uint64_t)id;
	for (size_t i = 0; i < t->n; i++) {
		ev.t0 = t->entry[i].t0 < ev.t0 ? t->entry[i].t0 : ev.t0;
		ev.t1 = t->entry[i].t1 > ev.t1 ? t->entry[i].t1 : ev.t1;
	}
	return tfh_build_event(t->b, &ev, 0);
}

static int build(struct timeline *t)
{
	int64_t process = tfh_build_process(t->b, "", "", 0, -1), thread;
	bool device = false;
	int rc = process < 0 ? (int)process : 0;
	uint32_t lanes = 0;

	t->process = (uint32_t)process;
	if (t->n)
		qsort(t->entry, t->n, sizeof(*t->entry), by_start);
	for (size_t i = 0; i < t->n; i++)
		device |= t->entry[i].at.place == STREAM;
	lay_out(t, device);
	for (size_t i = 0; i < t->n && !rc; i++) {
		const struct tf_event *e = &t->entry[i];
		for (; e->at.place == EXECUTOR && lanes <= e->lane && !rc; lanes++) {
			thread = tfh_build_thread(t->b, t->process, lanes + 1, "executor");
			rc = thread < 0 ? (int)thread : 0;
			t->threads[lanes] = (uint32_t)thread;
		}
	}
	rc = rc ? rc : add_step(t);
	rc = rc ? rc : join(t);
	for (size_t i = 0; i < t->n && !rc; i++)
		if (t->entry[i].at.place == STREAM)
			rc = add_op(t, &t->entry[i]);
	return rc || device ? rc : tfh_build_host_only(t->b, t->process);
}

/* ---- the text ---- */

/* A copy's node is "edge_17_loss": the 17th tensor, made by the node "loss". */
static uint64_t node_of(const char *name)
{
	const char *at =
		!tfh_starts_with(name, "edge_") ? NULL : name + 5 + strspn(name + 5, "0123456789");

	return tfh_hash_str(at && *at == '_' ? at + 1 : name);
}

static void arguments(struct tfh_scan *s, struct timeline *t)
{
	const char *key;

	if (!tfh_scan_enter_or_skip(s, '{'))
		return;
	while ((key = tfh_scan_key(s))) {
		bool name = !strcmp(key, "name");
		tfh_scan_text(s);
		if (name) {
			tfh_copy_text(t->label, sizeof(t->label), s->text, s->length);
			t->now.node = node_of(s->text);
		}
	}
}

static void field(struct tfh_scan *s, const char *key, struct timeline *t)
{
	if (!strcmp(key, "args"))
		arguments(s, t);
	else if (!strcmp(key, "ph"))
		t->phase = *tfh_scan_text(s);
	else if (!strcmp(key, "ts"))
		t->now.t0 = tfh_scan_thousandths(s);
	else if (!strcmp(key, "dur"))
		t->now.t1 = tfh_scan_thousandths(s);
	else if (!strcmp(key, "pid"))
		t->pid = tfh_scan_int(s);
	else if (strcmp(key, "name") != 0)
		tfh_scan_skip(s);
	else if (tfh_scan_text(s))
		tfh_copy_text(t->now.name, sizeof(t->now.name), s->text, s->length);
}

static int entries(struct tfh_scan *s, struct timeline *t)
{
	const char *key;
	int rc = 0;

	if (!tfh_scan_enter_or_skip(s, '['))
		return 0;
	while (!rc && tfh_scan_object(s)) {
		memset(&t->now, 0, sizeof(t->now));
		t->pid = 0;
		t->phase = t->label[0] = '\0';
		while ((key = tfh_scan_key(s)))
			field(s, key, t);
		rc = s->error ? 0 : add_entry(t);
	}
	return rc;
}

int tfh_import_timeline(struct tfh_builder *b, struct tfh_bytes *bytes, const char *path,
			struct tfh_err *err)
{
	struct tfh_scan *s = malloc(sizeof(*s));
	struct timeline *t = calloc(1, sizeof(*t));
	const char *key;
	int rc = s && t ? 0 : -ENOMEM;

	if (!rc) {
		t->b = b;
		tfh_build_source(b, TFH_SRC_TIMELINE);
		tfh_scan_init(s, bytes);
		for (tfh_scan_enter(s, '{'); !rc && (key = tfh_scan_key(s));)
			if (!strcmp(key, "traceEvents"))
				rc = entries(s, t);
			else
				tfh_scan_skip(s);
	}
	if (!rc && (rc = tfh_scan_finish(s, path, err)))
		goto out;
	if (!rc && !t->n)
		rc = tfh_err_set(err, -ENODATA, "%s: TensorFlow's timeline, without a single op",
				 path);
	else if (rc || (rc = build(t)))
		tfh_err_set(err, rc, "%s: %s", path,
			    rc == -E2BIG ? "more events than fit in memory" : "out of memory");
out:
	if (t) {
		tfh_map_free(&t->place);
		free(t->processes);
		free(t->entry);
	}
	free(t);
	free(s);
	return rc;
}
